"""What differs between databases when one reads from them: quoting, the clock, literals, and how a column is selected."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo

import sqlalchemy
from sqlalchemy import types
from sqlalchemy.dialects import postgresql
from sqlalchemy.dialects.postgresql.base import ischema_names

from connect.api import ConnectError, Schema, SchemaType
from connectors.sql.tables import ReflectedColumn, TableId, columns_of
from connectors.sql.types import TypeOptions, schema_of

__all__ = ["Column", "Dialect", "PostgresDialect", "SqliteDialect", "dialect_of"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Column:
    """A column to read: ``select`` is the SQL expression that delivers it in a form ``to_connect`` takes.

    ``timestamp`` marks one that the timestamp options apply to, ``zoned`` one of these with a time zone; ``like`` is a
    value of the type it is delivered as, in SQL.
    """

    name: str
    schema: Schema
    select: str
    increments: bool = False
    timestamp: bool = False
    zoned: bool = False
    like: str = "NULL"


class Dialect(ABC):
    """A kind of database. ``timezone`` is that of timestamps without one."""

    wide = False

    def __init__(self, *, quoting: bool = True, timezone: str = "UTC") -> None:
        self._quoting = quoting
        self.timezone = timezone

    def quote(self, identifier: str) -> str:
        return '"{}"'.format(identifier.replace('"', '""')) if self._quoting else identifier

    def quote_path(self, path: str) -> str:
        """A column that may be named with its table: ``a.id`` is ``"a"."id"``."""
        return ".".join(self.quote(part.strip('"')) for part in path.split("."))

    def table(self, table: TableId, *, qualified: bool = True) -> str:
        parts = [table.schema, table.name] if qualified else [table.name]
        return ".".join(self.quote(part) for part in parts if part is not None)

    def columns(self, reflected: Sequence[ReflectedColumn], options: TypeOptions) -> tuple[list[Column], list[str]]:
        """The columns that can be read, and the names of those that have no place in Connect's model."""
        made, skipped = [], []
        for column in reflected:
            schema = schema_of(column.type, optional=column.nullable, options=options)
            if schema is None:
                skipped.append(column.name)
            else:
                made.append(self._column(column, schema))
        return made, skipped

    def reflect_table(self, connection: sqlalchemy.Connection, table: TableId) -> list[ReflectedColumn]:
        return columns_of(connection, table)

    @abstractmethod
    def reflect_query(self, connection: sqlalchemy.Connection, query: str) -> list[ReflectedColumn]:
        """The columns that a SELECT delivers."""

    @abstractmethod
    def _column(self, column: ReflectedColumn, schema: Schema) -> Column: ...

    @property
    @abstractmethod
    def now(self) -> str:
        """A query for the database's clock in microseconds since the epoch."""

    @abstractmethod
    def instant(self, expression: str) -> str:
        """An expression whose values order like the timestamps of ``expression``, and arrive as timestamps or integers."""

    @abstractmethod
    def literal(self, epoch_micros: int, *, zoned: bool) -> str:
        """An instant as it compares with ``instant``."""

    def local(self, epoch_micros: int) -> datetime:
        """An instant as a timestamp without zone of this database shows it."""
        return (_EPOCH + timedelta(microseconds=epoch_micros)).astimezone(ZoneInfo(self.timezone)).replace(tzinfo=None)


class PostgresDialect(Dialect):
    """PostgreSQL through ADBC, which delivers all of a table as Arrow except what is cast here."""

    _CASTS: Final = (
        (postgresql.OID, "bigint"),
        (postgresql.MONEY, "numeric::float8"),
        (types.Uuid, "text"),
        (types.JSON, "text"),
    )

    @property
    def now(self) -> str:
        return "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

    def instant(self, expression: str) -> str:
        return expression

    def literal(self, epoch_micros: int, *, zoned: bool) -> str:
        if zoned:
            return f"TIMESTAMPTZ '{(_EPOCH + timedelta(microseconds=epoch_micros)).isoformat(' ')}'"
        return f"TIMESTAMP '{self.local(epoch_micros).isoformat(' ')}'"

    def _column(self, column: ReflectedColumn, schema: Schema) -> Column:
        name = self.quote(column.name)
        cast = next((sql for base, sql in self._CASTS if isinstance(column.type, base)), None)
        kind: Any = column.type
        stamp = isinstance(kind, types.DateTime)
        return Column(
            column.name,
            schema,
            name if cast is None else f"{name}::{cast}",
            increments=column.increments,
            timestamp=stamp,
            zoned=stamp and bool(kind.timezone),
        )

    def reflect_query(self, connection: sqlalchemy.Connection, query: str) -> list[ReflectedColumn]:
        """The server describes the result: types with their modifiers, and for plain columns whether they may be null."""
        cursor = connection.exec_driver_sql(f"SELECT * FROM ({query}) AS q LIMIT 0").cursor
        described: Any = cursor.pgresult
        found = []
        for i in range(described.nfields):
            kind, modifier = described.ftype(i), described.fmod(i)
            table, number = described.ftable(i), described.ftablecol(i)
            name, typtype, not_null = connection.exec_driver_sql(_DESCRIBE, (kind, modifier, kind, table, number)).one()
            found.append(ReflectedColumn(described.fname(i).decode(), _pg_type(name, typtype), nullable=not not_null))
        return found


