"""Databases and tables at a position in the binary log, and how DDL changes them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

__all__ = ["Change", "Column", "ColumnPosition", "Structure", "Table", "TableName", "quoted"]

TableName: TypeAlias = tuple[str, str]
"""Database and table."""


def quoted(name: TableName) -> str:
    """A table's name quoted for SQL."""
    return ".".join("`" + part.replace("`", "``") + "`" for part in name)


@dataclass(frozen=True, slots=True)
class Column:
    """``type`` is in capital letters with UNSIGNED and ZEROFILL; ``default`` is the literal's text, without quotes.

    ``labels`` are those of an ENUM or SET. ``charset`` is the name of the character set, None where there is none.
    """

    name: str
    type: str
    length: int | None = None
    scale: int | None = None
    charset: str | None = None
    optional: bool = True
    auto_increment: bool = False
    generated: bool = False
    default: str | None = None
    has_default: bool = False
    labels: tuple[str, ...] = ()
    comment: str | None = None


@dataclass(frozen=True, slots=True)
class Table:
    """``key`` are the columns of the primary key; ``unique`` those of the unique keys, in the order of their creation."""

    name: TableName
    columns: tuple[Column, ...] = ()
    key: tuple[str, ...] = ()
    unique: tuple[tuple[str, tuple[str, ...]], ...] = ()
    charset: str | None = None
    comment: str | None = None

    @property
    def full_name(self) -> str:
        return ".".join(self.name)

    @property
    def quoted(self) -> str:
        return quoted(self.name)

    @property
    def key_columns(self) -> tuple[str, ...]:
        """The columns of the primary key, else of the first unique key whose columns are all NOT NULL."""
        if self.key:
            return self.key
        required = {column.name for column in self.columns if not column.optional}
        return next((columns for _, columns in self.unique if set(columns) <= required), ())

    def column(self, name: str) -> Column | None:
        folded = name.casefold()
        return next((column for column in self.columns if column.name.casefold() == folded), None)


@dataclass(frozen=True, slots=True)
class ColumnPosition:
    """The position of a column: first, after another, or (neither) at the end, or unchanged in a change."""

    first: bool = False
    after: str | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """The change that DDL made to a table: ``type`` is CREATE, ALTER or DROP; ``table`` is its new state; ``previous``
    its earlier name.
    """

    type: str
    name: TableName
    table: Table | None = None
    previous: TableName | None = None


_FALLBACK_CHARSET: Final = "utf8mb4"


@dataclass(slots=True)
class Structure:
    """All known tables by name, and the character sets of databases."""

    tables: dict[TableName, Table] = field(default_factory=dict)
    charsets: dict[str, str] = field(default_factory=dict)
    server_charset: str = _FALLBACK_CHARSET

    def charset_of(self, database: str) -> str:
        return self.charsets.get(database, self.server_charset)

    def put(self, table: Table) -> Change:
        self.tables[table.name] = table
        return Change("CREATE", table.name, table)

    def alter(self, table: Table, previous: TableName) -> Change:
        """Replace ``previous`` by ``table``."""
        if previous != table.name:
            self.tables.pop(previous, None)
        self.tables[table.name] = table
        return Change("ALTER", table.name, table, previous if previous != table.name else None)

    def drop(self, name: TableName) -> Change | None:
        return Change("DROP", name) if self.tables.pop(name, None) is not None else None

    def drop_database(self, database: str) -> list[Change]:
        self.charsets.pop(database, None)
        return [self.drop(name) or Change("DROP", name) for name in list(self.tables) if name[0] == database]

    def rename(self, old: TableName, new: TableName) -> Change | None:
        table = self.tables.get(old)
        return None if table is None else self.alter(replace(table, name=new), old)
