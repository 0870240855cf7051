"""Platform events as Salesforce has them: defined as Avro schemas, kept in the log, spoken over Salesforce's own protocols."""
