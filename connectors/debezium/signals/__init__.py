"""Signals: what users ask of a running connector, by a table, a topic or a file (debezium.io, "Signalling")."""
