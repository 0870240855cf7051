"""Lines of a file as records and records as lines: Kafka's FileStream connectors."""
