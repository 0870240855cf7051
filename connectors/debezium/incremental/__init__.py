"""Incremental snapshots: tables read in chunks while changes stream, by signals (debezium.io, "Signalling")."""
