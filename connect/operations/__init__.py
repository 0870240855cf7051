"""What users ask of a worker over its REST face, with Kafka Connect's rules and texts."""
