"""PostgreSQL and SQLite through ADBC, which delivers Arrow from the driver on."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Any

import pyarrow as pa
import sqlalchemy

from connectors.jdbc.drivers.base import CHUNK_BYTES, RowReader, Rows
from connectors.sql.engines import database_errors, open_engine
from connectors.sql.urls import Database

__all__ = ["AdbcReader"]


class AdbcReader(RowReader):
    """Beside its connection there is one through SQLAlchemy that tables are described over."""

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
        with database_errors(self._database, "asking"), closing(self._connection.cursor()) as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0]

    def read(self, statement: str, likeness: str) -> Rows:
        with database_errors(self._database, "reading from"):
            cursor = self._connection.cursor()
            self._reading = True
            try:
                reader = self._start(cursor, statement, likeness)
            except BaseException:
                cursor.close()
                raise
        return Rows(self._database, reader)

    def _start(self, cursor: Any, statement: str, likeness: str) -> _Chunks:
        if self._database.kind == "postgresql":
            cursor.adbc_statement.set_options(**{"adbc.postgresql.batch_size_hint_bytes": str(CHUNK_BYTES)})
            cursor.execute(statement)
            return _Chunks(cursor, skip=0)
        # SQLite's driver takes each column's type from the first chunk and refuses other storage classes later. So the
        # first row is one of the right types. SQLite answers the parts of a UNION ALL one after the other, and keeps the
        # ORDER BY of the second where nothing else orders the whole.
        cursor.adbc_statement.set_options(**{"adbc.sqlite.query.batch_rows": str(self._chunk_rows)})
        cursor.execute(f"{likeness} UNION ALL SELECT * FROM ({statement})")
        return _Chunks(cursor, skip=1)

    def cancel(self) -> None:
        if self._reading:
            with suppress(Exception):  # it may have ended in the meantime
                self._connection.adbc_cancel()

    def close(self) -> None:
        for connection in (self._describing, self._connection):
            if connection is not None:
                with suppress(Exception):  # one that was lost cannot say goodbye
                    connection.close()


class _Chunks:
    """What a cursor delivers, without the first ``skip`` rows."""

    def __init__(self, cursor: Any, *, skip: int) -> None:
        self._cursor, self._skip = cursor, skip
        self._reader = cursor.fetch_record_batch()

    def read_next_batch(self) -> pa.RecordBatch:
        chunk = self._reader.read_next_batch()
        skip, self._skip = self._skip, 0
        return chunk.slice(skip) if skip else chunk

    def close(self) -> None:
        self._reader.close()
        self._cursor.close()
