"""Tables from SQLite's catalog, and the shape of their events."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from connect.api import DataError, Field, Schema, SchemaType
from connectors.debezium.envelope import source_block
from connectors.debezium.events import Layout
from connectors.debezium.filters import Filters
from connectors.debezium.layouts import Layouts
from connectors.sqlite.config import SqliteConfig
from connectors.sqlite.types import Form, Modes, form_of, source_parameters

__all__ = ["SCHEMA", "SOURCE", "Column", "Shape", "Shapes", "Table", "Unique", "captured", "tables_of"]

SCHEMA: Final = "main"
"""SQLite's name for the main database file."""
SOURCE: Final = source_block(
    "tidegate.sqlite.Source",
    [
        Field("schema", Schema(SchemaType.STRING)),
        Field("table", Schema(SchemaType.STRING)),
        Field("change", Schema(SchemaType.INT64, optional=True)),
    ],
)


@dataclass(frozen=True, slots=True)
class Column:
    """``default`` is the SQL expression, or None."""

    name: str
    declared: str
    optional: bool
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Unique:
    """A unique index other than the key's: columns with their collations."""

    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The captured columns of a table.

    ``key`` are the columns of its primary key, else of a unique index whose columns are all NOT NULL, else those in
    message.key.columns. ``identity`` are the columns that identify a row: its rowid, under a name that no column has,
    or the primary key of a table WITHOUT ROWID.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    identity: tuple[str, ...]
    uniques: tuple[Unique, ...] = ()

    @property
    def full_name(self) -> str:
        return f"{SCHEMA}.{self.name}"

    def described(self) -> str:
        """The JSON form under which the change log stores the shape of its rows."""
        return json.dumps(asdict(self), separators=(",", ":"))

    @classmethod
    def from_description(cls, text: str) -> Table:
        form = json.loads(text)
        return cls(
            name=form["name"],
            columns=tuple(Column(**column) for column in form["columns"]),
            key=tuple(form["key"]),
            identity=tuple(form["identity"]),
            uniques=tuple(Unique(tuple((n, c) for n, c in u["columns"])) for u in form["uniques"]),
        )


def captured(connection: sqlite3.Connection, filters: Filters, log: str) -> list[Table]:
    """The tables that a configuration selects, sorted by name, with the columns that it selects.

    Change logs are no tables of anybody: two connectors would tell each other's changes without end.
    """
    there = tables_of(connection)
    names = {name for name, _ in there}
    logs = {log, *(name for name in names if {f"{name}_shapes", f"{name}_owner"} <= names)}
    own = {f"{name}{part}" for name in logs for part in ("", "_shapes", "_owner")}
    return [
        _table(connection, name, bool(without), filters)
        for name, without in there
        if filters.table(f"{SCHEMA}.{name}") and name not in own
    ]


def tables_of(connection: sqlite3.Connection) -> list[tuple[str, int]]:
    """The name of every user table, and whether it is WITHOUT ROWID."""
    return connection.execute(
        f"SELECT name, wr FROM pragma_table_list WHERE schema = '{SCHEMA}' AND type = 'table' "
        "AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY name"
    ).fetchall()


