"""Tidegate's REST API under ``/tidegate/v1``: event definitions, entities, subscribers."""
