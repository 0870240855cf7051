"""The SELECT statements of the JDBC source, and the columns that they return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy

from connect.api import ConnectError, JavaRegex, Schema, SchemaType
from connectors.jdbc.config import JdbcSourceConfig
from connectors.jdbc.offsets import QUERY_PARTITION, Position, partition_v0, partition_v1
from connectors.sql.dialects import Column, Dialect
from connectors.sql.tables import TableId
from connectors.sql.types import TypeOptions

__all__ = ["INCREMENTING", "TIMESTAMP", "Plan", "Source", "UnfitColumn", "plan"]

INCREMENTING = "tidegate_incrementing"
TIMESTAMP = "tidegate_timestamp"
"""Columns that a statement returns in addition to those of the record: the position of each row."""


class UnfitColumn(ConnectError):
    """A column that the mode needs is missing or unsuitable; ``key`` is the configuration key that names it."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, slots=True)
class Source:
    """The subject of a series of statements: a table, or the query where ``table`` is None."""

    table: TableId | None
    topic: str
    partition: Mapping[str, Any]

    def __str__(self) -> str:
        return str(self.table) if self.table is not None else "the query"

    @classmethod
    def of(cls, config: JdbcSourceConfig, table: TableId | None) -> Source:
        if table is None:
            return cls(None, config.topic_prefix, QUERY_PARTITION)
        partition = partition_v0(table) if config.effective_mode == "bulk" else partition_v1(table)
        return cls(table, config.topic_prefix + table.name, partition)


@dataclass(frozen=True, slots=True)
class Plan:
    """How a table or query is currently read: its columns, and the columns that identify new rows."""

    config: JdbcSourceConfig
    dialect: Dialect
    source: Source
    columns: Sequence[Column]
    skipped: Sequence[str]
    schema: Schema
    timestamps: Sequence[Column]
    incrementing: Column | None

    @property
    def zoned(self) -> bool:
        return any(column.zoned for column in self.timestamps)

    def statement(self, position: Position, until_us: int | None) -> str:
        """Selects the rows after ``position`` and before ``until_us``, ordered by position."""
        suffix = f" {self.config.query_suffix.strip()}" if self.config.query_suffix.strip() else ""
        where, order = self._where(position, until_us)
        if self.source.table is not None:
            name = self.dialect.table(self.source.table, qualified=self.config.qualify)
            return f"SELECT {self._selected()} FROM {name}{where}{order}{suffix}"
        query = f"{self.config.sql_query}{where}"
        inner = self.dialect.subselect((self.dialect.ordered(query + order) if order else query) + suffix)
        return f"SELECT {self._selected()} FROM {inner}{self._outer_order()}"

    def _outer_order(self) -> str:
        names = ([TIMESTAMP] if self.timestamps else []) + ([INCREMENTING] if self.incrementing is not None else [])
        return f" ORDER BY {', '.join(names)}" if names and not self.dialect.keeps_order else ""

    def widest(self, position: Position, until_us: int | None) -> str | None:
        """A query for the greatest size in bytes of each variable-length column among the rows of ``statement``; None
        where it would take as long as reading them.
        """
        octets, table = self.dialect.octets, self.source.table
        if octets is None or table is None:
            return None
        varying = [c for c in self.columns if c.schema.type in (SchemaType.STRING, SchemaType.BYTES)]
        lengths = [f"max({octets}({self.dialect.quote(column.name)}))" for column in varying] or ["max(0)"]
        name = self.dialect.table(table, qualified=self.config.qualify)
        return f"SELECT {', '.join(lengths)} FROM {name}{self._where(position, until_us)[0]}"

    def likeness(self) -> str:
        """Selects one row of constants with the types of the columns that a statement returns."""
        likes = [f"{column.like} AS {self.dialect.quote(column.name)}" for column in self.columns]
        if self.timestamps:
            likes.append(f"0 AS {TIMESTAMP}")
        if self.incrementing is not None:
            likes.append(f"0 AS {INCREMENTING}")
        return f"SELECT {', '.join(likes)}"

    def _selected(self) -> str:
        selected = [f"{column.select} AS {self.dialect.quote(column.name)}" for column in self.columns]
        if self.timestamps:
            names = [self._instant(self.dialect.quote(column.name)) for column in self.timestamps]
            selected.append(f"{_coalesce(names)} AS {TIMESTAMP}")
        if self.incrementing is not None:
            selected.append(f"{self.dialect.integer(self.dialect.quote(self.incrementing.name))} AS {INCREMENTING}")
        return ", ".join(selected)

    def _where(self, position: Position, until_us: int | None) -> tuple[str, str]:
        """The WHERE and ORDER BY clauses."""
        conditions, order = [], []
        number = self._incrementing_path()
        if self.timestamps:
            instant = _coalesce([self._instant(path) for path in self._timestamp_paths()])
            order.append(instant)
            if until_us is not None:
                conditions.append(f"{instant} < {self.dialect.literal(until_us, zoned=self.zoned)}")
            if position.timestamp_us is not None:
                since = self.dialect.literal(position.timestamp_us, zoned=self.zoned)
                same = f"{instant} = {since} AND {number} > {position.incrementing}"
                has_number = number is not None and position.incrementing is not None
                conditions.append(f"(({same}) OR {instant} > {since})" if has_number else f"{instant} > {since}")
        elif number is not None and position.incrementing is not None:
            conditions.append(f"{number} > {position.incrementing}")
        if number is not None:
            order.append(number)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return where, f" ORDER BY {', '.join(order)}" if order else ""

    def _instant(self, expression: str) -> str:
        return self.dialect.instant(expression, zoned=self.zoned)

    def _incrementing_path(self) -> str | None:
        if self.incrementing is None:
            return None
        column = self.config.incrementing
        exact = self.source.table is None and "." in column
        return self.dialect.quote_path(column) if exact else self.dialect.quote(self.incrementing.name)

    def _timestamp_paths(self) -> list[str]:
        if self.source.table is None and any("." in name for name in self.config.timestamps):
            return [self.dialect.quote_path(name) for name in self.config.timestamps]
        return [self.dialect.quote(column.name) for column in self.timestamps]


