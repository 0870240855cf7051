"""Bulk API 2.0 jobs: a CSV file whose rows are published as events."""
