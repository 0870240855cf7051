"""Backups of a cluster in an open format, restored to any Kafka; the format is in docs/how-to/backup.md."""
