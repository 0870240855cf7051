"""What the broker counts, and how Prometheus sees it: under the names that Kafka's own metrics have there."""
