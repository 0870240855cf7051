"""The broker's counters, and their form as Prometheus text. ``broker.metric_families`` names the metrics."""
