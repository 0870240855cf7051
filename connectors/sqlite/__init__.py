"""Change data capture from SQLite by triggers, in Debezium's form."""
