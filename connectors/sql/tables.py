"""Tables and their columns as the database describes them, through SQLAlchemy."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy

from connect.api import ConnectError

__all__ = ["ReflectedColumn", "TableId", "columns_of", "find_tables", "like", "parse_table_ids"]

_SYSTEM_SCHEMAS = frozenset({"information_schema", "pg_catalog", "mysql", "performance_schema", "sys"})


class TableId(NamedTuple):
    """A table's full name; catalog and schema are None where the database has none (SQLite)."""

    catalog: str | None
    schema: str | None
    name: str

    def __str__(self) -> str:
        """Catalog, schema and name separated by dots, unquoted, as in offsets."""
        return ".".join(part for part in self if part is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which a configuration may refer to it, most specific first."""
        parts = [part for part in self if part is not None]
        return tuple(".".join(parts[start:]) for start in range(len(parts)))

    def quoted(self) -> str:
        """The full name with each part in double quotes, as in task configurations."""
        return ".".join('"{}"'.format(part.replace('"', '""')) for part in self if part is not None)


_QUOTED_ID = re.compile(r'"(?:[^"]|"")+"(?:\."(?:[^"]|"")+")*|[^,"]+')


def parse_table_ids(text: str) -> list[TableId]:
    """Tables from a comma-separated list of quoted full names: the reverse of ``TableId.quoted``."""
    ids = []
    for written in _QUOTED_ID.findall(text):
        quoted = re.findall(r'"((?:[^"]|"")+)"', written)
        parts = [part.replace('""', '"') for part in quoted] if quoted else written.strip().split(".")
        padded = [None] * (3 - len(parts)) + parts
        ids.append(TableId(padded[0], padded[1], parts[-1]))
    return ids


@dataclass(frozen=True, slots=True)
class ReflectedColumn:
    """A column: ``type`` is SQLAlchemy's; ``increments`` says whether the database numbers rows with it."""

    name: str
    type: sqlalchemy.types.TypeEngine[Any]
    nullable: bool
    increments: bool = False


def find_tables(
    connection: sqlalchemy.Connection,
    *,
    types: Iterable[str] = ("TABLE",),
    catalog_pattern: str | None = None,
    schema_pattern: str | None = None,
) -> list[TableId]:
    """All tables of the given JDBC types (TABLE, VIEW) outside the system schemas, sorted by name.

    The patterns are JDBC's: ``%`` for any text, ``_`` for one character; None for no restriction.
    """
    inspector = sqlalchemy.inspect(connection)
    kinds = {kind.upper() for kind in types}
    if connection.dialect.name == "sqlite":
        return sorted(TableId(None, None, name) for name in _names(inspector, None, kinds))
    catalog = connection.engine.url.database
    if catalog_pattern and catalog is not None and not like(catalog_pattern, catalog):
        return []
    tables = []
    for schema in inspector.get_schema_names():
        if schema in _SYSTEM_SCHEMAS or (schema_pattern and not like(schema_pattern, schema)):
            continue
        tables += [TableId(catalog, schema, name) for name in _names(inspector, schema, kinds)]
    return sorted(tables)


def _names(inspector: sqlalchemy.Inspector, schema: str | None, kinds: set[str]) -> list[str]:
    names = inspector.get_table_names(schema) if kinds & {"TABLE", "BASE TABLE", "PARTITIONED TABLE"} else []
    if "VIEW" in kinds:
        names = names + inspector.get_view_names(schema)
    if "MATERIALIZED VIEW" in kinds and inspector.bind.dialect.name == "postgresql":
        names = names + inspector.get_materialized_view_names(schema)
    return [name for name in names if not name.startswith("sqlite_")]


def like(pattern: str, text: str) -> bool:
    """SQL's LIKE: ``%`` matches any text, ``_`` one character."""
    parts = (".*" if c == "%" else "." if c == "_" else re.escape(c) for c in pattern)
    return re.fullmatch("".join(parts), text, re.DOTALL) is not None


def columns_of(connection: sqlalchemy.Connection, table: TableId) -> list[ReflectedColumn]:
    """The columns of a table or view in order; raises ConnectError where it does not exist."""
    inspector = sqlalchemy.inspect(connection)
    try:
        columns: Sequence[Any] = inspector.get_columns(table.name, schema=table.schema)
    except sqlalchemy.exc.NoSuchTableError:
        raise ConnectError(f"there is no table {table} in {connection.engine.url.database}") from None
    row_id = _sqlite_row_id(connection, inspector, table, columns)
    return [
        ReflectedColumn(
            column["name"],
            column["type"],
            nullable=column["nullable"] and column["name"] != row_id,
            increments=column["name"] == row_id or _increments(column),
        )
        for column in columns
    ]


def _increments(column: Any) -> bool:
    numbered = "identity" in column or str(column.get("default") or "").startswith("nextval(")
    return numbered or column.get("autoincrement") is True


def _sqlite_row_id(connection: Any, inspector: Any, table: TableId, columns: Sequence[Any]) -> str | None:
    """The column that is SQLite's row id: a primary key of one column with exactly the type INTEGER.

    It is never null, even if the table's definition allows it.
    """
    if connection.dialect.name != "sqlite":
        return None
    key = inspector.get_pk_constraint(table.name, schema=table.schema)["constrained_columns"]
    kinds = {column["name"]: type(column["type"]).__name__ for column in columns}
    return key[0] if len(key) == 1 and kinds.get(key[0]) == "INTEGER" else None
