"""Metrics under the names of Kafka Connect's exporters: JMX groups and attributes (``families.py``), and those of the
tasks' Kafka clients (``clients.py``).
"""
