"""Connections for writing: one module per driver, all with the interface in ``writer``."""

from __future__ import annotations

from connect.api import ConnectError
from connectors.jdbc.writers.writer import Writer
from connectors.sql.urls import Database
from connectors.sql.write_dialects import WriteDialect

__all__ = ["open_writer"]


def open_writer(database: Database, dialect: WriteDialect, *, timezone: str = "UTC", batch_rows: int = 3000) -> Writer:
    """Connect.

    ``timezone`` applies to timestamps without one; ``batch_rows`` is the most rows per statement, for drivers that send
    rows as statements.
    """
    if database.kind == "postgresql":
        from connectors.jdbc.writers.postgres import PostgresWriter

        return PostgresWriter(database, dialect, timezone)
    if database.kind == "sqlite":
        from connectors.jdbc.writers.sqlite import SqliteWriter

        return SqliteWriter(database, dialect, timezone)
    if database.kind == "duckdb":
        from connectors.jdbc.writers.duckdb import DuckDbWriter

        return DuckDbWriter(database, dialect, timezone)
    if database.kind == "mysql":
        from connectors.jdbc.writers.mysql import MySqlWriter

        return MySqlWriter(database, dialect, timezone, batch_rows)
    raise ConnectError(f"writing to {database.kind} databases is not supported: there is no driver here")
