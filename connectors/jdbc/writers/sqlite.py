"""SQLite through ADBC: statements bound to Arrow columns, run row by row in C.

Dates, times and timestamps become milliseconds, as sqlite-jdbc stores them.
"""

from __future__ import annotations

import re
from contextlib import closing
from typing import Final

import pyarrow as pa

from connect.api import RetriableConnectError, require_file
from connectors.jdbc.writers.adbc import AdbcWriter
from connectors.jdbc.writers.columns import as_text, millis
from connectors.jdbc.writers.writer import Change, Conflict, RowsRefused, TargetColumn, fits
from connectors.sql.errors import is_locked_sqlite
from connectors.sql.tables import TableId

__all__ = ["SqliteWriter"]


_RAN: Final = frozenset({8, 9, 10})
"""``ADBC_STATUS_INTEGRITY``, ``INTERNAL`` and ``IO``: the statement was accepted, so the message contains no names from
it.
"""
_REFUSED: Final = re.compile(
    r": (?:(?:UNIQUE|NOT NULL|CHECK|FOREIGN KEY|PRIMARY KEY) constraint failed|datatype mismatch$|string or blob too big$)"
)
"""SQLite's own messages (``sqlite3_errstr``, ``sqlite3HaltConstraint``): the driver does not report its codes."""


class SqliteWriter(AdbcWriter):
    begin = "BEGIN IMMEDIATE"  # a transaction that starts with a read cannot always write later

    def _connect(self) -> None:
        import adbc_driver_sqlite.dbapi

        if self.database.name != ":memory:":
            require_file(self.database.name, writing=True)
        uri = self.database.sqlite_uri().replace("?mode=rw", "?mode=rwc")
        self._connection = adbc_driver_sqlite.dbapi.connect(uri, autocommit=True)
        with closing(self._connection.cursor()) as cursor:
            cursor.execute("PRAGMA busy_timeout = 5000")

    @property
    def locking(self) -> str:
        return ""

    def columns(self, table: TableId) -> list[TargetColumn] | None:
        schema = "" if table.schema is None else self.dialect.quote(table.schema) + "."
        rows = self.ask(f"PRAGMA {schema}table_info({self.dialect.quote(table.name)})")
        return [
            TargetColumn(name, kind, bool(required) and default is None and not key)
            for _, name, kind, required, default, key in rows
        ] or None

    def apply(self, change: Change) -> None:
        targets = fits((*change.keys, *change.rest), change.columns)
        names = {
            column_name: target.name for column_name, target in zip(change.rows.schema.names, targets, strict=True)
        }
        keys, rest = [names[name] for name in change.keys], [names[name] for name in change.rest]
        statement = self.dialect.statement(change.operation, change.table, keys, rest)
        bound = {t.name: self._bound(c) for t, c in zip(targets, change.rows.columns, strict=True)}
        order = statement.parameters
        rows = pa.record_batch([bound[name] for name in order], names=[str(number) for number in range(len(order))])
        with self.errors("writing to"), closing(self._connection.cursor()) as cursor:
            self._begin()
            cursor.executemany(statement.sql, rows)

    def _bound(self, column: pa.Array) -> pa.Array:
        kind = column.type
        if pa.types.is_boolean(kind):
            return column.cast(pa.int64())
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
            return millis(column)
        return as_text(column) if pa.types.is_decimal(kind) else column

    def _kind_of(self, error: Exception) -> type[RowsRefused | Conflict | RetriableConnectError] | None:
        if is_locked_sqlite(error):
            return Conflict
        first = next(iter(str(error).splitlines()), "")
        ran = getattr(error, "status_code", None) in _RAN
        return RowsRefused if ran and _REFUSED.search(first) is not None else None
