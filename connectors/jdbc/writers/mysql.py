"""MySQL and MariaDB through PyMySQL, which combines the rows of an executemany into few statements."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import pyarrow as pa

from connect.api import RetriableConnectError
from connectors.jdbc.writers.columns import wall_clock
from connectors.jdbc.writers.writer import Change, Conflict, RowsRefused, TargetColumn, Writer, fits
from connectors.sql.mysql import LOST_CONNECTION, abort_mysql, connect_mysql
from connectors.sql.tables import TableId
from connectors.sql.urls import Database
from connectors.sql.write_dialects import WriteDialect

__all__ = ["MySqlWriter"]

_IN_THE_WAY: Final = frozenset({1205, 1213, 1020})
_ROWS: Final = frozenset(
    {
        1022,
        1048,
        1062,
        1169,
        1216,
        1217,
        1264,
        1265,
        1292,
        1364,
        1366,
        1406,
        1451,
        1452,
        1557,
        3140,
        3819,
        4025,
        1411,
        1690,
    }
)
"""Error codes of MariaDB and MySQL that concern a value or a constraint."""


_SERVER_PATIENCE: Final = (
    "SET SESSION idle_transaction_timeout = IF(@@idle_transaction_timeout = 0, 60, @@idle_transaction_timeout)"
)
"""MariaDB ends a session that does nothing for a minute in the middle of a transaction, such as one whose machine is gone, and
with it the locks that the task's successor waits for. MySQL has no such setting. What is set on the server stays."""


class MySqlWriter(Writer):
    def __init__(self, database: Database, dialect: WriteDialect, timezone: str, batch_rows: int) -> None:
        self._batch_rows = max(batch_rows, 1)
        super().__init__(database, dialect, timezone)

    def _connect(self) -> None:
        self._connection = connect_mysql(self.database, autocommit=False)
        with self._connection.cursor() as cursor:  # a value that does not fit is an error instead of being truncated
            cursor.execute("SET SESSION sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES')")
            if "MariaDB" in self._connection.get_server_info():
                cursor.execute(_SERVER_PATIENCE)

    def run(self, sql: str) -> int:
        with self.errors("writing to"), self._connection.cursor() as cursor:
            return int(cursor.execute(sql.replace("%%", "%")))

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        with self.errors("asking"), self._connection.cursor() as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def columns(self, table: TableId) -> list[TargetColumn] | None:
        text = self.dialect.text
        schema = table.schema or table.catalog
        rows = self.ask(
            "SELECT column_name, column_type, is_nullable = 'NO' AND column_default IS NULL AND extra NOT LIKE '%auto_inc%' "
            f"FROM information_schema.columns WHERE table_name = {text(table.name)} "
            f"AND table_schema = {'DATABASE()' if schema is None else text(schema)} ORDER BY ordinal_position"
        )
        return [TargetColumn(name, kind, bool(required)) for name, kind, required in rows] or None

    def apply(self, change: Change) -> None:
        targets = fits((*change.keys, *change.rest), change.columns)
        names = [target.name for target in targets]
        count = len(change.keys)
        statement = self.dialect.statement(change.operation, change.table, names[:count], names[count:])
        bound = {t.name: self._bound(c).to_pylist() for t, c in zip(targets, change.rows.columns, strict=True)}
        rows = list(zip(*(bound[name] for name in statement.parameters), strict=True))
        with self.errors("writing to"), self._connection.cursor() as cursor:
            for start in range(0, len(rows), self._batch_rows):
                cursor.executemany(statement.sql, rows[start : start + self._batch_rows])

    def _bound(self, column: pa.Array) -> pa.Array:
        if pa.types.is_timestamp(column.type):
            return wall_clock(column, self.timezone)
        return column

    def commit(self) -> None:
        with self.errors("writing to"):
            self._connection.commit()

    def rollback(self) -> None:
        with self.errors("writing to"):
            self._connection.rollback()

    def cancel(self) -> None:
        abort_mysql(self._connection)

    def close(self) -> None:
        with suppress(Exception):  # closing fails on a lost connection
            self._connection.close()

    def _kind_of(self, error: Exception) -> type[RowsRefused | Conflict | RetriableConnectError] | None:
        code = error.args[0] if error.args else None
        if code in _ROWS:
            return RowsRefused
        if code in _IN_THE_WAY:
            return Conflict
        return RetriableConnectError if code in LOST_CONNECTION else None