_DESCRIBE: Final = """
SELECT format_type(%s, %s), (SELECT typtype FROM pg_type WHERE oid = %s),
       coalesce((SELECT attnotnull FROM pg_attribute WHERE attrelid = %s AND attnum = %s), false)
"""


def _pg_type(name: str, typtype: str) -> types.TypeEngine[Any]:
    """SQLAlchemy's type for what ``format_type`` calls it: ``numeric(10,2)``, ``timestamp(3) with time zone``, ``text[]``."""
    bare, arrays = re.subn(r"\[\]", "", name)
    arguments: list[Any] = [int(text) for text in re.findall(r"[0-9]+", (re.search(r"\(([^)]*)\)", bare) or [""])[0])]
    bare = re.sub(r"\([^)]*\)", "", bare)
    if typtype == "e":
        made: Any = types.String()
    elif bare == "numeric":
        made = types.Numeric(*arguments[:2])
    elif bare.startswith(("timestamp", "time")):
        base = types.DateTime if bare.startswith("timestamp") else types.Time
        made = base(timezone=bare.endswith("with time zone"))
    else:
        made = ischema_names.get(bare, types.NullType)()
    return types.ARRAY(made) if arrays else made


class SqliteDialect(Dialect):
    """SQLite through ADBC. A declared type bounds nothing there, so each column is selected in one storage class; a cell
    of another one ends the read with an error rather than with a guess."""

    wide = True

    @property
    def now(self) -> str:
        return "SELECT " + _julian_millis("'now'") + " * 1000"

    def instant(self, expression: str) -> str:
        return f"CASE typeof({expression}) WHEN 'text' THEN {_julian_millis(expression)} ELSE {expression} END"

    def literal(self, epoch_micros: int, *, zoned: bool) -> str:
        wall = self.local(epoch_micros).replace(tzinfo=UTC)
        return str((wall - _EPOCH) // timedelta(milliseconds=1))

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
        """A temporary view of the query knows the declared types of the columns that come straight from tables."""
        view = TableId(None, "temp", "tidegate_query")
        connection.exec_driver_sql('DROP VIEW IF EXISTS temp."tidegate_query"').close()
        connection.exec_driver_sql(f'CREATE TEMP VIEW "tidegate_query" AS {query}').close()
        return self._probe(connection, 'temp."tidegate_query"', columns_of(connection, view))

    def _probe(self, connection: Any, source: str, columns: list[ReflectedColumn]) -> list[ReflectedColumn]:
        """Give columns without a telling type (none declared, plain NUMERIC, an expression) that of their first values."""
        vague = [c for c in columns if isinstance(c.type, types.NullType) or _is_plain_numeric(c.type)]
        if not vague:
            return columns
        wanted = ", ".join(f"group_concat(DISTINCT typeof({self.quote(c.name)}))" for c in vague)
        names = ", ".join(self.quote(c.name) for c in vague)
        row = connection.exec_driver_sql(
            f"SELECT {wanted} FROM (SELECT {names} FROM {source} LIMIT {_PROBED_ROWS})"
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


def dialect_of(kind: str, *, quoting: bool = True, timezone: str = "UTC") -> Dialect:
    """The dialect of a kind of database; raises ConnectError for one that cannot be read yet."""
    made = {"postgresql": PostgresDialect, "sqlite": SqliteDialect}.get(kind)
    if made is None:
        raise ConnectError(f"reading from {kind} databases is not supported; supported are postgresql and sqlite")
    return made(quoting=quoting, timezone=timezone)
