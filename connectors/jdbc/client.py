"""The one importer of database drivers for reading rows: ADBC, which delivers Arrow from the driver on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import Any, Final

import pyarrow as pa
import sqlalchemy

from connectors.sql.engines import database_errors, open_engine
from connectors.sql.urls import Database

__all__ = ["RowReader", "Rows"]

_CHUNK_BYTES: Final = 4 * 1024 * 1024
"""What PostgreSQL's driver gathers before it hands on: the fastest of 1, 4 and 16 MiB here."""


class Rows:
    """The result of one statement, chunk by chunk. Close it before the next statement."""

    def __init__(self, database: Database, cursor: Any, reader: Any) -> None:
        self._database, self._cursor, self._reader = database, cursor, reader

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            with database_errors(self._database, "reading from"):
                try:
                    chunk = self._reader.read_next_batch()
                except StopIteration:
                    return
            if len(chunk):
                yield chunk

    def close(self) -> None:
        self._reader.close()
        self._cursor.close()


class RowReader:
    """A connection for reading, in autocommit so that no transaction outlives a statement, and beside it one through
    SQLAlchemy that tables are described over."""

    def __init__(self, database: Database, *, isolation: str = "DEFAULT", chunk_rows: int = 10_000) -> None:
        self._database = database
        self._chunk_rows = chunk_rows
        self._reading = False
        self._describing: sqlalchemy.Connection | None = None
        with database_errors(database, "cannot connect to"):
            self._connection = self._connect()
            if isolation != "DEFAULT" and database.kind == "postgresql":
                level = isolation.replace("_", " ")
                self._run(f"SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")

    def _connect(self) -> Any:
        if self._database.kind == "postgresql":
            import adbc_driver_postgresql.dbapi

            return adbc_driver_postgresql.dbapi.connect(self._database.libpq_uri(), autocommit=True)
        import adbc_driver_sqlite.dbapi

        return adbc_driver_sqlite.dbapi.connect(self._database.sqlite_uri(), autocommit=True)

    def _run(self, statement: str) -> None:
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(statement)

    @property
    def describing(self) -> sqlalchemy.Connection:
        """SQLAlchemy's connection, opened when first asked for."""
        if self._describing is None:
            with database_errors(self._database, "cannot connect to"):
                self._describing = open_engine(self._database).connect()
        return self._describing

    def value(self, statement: str) -> Any:
        """The one value that a statement delivers."""
        with database_errors(self._database, "asking"), closing(self._connection.cursor()) as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0]

    def read(self, statement: str, likeness: str) -> Rows:
        """Run a SELECT. ``likeness`` selects one row of constants of the types wanted."""
        with database_errors(self._database, "reading from"):
            cursor = self._connection.cursor()
            self._reading = True
            try:
                reader = self._start(cursor, statement, likeness)
            except BaseException:
                cursor.close()
                raise
        return Rows(self._database, cursor, reader)

    def _start(self, cursor: Any, statement: str, likeness: str) -> Any:
        if self._database.kind == "postgresql":
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(_CHUNK_BYTES)})
            cursor.execute(statement)
            return cursor.fetch_record_batch()
        # SQLite's driver takes each column's type from the first chunk and refuses other storage classes later. So the
        # first row is one of the right types. SQLite answers the parts of a UNION ALL one after the other, and keeps the
        # ORDER BY of the second where nothing else orders the whole.
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(self._chunk_rows)})
        cursor.execute(f"{likeness} UNION ALL SELECT * FROM ({statement})")
        return _WithoutFirstRow(cursor.fetch_record_batch())

    def cancel(self) -> None:
        """Make a statement that runs in another thread end with an error; nothing happens when none runs."""
        if self._reading:
            with suppress(Exception):  # it may have ended in the meantime
                self._connection.adbc_cancel()

    def close(self) -> None:
        for connection in (self._describing, self._connection):
            if connection is not None:
                with suppress(Exception):  # one that was lost cannot say goodbye
                    connection.close()


class _WithoutFirstRow:
    """A reader that drops the very first row."""

    def __init__(self, reader: Any) -> None:
        self._reader, self._first = reader, True

    def read_next_batch(self) -> pa.RecordBatch:
        chunk = self._reader.read_next_batch()
        if self._first:
            self._first = False
            return chunk.slice(1)
        return chunk

    def close(self) -> None:
        self._reader.close()
