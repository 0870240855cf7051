"""PostgreSQL: rows are sent as binary COPY, in Arrow all the way, to the table itself or to a temporary table of the
session.
"""

from __future__ import annotations

import hashlib
import re
from contextlib import closing, suppress
from typing import Any, Final

import pyarrow as pa

from connect.api import RetriableConnectError
from connectors.jdbc.writers.adbc import AdbcWriter
from connectors.jdbc.writers.columns import wall_clock
from connectors.jdbc.writers.writer import Change, Conflict, RowsRefused, TargetColumn, fits
from connectors.sql.tables import TableId

__all__ = ["PostgresWriter"]

_COLUMNS: Final = """
SELECT a.attname, format_type(a.atttypid, a.atttypmod), (a.attnotnull AND NOT a.atthasdef AND a.attidentity = '')::text
FROM pg_attribute a WHERE a.attrelid = to_regclass({}) AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
ORDER BY a.attnum
"""

_BINARY: Final[dict[str, pa.DataType]] = {
    "smallint": pa.int16(),
    "integer": pa.int32(),
    "bigint": pa.int64(),
    "real": pa.float32(),
    "double precision": pa.float64(),
    "boolean": pa.bool_(),
    "text": pa.string(),
    "character varying": pa.string(),
    "character": pa.string(),  # an explicit cast would truncate a value that is too long
    "bytea": pa.binary(),
    "date": pa.date32(),
    "time without time zone": pa.time64("us"),
    "timestamp without time zone": pa.timestamp("us"),
    "timestamp with time zone": pa.timestamp("us", "UTC"),
}
"""The Arrow types whose binary form is exactly the database type's.

All others are sent as text or decimal and cast by the server.
"""


_COPY_ROWS: Final = 4096
"""Rows sent at once: the driver and libpq each collect them in a growing buffer until they are sent."""


_SERVER_PRESENT: Final = """
SELECT set_config(name, CASE name
  WHEN 'tcp_keepalives_idle' THEN '10' WHEN 'tcp_keepalives_interval' THEN '5' WHEN 'tcp_keepalives_count' THEN '4'
  WHEN 'tcp_user_timeout' THEN '30000' ELSE '10000' END, false)
FROM pg_settings WHERE name IN ('tcp_keepalives_idle', 'tcp_keepalives_interval', 'tcp_keepalives_count',
  'tcp_user_timeout', 'client_connection_check_interval') AND source IN ('default', 'configuration file')
"""
"""The server's side of ``PRESENT`` (PostgreSQL's manual, "TCP Settings"): its session for a machine that is gone ends after 30 s,
and with it the transaction, whose locks the task's successor waits for. Without, Linux would keep it for two hours. What is set
for the user, the database or by the URL stays."""


