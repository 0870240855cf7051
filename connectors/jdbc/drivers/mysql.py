"""MySQL and MariaDB: PyMySQL connects and sends statements; the rows are read from its stream as Arrow data."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError
from connectors.jdbc.drivers.base import CHUNK_BYTES, RowReader, Rows
from connectors.sql.engines import database_errors
from connectors.sql.mysql import connect_mysql
from connectors.sql.mysql_rows import StreamedRows
from connectors.sql.urls import Database

__all__ = ["MySqlReader"]

_TIMESTAMP, _DATE, _DATETIME = 7, 10, 12
_BIT, _GEOMETRY, _BINARY_CHARSET = 16, 255, 63
_BYTES: Final = frozenset({15, 249, 250, 251, 252, 253, 254})
"""Type codes of strings; where their character set is binary, they hold bytes."""
_SESSION: Final = (
    "SET SESSION net_write_timeout = 3600",  # the server must not drop a result while the worker waits for Kafka
    "SET SESSION sql_mode = REPLACE(REPLACE(@@sql_mode, 'ANSI_QUOTES', ''), 'NO_BACKSLASH_ESCAPES', '')",
)


class MySqlReader(RowReader):
    """Reconnects after a statement was abandoned."""

    def __init__(self, database: Database, isolation: str) -> None:
        self._database = database
        self._isolation = isolation
        self._describing: Any = None
        self._connection: Any = None
        with database_errors(database, "cannot connect to"):
            self._connection = self._connect()

    def _connect(self) -> Any:
        connection = connect_mysql(self._database)
        with connection.cursor() as cursor:
            for statement in _SESSION:
                cursor.execute(statement)
            if self._isolation not in ("DEFAULT", "SQL_SERVER_SNAPSHOT"):
                level = self._isolation.replace("_", " ")
                cursor.execute(f"SET SESSION TRANSACTION ISOLATION LEVEL {level}")
        return connection

    def _ready(self) -> Any:
        if self._connection is None or not self._connection.open:
            with database_errors(self._database, "cannot connect to"):
                self._connection = self._connect()
        return self._connection

    @property
    def describing(self) -> Any:
        """PyMySQL's connection."""
        return self._ready()

    def value(self, statement: str) -> Any:
        connection = self._ready()
        with database_errors(self._database, "asking"), connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0]

    def read(self, statement: str, likeness: str, widest: str | None) -> Rows:
        connection = self._ready()
        with database_errors(self._database, "reading from"):
            rows = StreamedRows(connection, statement, chunk_bytes=CHUNK_BYTES)
        nulls = self._database.parameters.get("zero_dates") == "null"
        return Rows(self._database, _Chunks(rows, zero_dates_are_null=nulls))

    def cancel(self) -> None:
        connection = self._connection
        if connection is None or not connection.open:
            return
        with suppress(Exception), closing(connect_mysql(self._database)) as other, other.cursor() as cursor:
            cursor.execute(f"KILL QUERY {int(connection.thread_id())}")

    def close(self) -> None:
        if self._connection is not None:
            with suppress(Exception):  # closing fails on a lost connection
                self._connection.close()


class _Chunks:
    def __init__(self, rows: StreamedRows, *, zero_dates_are_null: bool) -> None:
        self._rows = rows
        self._zero_dates_are_null = zero_dates_are_null

    def read_next_batch(self) -> pa.RecordBatch:
        columns = self._rows.next()
        if columns is None:
            raise StopIteration
        fields = self._rows.fields
        made = [self._typed(column, field) for column, field in zip(columns, fields, strict=True)]
        return pa.RecordBatch.from_arrays(made, names=[field.name for field in fields])

    def _typed(self, column: pa.Array, field: Any) -> pa.Array:
        """Bytes unchanged, everything else as text; a TIMESTAMP gets the session's time zone, UTC."""
        code = field.type_code
        if code in (_BIT, _GEOMETRY) or (code in _BYTES and field.charsetnr == _BINARY_CHARSET):
            return column
        texts = column.cast(pa.string())
        if code in (_TIMESTAMP, _DATE, _DATETIME):
            texts = self._without_zero_dates(texts, field.name)
        if code == _TIMESTAMP:
            return texts.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))
        return texts

    def _without_zero_dates(self, texts: pa.Array, name: str) -> pa.Array:
        zero = pc.starts_with(texts, "0000-00-00")
        if not pc.any(zero).as_py():
            return texts
        if not self._zero_dates_are_null:
            raise DataError(
                f"column {name!r} holds the date 0000-00-00, which is none: add zeroDateTimeBehavior=CONVERT_TO_NULL to "
                "connection.url to read it as null"
            )
        return pc.if_else(zero, pa.scalar(None, pa.string()), texts)

    def close(self) -> None:
        self._rows.close()
