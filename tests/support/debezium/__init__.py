"""Scenarios for change data capture, Debezium's records for them, and running our connector on them."""
