"""DuckDB, which returns Arrow data itself."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from connectors.jdbc.drivers.base import RowReader, Rows
from connectors.sql.duckdb_files import open_duckdb
from connectors.sql.engines import database_errors
from connectors.sql.urls import Database

__all__ = ["DuckDbReader"]

_ROWS: Final = 2048
"""Rows in a chunk: the size of DuckDB's own vectors, so that wide rows fit into memory too."""


class DuckDbReader(RowReader):
    """The file is held open only while a statement runs, because no other process can write to it in that time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._connection: Any = None
        _ = self.describing

    @property
    def describing(self) -> Any:
        """DuckDB's own connection."""
        if self._connection is None:
            with database_errors(self._database, "cannot connect to"):
                self._connection = open_duckdb(self._database.name)
        return self._connection

    def value(self, statement: str) -> Any:
        connection = self.describing
        with database_errors(self._database, "asking"):
            return connection.execute(statement).fetchall()[0][0]

    def read(self, statement: str, likeness: str, widest: str | None) -> Rows:
        connection = self.describing
        with database_errors(self._database, "reading from"):
            return Rows(self._database, _Chunks(connection.sql(statement)))

    def cancel(self) -> None:
        connection = self._connection
        if connection is not None:
            with suppress(Exception):  # the statement may have ended already
                connection.interrupt()

    def rest(self) -> None:
        if self._database.name != ":memory:":
            self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()


class _Chunks:
    def __init__(self, relation: Any) -> None:
        self._reader = relation.to_arrow_reader(_ROWS)

    def read_next_batch(self) -> pa.RecordBatch:
        return self._reader.read_next_batch()

    def close(self) -> None:
        with suppress(Exception):
            self._reader.close()
