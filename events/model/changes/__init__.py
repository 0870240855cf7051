"""Change events: changes of database tables, read from a CDC connector's topics, as Salesforce's Change Data Capture sends them."""
