"""Change data capture from PostgreSQL by logical replication (pgoutput), in Debezium's form."""
