"""Metrics of worker and tasks under the names that Kafka Connect's exporters give them.

what a task counts, per batch        ``measures.py``
JMX groups and attributes as names   ``families.py``
what ``/metrics`` shows              ``worker.py``
"""