def _table(connection: sqlite3.Connection, name: str, without_rowid: bool, filters: Filters) -> Table:
    rows = connection.execute(
        'SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_xinfo(?) WHERE hidden <> 1 ORDER BY cid', [name]
    ).fetchall()
    primary = [column for column, *_, key_position in sorted(rows, key=lambda row: row[4]) if key_position]
    declared = {row[0]: (row[1] or "").upper() for row in rows}
    required = {row[0] for row in rows if row[2]}
    if without_rowid or (len(primary) == 1 and declared[primary[0]] == "INTEGER"):
        required.update(primary)
    uniques, key = [], tuple(primary)
    for index, origin, partial in connection.execute(
        'SELECT name, origin, partial FROM pragma_index_list(?) WHERE "unique" ORDER BY seq DESC', [name]
    ).fetchall():
        members = connection.execute(
            "SELECT name, coll FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno", [index]
        ).fetchall()
        plain = tuple((column, collation) for column, collation in members if column is not None)
        whole = len(plain) == len(members) and not partial
        if not key and whole and {column for column, _ in plain} <= required:
            key = tuple(column for column, _ in plain)
        binary = all(collation == "BINARY" for _, collation in plain)
        if plain and not (origin == "pk" and binary):
            uniques.append(Unique(plain))
    names = {row[0].lower() for row in rows}
    rowids = [] if without_rowid else [n for n in ("rowid", "_rowid_", "oid") if n not in names]
    columns = tuple(
        Column(column, kind or "", column not in required, default)
        for column, kind, _, default, _ in rows
        if filters.column(f"{SCHEMA}.{name}", column)
    )
    kept = {column.name for column in columns}
    chosen = filters.key_of(f"{SCHEMA}.{name}")
    key = tuple(chosen) if chosen is not None else key
    if missing := [column for column in key if column not in kept]:
        raise DataError(
            f"column {missing[0]!r} of table {SCHEMA}.{name} is in the key but not captured: "
            "include it, or name other columns in message.key.columns"
        )
    if masked := [column for column in key if filters.mask(f"{SCHEMA}.{name}", column) is not None]:
        raise DataError(
            f"column {masked[0]!r} of table {SCHEMA}.{name} is in the key and masked, so that rows would have one key: name other "
            "columns in message.key.columns"
        )
    return Table(name, columns, key, tuple(rowids[:1] or primary), tuple(uniques))


@dataclass(frozen=True, slots=True)
class Shape:
    """How a table's rows become events; ``forms`` has one form per column."""

    table: Table
    layout: Layout
    forms: tuple[Form, ...]
    key_positions: tuple[int, ...]


class Shapes:
    """Builds shapes from the configuration."""

    def __init__(self, config: SqliteConfig, filters: Filters) -> None:
        self.filters = filters
        self.modes = Modes(config.decimal_mode.lower(), config.time_mode.lower(), config.binary_mode.lower())
        self._layouts = Layouts(config, SOURCE)
        self.topic = self._layouts.topic

    def of(self, table: Table) -> Shape:
        forms = tuple(self._form(table, column) for column in table.columns)
        columns = [(column.name, form.schema) for column, form in zip(table.columns, forms, strict=True)]
        layout, key_positions = self._layouts.of((SCHEMA, table.name), columns, table.key)
        return Shape(table, layout, forms, key_positions)

    def _form(self, table: Table, column: Column) -> Form:
        form = form_of(column.declared, self.modes)
        schema = form.schema.as_optional(column.optional)
        if column.default is not None and (default := _default(column.default, form)) is not None:
            schema = replace(schema, default=default)
        if self.filters.propagated(table.full_name, column.name, column.declared):
            parameters = source_parameters(column.name, column.declared)
            schema = replace(schema, parameters={**schema.parameters, **parameters})
        form = replace(form, schema=schema)
        filters, names = self.filters, (table.full_name, column.name)
        change = filters.mask(*names)
        if change is None or schema.type is not SchemaType.STRING:
            return form
        changed, parameters = change
        told = replace(schema, parameters={**schema.parameters, **parameters})
        return Form(told, lambda values: changed(form.convert(values)))


_LITERAL: Final = re.compile(
    r"'((?:[^']|'')*)'|([+-]?\d+)|([+-]?\d*\.\d+(?:e[+-]?\d+)?)|(true|false)", re.IGNORECASE | re.DOTALL
)


def _default(expression: str, form: Form) -> Any:
    """The value of a default that is a literal; None for any other."""
    match = _LITERAL.fullmatch(expression.strip())
    if match is None:
        return None
    text, whole, number, truth = match.groups()
    value: Any = text.replace("''", "'") if text is not None else int(whole) if whole is not None else None
    if value is None:
        value = float(number) if number is not None else int(truth.lower() == "true")
    try:
        return form.convert([value]).to_pylist()[0]
    except (DataError, ArithmeticError, ValueError):
        return None