class PostgresWriter(AdbcWriter):
    def _connect(self) -> None:
        import adbc_driver_postgresql.dbapi

        self._connection = adbc_driver_postgresql.dbapi.connect(self.database.libpq_uri(), autocommit=True)
        # a relative of PostgreSQL may not have such settings; then it is as the server does it
        with suppress(adbc_driver_postgresql.dbapi.Error), closing(self._connection.cursor()) as cursor:
            cursor.execute(_SERVER_PRESENT)
            cursor.fetchall()

    def columns(self, table: TableId) -> list[TargetColumn] | None:
        rows = self.ask(_COLUMNS.format(self.dialect.text(self.dialect.table(table))))
        return [TargetColumn(name, kind, required == "true") for name, kind, required in rows] or None

    def apply(self, change: Change) -> None:
        names = (*change.keys, *change.rest)
        targets = fits(names, change.columns)
        columns, casts = [], []
        for column, target in zip(change.rows.columns, targets, strict=True):
            made, cast = self._bound(column, target.type)
            columns.append(made)
            casts.append(cast)
        if change.operation == "insert" and not any(casts):
            rows = pa.record_batch(columns, names=[target.name for target in targets])
            self._copy(self._folded(change.table.name), rows, schema=self._folded(change.table.schema))
            return
        # numbered, because the table's own columns may have any names
        short = [f"c{number}" for number in range(len(names))]
        rows = pa.record_batch(columns, names=short)
        staging = self._staging(rows.schema)
        self._copy(staging, rows, schema=None)
        source = [f"s.{name}{cast}" for name, cast in zip(short, casts, strict=True)]
        self.run(self.staged(change, targets, staging, source))
        self.run(f"TRUNCATE {staging}")

    def _bound(self, column: pa.Array, type_name: str) -> tuple[pa.Array, str]:
        """The column as COPY accepts it, and the cast that it then needs."""
        kind = column.type
        bare = re.sub(r"\([^)]*\)", "", type_name)
        if pa.types.is_timestamp(kind):
            if bare == "timestamp with time zone":
                return column.cast(pa.timestamp("us", "UTC")), ""
            return wall_clock(column, self.timezone), "" if bare == "timestamp without time zone" else f"::{type_name}"
        if pa.types.is_decimal(kind):
            return column, "" if bare == "numeric" else f"::{type_name}"
        if pa.types.is_list(kind):
            return _list(column), "" if f"{_BARE.get(_list(column).type.value_type)}[]" == bare else f"::{type_name}"
        if bare in _BINARY and _is_lossless(kind, _BINARY[bare]):
            return column.cast(_BINARY[bare]), ""
        if pa.types.is_time(kind):
            return column.cast(pa.time64("us")), f"::{type_name}"
        if kind == pa.int8():
            column = column.cast(pa.int16())
        # a text may be cast to types that only differ in form; a text for a number is the user's mistake
        return column, f"::{type_name}" if pa.types.is_string(column.type) and bare not in _BINARY else ""

    def _folded(self, name: Any) -> Any:
        """A name as the server stores it: lower case if it is not quoted."""
        return name.lower() if name is not None and not self.dialect.quoting else name

    def _staging(self, schema: pa.Schema) -> str:
        """An empty table of this session with columns of these types; one for each set of types."""
        types = [_type_name(field.type) for field in schema]
        name = "tidegate_" + hashlib.sha256(",".join(types).encode()).hexdigest()[:16]
        columns = ", ".join(f"{field.name} {kind}" for field, kind in zip(schema, types, strict=True))
        self.run("SET LOCAL client_min_messages = warning")
        self.run(f"CREATE TEMP TABLE IF NOT EXISTS {name} ({columns}) ON COMMIT DELETE ROWS")
        return f"pg_temp.{name}"

    def _copy(self, table: str, rows: pa.RecordBatch, *, schema: str | None) -> None:
        temporary = table.startswith("pg_temp.")
        with self.errors("writing to"), closing(self._connection.cursor()) as cursor:
            self._begin()
            pieces = pa.Table.from_batches([rows]).to_reader(max_chunksize=_COPY_ROWS)
            cursor.adbc_ingest(
                table.removeprefix("pg_temp."), pieces, mode="append", db_schema_name=schema, temporary=temporary
            )

    def _kind_of(self, error: Exception) -> type[RowsRefused | Conflict | RetriableConnectError] | None:
        state = getattr(error, "sqlstate", None) or ""
        if state.startswith(("22", "23", "44")):
            return RowsRefused
        if state.startswith("40") or state == "55P03":
            return Conflict
        return RetriableConnectError if state.startswith(("08", "57P", "53")) else None


def _list(column: pa.Array) -> pa.Array:
    items = column.type.value_type
    if items == pa.int8():
        return column.cast(pa.list_(pa.int16()))
    if pa.types.is_timestamp(items) or pa.types.is_time(items) or pa.types.is_decimal(items) or pa.types.is_date(items):
        return column.cast(pa.list_(pa.string()))
    return column


_BARE: Final = {kind: name for name, kind in _BINARY.items() if not name.startswith("character")}


def _is_lossless(source: pa.DataType, target: pa.DataType) -> bool:
    if source == target:
        return True
    if pa.types.is_integer(source) and pa.types.is_integer(target):
        return bool(source.bit_width < target.bit_width)
    same_family = (pa.types.is_floating, pa.types.is_time)
    return any(family(source) and family(target) and source.bit_width <= target.bit_width for family in same_family)


def _type_name(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return _type_name(kind.value_type) + "[]"
    return "numeric" if pa.types.is_decimal(kind) else _BARE[kind]
