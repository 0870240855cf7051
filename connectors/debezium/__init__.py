"""What all log-based change data capture shares: Debezium's keys, envelope, topics and filters."""
