"""Signals: requests that users send to a running connector through a table, a topic or a file (debezium.io,
"Signalling").
"""
