"""Scenarios of change data capture, what Debezium wrote for them, and our connector doing the same."""
