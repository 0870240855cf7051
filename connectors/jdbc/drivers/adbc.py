"""PostgreSQL and SQLite through ADBC, which delivers Arrow data directly."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Any, Final

import pyarrow as pa
import sqlalchemy

from connect.api import require_file
from connectors.jdbc.drivers.base import CHUNK_BYTES, RowReader, Rows
from connectors.sql.engines import database_errors, open_engine
from connectors.sql.urls import Database

__all__ = ["AdbcReader"]

_MOST_BYTES: Final = 4 * CHUNK_BYTES
"""The most bytes that one chunk may have, assuming that all its rows are as wide as the widest."""
_UNMEASURED_ROWS: Final = 64
"""The chunk size in rows where the width of the rows is unknown, as for a query.

A larger one would be faster (1.9 µs a row here, 0.9 at 10,000 rows), but too much memory for rows of 1 MB each.
"""


class AdbcReader(RowReader):
    """Besides its own connection there is one through SQLAlchemy, which describes tables."""

    def __init__(self, database: Database, isolation: str, chunk_rows: int) -> None:
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

        if self._database.name != ":memory:":
            require_file(self._database.name)
        return adbc_driver_sqlite.dbapi.connect(self._database.sqlite_uri(), autocommit=True)

    def _run(self, statement: str) -> None:
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(statement)

    @property
    def describing(self) -> sqlalchemy.Connection:
        """SQLAlchemy's connection, opened at the first use."""
        if self._describing is None:
            with database_errors(self._database, "cannot connect to"):
                self._describing = open_engine(self._database).connect()
        return self._describing

    def value(self, statement: str) -> Any:
        with database_errors(self._database, "asking"), closing(self._connection.cursor()) as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0]

    def read(self, statement: str, likeness: str, widest: str | None) -> Rows:
        with database_errors(self._database, "reading from"):
            cursor = self._connection.cursor()
            self._reading = True
            try:
                reader = self._start(cursor, statement, likeness, widest)
            except BaseException:
                cursor.close()
                raise
        return Rows(self._database, reader)

    def _fitting(self, widest: str | None) -> int:
        """How many rows SQLite's driver may fetch at once so that their bytes stay limited: it can only limit rows."""
        if widest is None:
            return min(self._chunk_rows, _UNMEASURED_ROWS)
        with closing(self._connection.cursor()) as cursor:
            cursor.execute(widest)
            longest = sum(octets or 0 for octets in cursor.fetchone())
        return max(1, min(self._chunk_rows, _MOST_BYTES // max(longest, 1)))

    def _start(self, cursor: Any, statement: str, likeness: str, widest: str | None) -> _Chunks:
        if self._database.kind == "postgresql":
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(CHUNK_BYTES)})
            cursor.execute(statement)
            return _Chunks(cursor, whole_rows=0)
        # SQLite's driver determines each column's type from the first chunk and rejects other storage classes later.
        # So the first row is one that has the right types. SQLite returns the parts of a UNION ALL one after the other,
        # and keeps the ORDER BY of the second where the whole has no other order.
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(self._fitting(widest))})
        cursor.execute(f"{likeness} UNION ALL SELECT * FROM ({statement})")
        return _Chunks(cursor, skip=1, whole_rows=self._chunk_rows)

    def cancel(self) -> None:
        if self._reading:
            with suppress(Exception):  # the statement may have ended already
                self._connection.adbc_cancel()

    def close(self) -> None:
        for connection in (self._describing, self._connection):
            if connection is not None:
                with suppress(Exception):  # closing fails on a lost connection
                    connection.close()


class _Chunks:
    """The chunks of a cursor, without the first ``skip`` rows; chunks smaller than ``whole_rows`` are joined."""

    def __init__(self, cursor: Any, *, skip: int = 0, whole_rows: int) -> None:
        self._cursor, self._skip, self._whole_rows = cursor, skip, whole_rows
        self._reader = cursor.fetch_record_batch()

    def read_next_batch(self) -> pa.RecordBatch:
        chunk = self._reader.read_next_batch()
        skip, self._skip = self._skip, 0
        gathered = [chunk.slice(skip) if skip else chunk]
        count, size = len(chunk), chunk.nbytes
        while count < self._whole_rows and size < CHUNK_BYTES:
            try:
                chunk = self._reader.read_next_batch()
            except StopIteration:
                break
            gathered.append(chunk)
            count, size = count + len(chunk), size + chunk.nbytes
        return gathered[0] if len(gathered) == 1 else pa.concat_batches(gathered)

    def close(self) -> None:
        self._reader.close()
        self._cursor.close()
