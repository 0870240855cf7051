"""What brokers and groups may be told about groups of every type."""