def _coalesce(expressions: Sequence[str]) -> str:
    return expressions[0] if len(expressions) == 1 else f"COALESCE({', '.join(expressions)})"


def plan(config: JdbcSourceConfig, dialect: Dialect, connection: sqlalchemy.Connection, source: Source) -> Plan:
    """Examine the table or query and decide how to read it.

    Raises ConnectError where columns that the mode needs are missing or unsuitable.
    """
    options = TypeOptions(config.numeric, config.time_form, dialect.wide)
    if source.table is not None:
        reflected = dialect.reflect_table(connection, source.table)
    else:
        reflected = dialect.reflect_query(connection, config.sql_query)
    columns, skipped = dialect.columns(reflected, options)
    if not columns:
        raise ConnectError(f"{source} has no column that can be read; its columns are: {', '.join(skipped) or 'none'}")
    name = source.table.name if source.table is not None else None
    schema = Schema.struct({column.name: column.schema for column in columns}, name=name)
    timestamps = [
        _named(columns, column_name, source, "timestamp.column.name")
        for column_name in _timestamp_names(config, source)
    ]
    incrementing = _incrementing(config, source, columns)
    made = Plan(config, dialect, source, columns, skipped, schema, timestamps, incrementing)
    if config.validate_non_null and source.table is not None:
        _refuse_nullable(made)
    return made


def _timestamp_names(config: JdbcSourceConfig, source: Source) -> list[str]:
    if not config.by_timestamp:
        return []
    for regex, named in map(_mapping, config.timestamps_mapping):
        if source.table is not None and JavaRegex(regex).fullmatch(str(source.table)):
            return [name.strip() for name in named.strip("[]").split("|")]
    return config.timestamps


def _incrementing(config: JdbcSourceConfig, source: Source, columns: Sequence[Column]) -> Column | None:
    if not config.by_incrementing:
        return None
    for regex, named in map(_mapping, config.incrementing_mapping):
        if source.table is not None and JavaRegex(regex).fullmatch(str(source.table)):
            return _named(columns, named.strip(), source, "incrementing.column.mapping")
    if config.incrementing:
        return _named(columns, config.incrementing, source, "incrementing.column.name")
    numbered = [column for column in columns if column.increments]
    if len(numbered) != 1:
        raise UnfitColumn(
            "incrementing.column.name",
            f"{source} has {len(numbered)} columns that its rows are numbered by: set incrementing.column.name",
        )
    return numbered[0]


def _mapping(item: str) -> tuple[str, str]:
    regex, _, named = item.rpartition(":")
    return regex, named


def _named(columns: Sequence[Column], column_name: str, source: Source, key: str) -> Column:
    """The column with that name, preferably in the same case; ``a.id`` finds ``id``."""
    bare = column_name.rpartition(".")[2].strip('"')
    exact = [column for column in columns if column.name == bare]
    matching = exact or [column for column in columns if column.name.lower() == bare.lower()]
    if matching:
        return matching[0]
    raise UnfitColumn(
        key,
        f"{source} has no column {column_name!r}; it has: {', '.join(column.name for column in columns)}: correct {key}",
    )


def _refuse_nullable(made: Plan) -> None:
    """At least one timestamp column, and the incrementing column, must be NOT NULL."""
    hint = "declare it NOT NULL, or set validate.non.null=false and rows with a null there are not read"
    if made.incrementing is not None and made.incrementing.schema.optional:
        message = f"incrementing column {made.incrementing.name!r} of {made.source} may be null: {hint}"
        raise UnfitColumn("incrementing.column.name", message)
    if made.timestamps and all(column.schema.optional for column in made.timestamps):
        names = ", ".join(repr(column.name) for column in made.timestamps)
        raise UnfitColumn("timestamp.column.name", f"timestamp column {names} of {made.source} may be null: {hint}")
