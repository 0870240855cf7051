"""The drivers that rows are read through, by kind of database."""

from __future__ import annotations

from connectors.jdbc.drivers.base import RowReader, Rows
from connectors.sql.urls import Database

__all__ = ["RowReader", "Rows", "open_reader"]


def open_reader(database: Database, *, isolation: str = "DEFAULT", chunk_rows: int = 10_000) -> RowReader:
    """Connect. For drivers whose fetch size is a number of rows, ``chunk_rows`` sets it."""
    if database.kind == "mysql":
        from connectors.jdbc.drivers.mysql import MySqlReader

        return MySqlReader(database, isolation)
    if database.kind == "duckdb":
        from connectors.jdbc.drivers.duckdb import DuckDbReader

        return DuckDbReader(database)
    if database.kind in ("postgresql", "sqlite"):
        from connectors.jdbc.drivers.adbc import AdbcReader

        return AdbcReader(database, isolation, chunk_rows)
    from connectors.jdbc.drivers.alchemy import AlchemyReader

    return AlchemyReader(database, isolation)
