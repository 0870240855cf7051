"""DuckDB, which reads the Arrow columns without a copy."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pyarrow as pa

from connect.api import RetriableConnectError
from connectors.jdbc.writers.columns import wall_clock
from connectors.jdbc.writers.writer import Change, Conflict, RowsRefused, TargetColumn, Writer, fits
from connectors.sql.duckdb_files import open_duckdb
from connectors.sql.errors import is_lost_connection
from connectors.sql.tables import TableId

__all__ = ["DuckDbWriter"]

_ROWS = "tidegate_rows"


class DuckDbWriter(Writer):
    def _connect(self) -> None:
        self._connection = open_duckdb(self.database.name, writing=True)
        self._begun = False

    def _execute(self, sql: str, doing: str) -> Any:
        with self.errors(doing):
            if not self._begun:
                self._connection.execute("BEGIN TRANSACTION")
                self._begun = True
            return self._connection.execute(sql)

    @property
    def locking(self) -> str:
        return ""

    def run(self, sql: str) -> int:
        result = self._execute(sql, "writing to")
        with self.errors("writing to"):
            row = result.fetchone()
        return int(row[0]) if row and isinstance(row[0], int) else -1

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        result = self._execute(sql, "asking")
        with self.errors("asking"):
            return list(result.fetchall())

    def columns(self, table: TableId) -> list[TargetColumn] | None:
        text = self.dialect.text
        schema = "current_schema()" if table.schema is None else text(table.schema)
        catalog = "current_database()" if table.catalog is None else text(table.catalog)
        rows = self.ask(
            "SELECT column_name, data_type, NOT is_nullable AND column_default IS NULL FROM duckdb_columns() "
            f"WHERE table_name = {text(table.name)} AND schema_name = {schema} AND database_name = {catalog} "
            "ORDER BY column_index"
        )
        return [TargetColumn(*row) for row in rows] or None

    def apply(self, change: Change) -> None:
        targets = fits((*change.keys, *change.rest), change.columns)
        short = [f"c{number}" for number in range(len(targets))]
        columns = [self._bound(c, t.type) for c, t in zip(change.rows.columns, targets, strict=True)]
        with self.errors("writing to"):
            self._connection.register(_ROWS, pa.table(columns, names=short))
        try:
            values = [f"s.{name}::{target.type}" for name, target in zip(short, targets, strict=True)]
            self._execute(self.staged(change, targets, _ROWS, values), "writing to")
        finally:
            with suppress(Exception):  # the transaction may have failed
                self._connection.unregister(_ROWS)

    def _bound(self, column: pa.Array, type_name: str) -> pa.Array:
        if pa.types.is_timestamp(column.type) and not type_name.startswith("TIMESTAMP WITH"):
            return wall_clock(column, self.timezone)
        return column

    def commit(self) -> None:
        if self._begun:
            self._begun = False
            with self.errors("writing to"):
                self._connection.execute("COMMIT")

    def rollback(self) -> None:
        if self._begun:
            self._begun = False
            with self.errors("writing to"):
                self._connection.execute("ROLLBACK")

    def cancel(self) -> None:
        with suppress(Exception):  # the statement may have ended already
            self._connection.interrupt()

    def close(self) -> None:
        with suppress(Exception):
            self._connection.close()

    def _kind_of(self, error: Exception) -> type[RowsRefused | Conflict | RetriableConnectError] | None:
        import duckdb

        if isinstance(error, duckdb.ConstraintException | duckdb.ConversionException | duckdb.OutOfRangeException):
            return RowsRefused
        if isinstance(error, duckdb.TransactionException):
            return Conflict
        return RetriableConnectError if is_lost_connection(error, "duckdb") else None
