"""What the broker counts, and Prometheus' text form of it. ``broker.metric_families`` names the metrics."""
