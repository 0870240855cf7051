"""Our broker beside Apache Kafka: producing, latency, fetching, durable producing, starting."""
