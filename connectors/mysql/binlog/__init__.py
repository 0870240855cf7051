"""The binary log's bytes as values: events, rows, column values, positions. Knows nothing of connectors."""
