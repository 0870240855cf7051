"""Single alterations of tables: adding, removing and changing columns and keys."""

from __future__ import annotations

from dataclasses import replace

from connectors.mysql.ddl_columns import Definition, Key, has_charset
from connectors.mysql.structure import Column, ColumnPosition, Table

__all__ = [
    "converted",
    "position",
    "renamed_in_keys",
    "with_column",
    "with_key",
    "with_keys_of",
    "with_required",
    "without_column",
    "without_key",
]


def position(columns: list[Column], where: ColumnPosition) -> int:
    if where.first:
        return 0
    folded = (where.after or "").casefold()
    return next((i + 1 for i, column in enumerate(columns) if column.name.casefold() == folded), len(columns))


def with_column(table: Table, made: Definition, where: ColumnPosition) -> Table:
    column = made.column
    if column.charset is None and has_charset(column.type):
        column = replace(column, charset=table.charset)
    columns = list(table.columns)
    columns.insert(position(columns, where), column)
    return with_keys_of(replace(table, columns=tuple(columns)), made)


def with_keys_of(table: Table, made: Definition) -> Table:
    name = made.column.name
    if made.primary:
        table = replace(table, key=(name,))
    if made.unique:
        table = replace(table, unique=(*table.unique, (name, (name,))))
    return table


def with_key(table: Table, key: Key) -> Table:
    names = tuple(column.name if (column := table.column(name)) is not None else name for name in key.columns)
    if key.primary:
        return with_required(replace(table, key=names), names)
    return replace(table, unique=(*table.unique, (key.name, names)))


def with_required(table: Table, names: tuple[str, ...]) -> Table:
    """Mark the columns of a primary key as NOT NULL."""
    columns = []
    for column in table.columns:
        if column.name in names and column.optional:
            no_default = column.has_default and column.default is None
            column = replace(column, optional=False, has_default=column.has_default and not no_default)
        columns.append(column)
    return replace(table, columns=tuple(columns))


def without_key(table: Table, name: str) -> Table:
    folded = name.casefold()
    return replace(table, unique=tuple(pair for pair in table.unique if pair[0].casefold() != folded))


def without_column(table: Table, name: str) -> Table:
    folded = name.casefold()
    kept = tuple(column for column in table.columns if column.name.casefold() != folded)
    key = tuple(column for column in table.key if column.casefold() != folded)
    unique = ((index, tuple(c for c in columns if c.casefold() != folded)) for index, columns in table.unique)
    return replace(table, columns=kept, key=key, unique=tuple(pair for pair in unique if pair[1]))


def renamed_in_keys(table: Table, old: str, new: str) -> Table:
    if old == new:
        return table

    def renamed(names: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(new if name == old else name for name in names)

    unique = tuple((index, renamed(columns)) for index, columns in table.unique)
    return replace(table, key=renamed(table.key), unique=unique)


def converted(table: Table, charset: str) -> Table:
    columns = tuple(replace(c, charset=charset) if c.charset is not None else c for c in table.columns)
    return replace(table, columns=columns, charset=charset)
