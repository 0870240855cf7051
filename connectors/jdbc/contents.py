"""Both sides of a JDBC sink: its own code turns records into rows, and the rows of their tables are read back."""

from __future__ import annotations

import datetime as dt
import json
import math
import re
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from zoneinfo import ZoneInfo

import pyarrow as pa

from connect.api import ConnectError, RecordBatch, SinkContents, TargetRows, TopicPartition
from connectors.jdbc.drivers import open_reader
from connectors.jdbc.sink_rows import Part, RowShaper
from connectors.jdbc.sink_settings import SinkSettings
from connectors.jdbc.writers.writer import TargetColumn, Writer
from connectors.sql.engines import database_errors
from connectors.sql.tables import TableId
from connectors.sql.write_dialects import parse_table
from connectors.sql.write_types import ColumnSpec

__all__ = ["JdbcContents"]

_SQLITE_ROWS: Final = 5_000
_READ_AS_IS: Final = re.compile(
    r"(small|big|tiny|medium)?int\b|integer|real|float|double|bool|text|char|bytea|blob|binary|date|time|numeric|decimal|bit",
    re.IGNORECASE,
)
"""Types of PostgreSQL that its driver returns in a form of their own; others are read as text."""


class JdbcContents(SinkContents):
    """``connected`` opens the connection. Values are compared as the column can hold them, in the precision of its type."""

    def __init__(
        self,
        settings: SinkSettings,
        connected: Callable[[], Writer],
        connector: str,
        committed: Mapping[TopicPartition, int],
    ) -> None:
        if settings.insert_mode == "update":
            raise ConnectError(
                "insert.mode=update changes rows that others made: the topic does not say which there are"
            )
        self._settings, self._connector, self._committed = settings, connector, committed
        self._shaper = RowShaper(settings)
        self._writer = connected()
        self._tables: dict[TableId, _Table] = {}
        self._stated: Mapping[TopicPartition, int] = {}

    def positions(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int]:
        self._stated = self._in_database(partitions)
        return self._stated

    def positions_after(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, int] | None:
        return self._in_database(partitions) if self._stated else None

    def _in_database(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offsets of ``tidegate.offsets.table``."""
        if not self._settings.offsets_table:
            return {}
        writer, table = self._writer, parse_table(self._settings.offsets_table)
        made: dict[TopicPartition, int] = {}
        if writer.columns(table) is not None:
            rows = writer.ask(
                f"SELECT topic, part, next_offset FROM {writer.dialect.table(table)} "
                f"WHERE connector = {writer.dialect.text(self._connector)}"
            )
            stored = {TopicPartition(topic, int(part)): int(offset) for topic, part, offset in rows}
            made = {each: stored[each] for each in partitions if stored.get(each, -1) >= 0}
        writer.rollback()
        return made

    def expected(self, batch: RecordBatch) -> Iterator[TargetRows]:
        parts = self._shaper.parts([batch])
        self.refused += len(self._shaper.refused)
        for part in parts:
            table = self._table(part)
            keys = [table.name_of(name) for name in part.keys]
            if part.operation == "truncate":
                yield TargetRows(table.shown, "truncate", {})
                continue
            columns = {
                table.name_of(spec.name): table.values(spec, column)
                for spec, column in zip(part.specs, part.rows.columns, strict=True)
            }
            action = {"delete": "delete", "upsert": "replace"}.get(part.operation, "insert" if keys else "append")
            yield TargetRows(table.shown, action, columns, keys)  # type: ignore[arg-type]

    def _table(self, part: Part) -> _Table:
        if part.table not in self._tables:
            known = self._writer.columns(part.table)
            self._writer.rollback()
            if known is None:
                raise ConnectError(
                    f"there is no table {self._writer.dialect.table(part.table)} in {self._writer.database}"
                )
            self._tables[part.table] = _Table(part.table, known, self._settings, self._writer)
        table = self._tables[part.table]
        for spec in part.specs:
            table.learn(spec)
        return table

    def stored(self) -> Iterator[TargetRows]:
        for table in self._tables.values():
            keys = [table.name_of(spec.name) for spec in table.specs.values() if spec.key]
            for columns in self._read(table):
                yield TargetRows(table.shown, "append", columns, keys)

    def _read(self, table: _Table) -> Iterator[dict[str, list[Any]]]:
        database = self._writer.database
        if not table.specs:
            return
        if database.kind == "sqlite":
            with (
                database_errors(database, "reading from"),
                closing(sqlite3.connect(database.sqlite_uri(), uri=True)) as connection,
                closing(connection.execute(table.select())) as cursor,
            ):
                while rows := cursor.fetchmany(_SQLITE_ROWS):
                    yield table.read([list(column) for column in zip(*rows, strict=True)])
            return
        reader = open_reader(database)
        try:
            with closing(reader.read(table.select(), "", None)) as read:
                for chunk in read:
                    yield table.read([_listed(column) for column in chunk.columns])
        finally:
            reader.close()

    def close(self) -> None:
        self._writer.close()


def _listed(column: pa.Array) -> list[Any]:
    values: list[Any] = (column.storage if isinstance(column, pa.ExtensionArray) else column).to_pylist()
    return values


class _Table:
    """A table, and the columns of it that records so far have."""

    def __init__(self, table: TableId, known: Sequence[TargetColumn], settings: SinkSettings, writer: Writer) -> None:
        self.shown = ".".join(part for part in table if part)
        self.specs: dict[str, ColumnSpec] = {}
        """By the names of the table's columns."""
        self._table, self._dialect, self._kind = table, writer.dialect, writer.database.kind
        self._settings = settings
        self._columns = {column.name: column for column in known}
        self._folded = {} if settings.quoting else {column.name.casefold(): column.name for column in known}

    def name_of(self, field: str) -> str:
        return field if field in self._columns else self._folded.get(field.casefold(), field)

    def learn(self, spec: ColumnSpec) -> None:
        name = self.name_of(spec.name)
        if name not in self._columns:
            raise ConnectError(f"table {self.shown} has no column {name}, which records have")
        self.specs[name] = spec

    def select(self) -> str:
        columns = []
        for name in self.specs:
            quoted, kind = self._quoted(name), self._columns[name].type
            as_text = self._kind == "postgresql" and (_READ_AS_IS.match(kind) is None or kind.endswith("[]"))
            columns.append(f"{quoted}::text AS {quoted}" if as_text and not self.specs[name].array else quoted)
        return f"SELECT {', '.join(columns)} FROM {self._dialect.table(self._table)}"

    def _quoted(self, name: str) -> str:
        before, after = self._dialect.quotes
        return f"{before}{name.replace(after, after * 2)}{after}"

    def read(self, columns: Sequence[Sequence[Any]]) -> dict[str, list[Any]]:
        return {
            name: [self._comparable(value, spec, name) for value in values]
            for (name, spec), values in zip(self.specs.items(), columns, strict=True)
        }

    def values(self, spec: ColumnSpec, column: pa.Array) -> list[Any]:
        name = self.name_of(spec.name)
        return [self._comparable(value, spec, name) for value in column.to_pylist()]

    def _comparable(self, value: Any, spec: ColumnSpec, name: str) -> Any:
        """A value in the form that it has on both sides; unchanged where it is not what the column should hold."""
        if value is None:
            return None
        if spec.array:
            items = _items(value)
            return value if items is None else [self._cell(each, spec, name) for each in items]
        return self._cell(value, spec, name)

    def _cell(self, value: Any, spec: ColumnSpec, name: str) -> Any:
        if value is None:
            return None
        kind = self._columns[name].type
        try:
            if spec.kind in _TEMPORAL:
                return self._temporal(value, spec.kind, kind)
            if spec.kind == "json" or "json" in kind.lower():
                return json.dumps(json.loads(value), sort_keys=True)
        except (ValueError, TypeError, OverflowError):
            return str(value)
        return _plain(value, spec, kind, self._kind)

    def _temporal(self, value: Any, kind: str, column: str) -> int:
        """Days of a date, or microseconds of a time or an instant, in the precision of the column."""
        if kind == "date":
            if isinstance(value, int | float):
                return int(value) // 86_400_000
            day = value if isinstance(value, dt.date) else dt.datetime.fromisoformat(str(value))
            return day.toordinal() - _EPOCH_DAY
        if kind == "time":
            micros = int(value) * 1000 if isinstance(value, int | float) else _micros_of_day(value)
        else:
            micros = int(value) * 1000 if isinstance(value, int | float) else self._instant(value)
        digits = 3 if self._kind == "sqlite" else _digits(column, 0 if self._kind == "mysql" else 6)
        unit: int = 10 ** (6 - digits)
        return (micros // unit if self._kind == "sqlite" else (micros + unit // 2) // unit) * unit

    def _instant(self, value: Any) -> int:
        moment = value if isinstance(value, dt.datetime) else dt.datetime.fromisoformat(str(value))
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=ZoneInfo(self._settings.timezone))
        since: dt.timedelta = moment - _EPOCH
        return since // dt.timedelta(microseconds=1)


_TEMPORAL: Final = frozenset({"date", "time", "timestamp", "timestamptz"})
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_EPOCH_DAY: Final = dt.date(1970, 1, 1).toordinal()


def _digits(column: str, otherwise: int) -> int:
    match = re.search(r"time\w*\((\d)\)", column.lower())
    return int(match[1]) if match else otherwise


def _micros_of_day(value: Any) -> int:
    if isinstance(value, dt.timedelta):
        return value // dt.timedelta(microseconds=1)
    at = value if isinstance(value, dt.time) else dt.time.fromisoformat(str(value))
    return ((at.hour * 60 + at.minute) * 60 + at.second) * 1_000_000 + at.microsecond


def _items(value: Any) -> list[Any] | None:
    return value if isinstance(value, list) else None


def _plain(value: Any, spec: ColumnSpec, column: str, database: str) -> Any:
    if spec.kind in ("float32", "float64"):
        with suppress(ValueError, TypeError):
            return _float(float(value), spec.kind, column, database)
    if spec.kind == "decimal":
        with suppress(InvalidOperation, ValueError, TypeError):
            exact = value if isinstance(value, Decimal) else Decimal(str(value))
            return float(exact) if database == "sqlite" else _number(exact)
    if isinstance(value, bool | int | float | Decimal) or spec.kind.startswith("int") or spec.kind == "boolean":
        with suppress(InvalidOperation, ValueError, TypeError):
            return _number(Decimal(int(value) if isinstance(value, bool) else str(value)))
    if spec.kind == "uuid":
        return str(value).lower()
    if isinstance(value, str) and re.match(r"(national )?char(acter)?\(", column.lower()):
        return value.rstrip(" ")
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


def _float(value: float, kind: str, column: str, database: str) -> float:
    single = kind == "float32" or (database != "sqlite" and column.lower() in ("real", "float"))
    if single and math.isfinite(value):
        with suppress(OverflowError):
            value = struct.unpack("f", struct.pack("f", value))[0]
            value = float(f"{value:.6g}") if database == "mysql" else value  # it shows six digits of a FLOAT
    return 0.0 if value == 0 else value  # -0.0, which SQLite does not keep


def _number(value: Decimal) -> int | Decimal:
    if value.is_finite() and value == value.to_integral_value():
        return int(value)
    return value.normalize()
