"""The commands for the log, on any Kafka: topics, groups, records, access."""
