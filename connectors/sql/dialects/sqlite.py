"""Reading SQLite."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any, Final

import sqlalchemy
from sqlalchemy import types

from connect.api import Schema, SchemaType
from connectors.sql.dialects.base import EPOCH, Column, Dialect
from connectors.sql.tables import ReflectedColumn, TableId, columns_of

__all__ = ["SqliteDialect"]


class SqliteDialect(Dialect):
    """SQLite through ADBC.

    A declared type does not restrict values, so each column is selected in one storage class; a cell with another class
    ends the read with an error rather than being guessed at.
    """

    wide = True
    octets = "octet_length"

    @property
    def now(self) -> str:
        return "SELECT " + _julian_millis("'now'") + " * 1000"

    def instant(self, expression: str, *, zoned: bool) -> str:
        return f"CASE typeof({expression}) WHEN 'text' THEN {_julian_millis(expression)} ELSE {expression} END"

    def literal(self, epoch_micros: int, *, zoned: bool) -> str:
        wall = self.local(epoch_micros).replace(tzinfo=UTC)
        return str((wall - EPOCH) // timedelta(milliseconds=1))

    def _column(self, column: ReflectedColumn, schema: Schema) -> Column:
        name = self.quote(column.name)
        stamp = isinstance(column.type, types.DateTime)
        textual = stamp or isinstance(column.type, types.Date | types.Time) or schema.type is SchemaType.STRING
        select, like = (f"CAST({name} AS TEXT)", "''") if textual else (name, self._like(schema))
        return Column(column.name, schema, select, increments=column.increments, timestamp=stamp, like=like)

    def _like(self, schema: Schema) -> str:
        if schema.type is SchemaType.BYTES:
            return "x''" if schema.name is None else "0" if schema.scale == 0 else "0.0"
        return "0.0" if schema.type in (SchemaType.FLOAT32, SchemaType.FLOAT64) else "0"

    def reflect_table(self, connection: sqlalchemy.Connection, table: TableId) -> list[ReflectedColumn]:
        return self._probe(connection, self.table(table), columns_of(connection, table))

    def reflect_query(self, connection: sqlalchemy.Connection, query: str) -> list[ReflectedColumn]:
        """A temporary view of the query shows the declared types of the columns that come directly from tables."""
        view = TableId(None, "temp", "tidegate_query")
        connection.exec_driver_sql('DROP VIEW IF EXISTS temp."tidegate_query"').close()
        connection.exec_driver_sql(f'CREATE TEMP VIEW "tidegate_query" AS {query}').close()
        return self._probe(connection, 'temp."tidegate_query"', columns_of(connection, view))

    def _probe(self, connection: Any, source: str, columns: list[ReflectedColumn]) -> list[ReflectedColumn]:
        """Give columns without an informative type (none declared, plain NUMERIC, an expression) the type of their
        first values.
        """
        vague = [c for c in columns if isinstance(c.type, types.NullType) or _is_plain_numeric(c.type)]
        if not vague:
            return columns
        probes = ", ".join(f"group_concat(DISTINCT typeof({self.quote(c.name)}))" for c in vague)
        names = ", ".join(self.quote(c.name) for c in vague)
        row = connection.exec_driver_sql(
            f"SELECT {probes} FROM (SELECT {names} FROM {source} LIMIT {_PROBED_ROWS})"
        ).one()
        kinds = {c.name: _kind_of_cells(set((seen or "").split(",")), c) for c, seen in zip(vague, row, strict=True)}
        return [
            ReflectedColumn(c.name, kinds[c.name], c.nullable, c.increments) if c.name in kinds else c for c in columns
        ]


_PROBED_ROWS: Final = 1000


def _is_plain_numeric(kind: Any) -> bool:
    return isinstance(kind, types.Numeric) and not isinstance(kind, types.Float) and kind.precision is None


def _kind_of_cells(seen: set[str], column: ReflectedColumn) -> types.TypeEngine[Any]:
    if "text" in seen:
        return types.Text()
    if "blob" in seen:
        return types.LargeBinary()
    if "real" in seen or _is_plain_numeric(column.type):
        return types.Float()
    return types.BigInteger() if "integer" in seen else types.Text()


def _julian_millis(expression: str) -> str:
    """Milliseconds since 1970 of a date text; SQLite's own resolution for dates is the millisecond."""
    return f"CAST(round((julianday({expression}) - 2440587.5) * 86400000) AS INTEGER)"
