"""Metrics under the names that Kafka Connect's exporters give them: JMX groups and attributes (``families.py``), and those of
the tasks' Kafka clients (``clients.py``)."""
