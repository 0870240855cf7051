"""Parses the alterations of ALTER TABLE, and table options."""

from __future__ import annotations

from dataclasses import replace

from connectors.mysql.ddl_columns import charset_option, column_definition, key_definition
from connectors.mysql.ddl_tokens import Cursor
from connectors.mysql.structure import ColumnPosition, Table
from connectors.mysql.table_edits import (
    converted,
    position,
    renamed_in_keys,
    with_column,
    with_key,
    with_keys_of,
    with_required,
    without_column,
    without_key,
)

__all__ = ["alteration", "table_option"]


def table_option(cursor: Cursor, table: Table) -> Table:
    """Parse one table option."""
    cursor.one_of("DEFAULT")
    charset = charset_option(cursor)
    if charset is not None:
        return replace(table, charset=charset)
    if cursor.one_of("COMMENT"):
        cursor.sign("=")
        return replace(table, comment=cursor.take().text)
    if cursor.next.text == "(":
        cursor.skip_parentheses()
    elif not cursor.done:
        cursor.take()
    return table


def alteration(cursor: Cursor, table: Table) -> Table:
    """Parse one alteration, up to the comma after it."""
    match cursor.one_of("ADD", "DROP", "MODIFY", "CHANGE", "ALTER", "RENAME", "CONVERT"):
        case "ADD":
            return _add(cursor, table)
        case "DROP":
            return _drop_part(cursor, table)
        case "MODIFY":
            cursor.one_of("COLUMN")
            cursor.words("IF", "EXISTS")
            return _changed(cursor, table, cursor.name(), None)
        case "CHANGE":
            cursor.one_of("COLUMN")
            cursor.words("IF", "EXISTS")
            old = cursor.name()
            return _changed(cursor, table, old, cursor.name())
        case "ALTER":
            return _alter_column(cursor, table)
        case "RENAME":
            return _rename_part(cursor, table)
        case "CONVERT":
            cursor.one_of("TO")
            charset = charset_option(cursor)
            cursor.skip_item()
            return table if charset is None else converted(table, charset)
    if cursor.next.is_word("PARTITION", "REORGANIZE", "COALESCE", "EXCHANGE", "ANALYZE", "REMOVE", "TRUNCATE", "ORDER"):
        while not cursor.done:
            cursor.take()
        return table
    while not cursor.done and cursor.next.text != ",":
        table = table_option(cursor, table)
    return table


def _add(cursor: Cursor, table: Table) -> Table:
    if cursor.next.is_word("SYSTEM", "PARTITION", "PERIOD"):
        cursor.skip_item()
        return table
    key = key_definition(cursor)
    if key is not None:
        return with_key(table, key) if key.columns else table
    cursor.one_of("COLUMN")
    only_new = cursor.words("IF", "NOT", "EXISTS")
    if not cursor.sign("("):
        made = column_definition(cursor, cursor.name(), table.charset)
        position = _column_position(cursor)
        return table if only_new and table.column(made.column.name) else with_column(table, made, position)
    while True:
        made = column_definition(cursor, cursor.name(), table.charset)
        table = with_column(table, made, ColumnPosition())
        if not cursor.sign(","):
            break
    cursor.expect(")")
    return table


def _column_position(cursor: Cursor) -> ColumnPosition:
    if cursor.one_of("FIRST"):
        return ColumnPosition(first=True)
    return ColumnPosition(after=cursor.name()) if cursor.one_of("AFTER") else ColumnPosition()


def _drop_part(cursor: Cursor, table: Table) -> Table:
    if cursor.words("PRIMARY", "KEY"):
        return replace(table, key=())
    if cursor.one_of("INDEX", "KEY", "CONSTRAINT", "CHECK"):
        cursor.words("IF", "EXISTS")
        name = cursor.name()
        return without_key(table, name)
    if cursor.next.is_word("FOREIGN", "PARTITION", "SYSTEM", "PERIOD"):
        cursor.skip_item()
        return table
    cursor.one_of("COLUMN")
    cursor.words("IF", "EXISTS")
    name = cursor.name()
    cursor.one_of("RESTRICT", "CASCADE")
    return without_column(table, name)


def _changed(cursor: Cursor, table: Table, old: str, new: str | None) -> Table:
    known = table.column(old)
    made = column_definition(cursor, new or (known.name if known is not None else old), table.charset)
    where = _column_position(cursor)
    if known is None:
        return table
    columns = [made.column if column is known else column for column in table.columns]
    if where != ColumnPosition():
        columns.remove(made.column)
        columns.insert(position(columns, where), made.column)
    table = renamed_in_keys(replace(table, columns=tuple(columns)), known.name, made.column.name)
    if made.column.name in table.key:
        table = with_required(table, table.key)
    return with_keys_of(table, made)


def _alter_column(cursor: Cursor, table: Table) -> Table:
    if cursor.next.is_word("INDEX", "CHECK", "CONSTRAINT", "KEY"):
        cursor.skip_item()
        return table
    cursor.one_of("COLUMN")
    cursor.words("IF", "EXISTS")
    known = table.column(cursor.name())
    if known is None:
        cursor.skip_item()
        return table
    if cursor.words("SET", "DEFAULT"):
        column = column_definition(Cursor("int DEFAULT " + _rest_of_item(cursor)), known.name, None).column
        made = replace(known, default=column.default, has_default=True)
    elif cursor.words("DROP", "DEFAULT"):
        made = replace(known, default=None, has_default=False)
    else:
        cursor.skip_item()
        return table
    return replace(table, columns=tuple(made if column is known else column for column in table.columns))


def _rename_part(cursor: Cursor, table: Table) -> Table:
    if cursor.one_of("COLUMN"):
        cursor.words("IF", "EXISTS")
        old = cursor.name()
        cursor.one_of("TO")
        new = cursor.name()
        known = table.column(old)
        if known is None:
            return table
        columns = tuple(replace(c, name=new) if c is known else c for c in table.columns)
        return renamed_in_keys(replace(table, columns=columns), known.name, new)
    if cursor.one_of("INDEX", "KEY"):
        old = cursor.name()
        cursor.one_of("TO")
        new = cursor.name()
        return replace(table, unique=tuple((new if name == old else name, columns) for name, columns in table.unique))
    cursor.one_of("TO", "AS")
    cursor.sign("=")
    first = cursor.name()
    return replace(table, name=(first, cursor.name()) if cursor.sign(".") else (table.name[0], first))


def _rest_of_item(cursor: Cursor) -> str:
    made, depth = [], 0
    while not cursor.done and (depth or cursor.next.text != ","):
        token = cursor.take()
        if token.kind == "sign":
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        made.append(
            "'" + token.text.replace("\\", "\\\\").replace("'", "''") + "'" if token.kind == "string" else token.text
        )
    return " ".join(made)
