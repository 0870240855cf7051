"""Applies DDL statements to the structure: CREATE, ALTER, DROP, RENAME, TRUNCATE of tables, indexes and databases.

Only parts that affect rows and keys are parsed; the rest of a statement is skipped. sqlglot, the existing library,
returns much of MySQL's ALTER TABLE as an opaque command, so this has its own parser. Grammar: dev.mysql.com and
mariadb.com, "Data Definition".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from connect.api import DataError
from connectors.mysql.ddl_alter import alteration, table_option
from connectors.mysql.ddl_columns import Definition, Key, charset_option, column_definition, key_definition
from connectors.mysql.ddl_tokens import Cursor
from connectors.mysql.structure import Change, ColumnPosition, Structure, Table, TableName
from connectors.mysql.table_edits import (
    with_column,
    with_key,
    without_key,
)

__all__ = ["Applied", "apply"]


@dataclass(slots=True)
class Applied:
    """``database`` is the database that the statement concerns; ``structural`` says whether it is stored in the
    history.
    """

    database: str
    changes: list[Change] = field(default_factory=list)
    truncated: list[TableName] = field(default_factory=list)
    structural: bool = True


_PREFIX: Final = ("SET", "STATEMENT")


def apply(structure: Structure, sql: str, database: str) -> Applied:
    """Apply a statement, which was run in ``database``, to ``structure``.

    Raises DataError that names the part that cannot be parsed.
    """
    cursor = Cursor(sql)
    if cursor.words(*_PREFIX):  # MariaDB: SET STATEMENT variable=value FOR statement
        while not cursor.done and not cursor.one_of("FOR"):
            cursor.take()
    try:
        return _Statement(structure, cursor, database).applied()
    except DataError as error:
        raise DataError(f"{error}, in the statement {sql[:500]!r}") from None


class _Statement:
    def __init__(self, structure: Structure, cursor: Cursor, database: str) -> None:
        self._structure, self._cursor = structure, cursor
        self._result = Applied(database)

    def applied(self) -> Applied:
        cursor = self._cursor
        match cursor.one_of("CREATE", "ALTER", "DROP", "RENAME", "TRUNCATE"):
            case "CREATE":
                self._create()
            case "ALTER":
                self._alter()
            case "DROP":
                self._drop()
            case "RENAME" if cursor.one_of("TABLE", "TABLES"):
                self._rename()
            case "TRUNCATE":
                cursor.one_of("TABLE")
                self._result.truncated.append(self._table_name())
            case _:
                self._result.structural = False
        return self._result

    def _table_name(self) -> TableName:
        cursor = self._cursor
        first = cursor.name()
        name = (first, cursor.name()) if cursor.sign(".") else (self._result.database, first)
        self._result.database = name[0]
        return name

    def _did(self, change: Change | None) -> None:
        if change is not None:
            self._result.changes.append(change)

    # CREATE

    def _create(self) -> None:
        cursor = self._cursor
        replacing = cursor.words("OR", "REPLACE")
        if cursor.one_of("TEMPORARY"):
            self._result.structural = False
        elif cursor.one_of("TABLE"):
            self._create_table(replacing)
        elif cursor.one_of("DATABASE", "SCHEMA"):
            cursor.words("IF", "NOT", "EXISTS")
            self._database(cursor.name())
        else:
            unique = bool(cursor.one_of("UNIQUE"))
            cursor.one_of("ONLINE", "OFFLINE", "FULLTEXT", "SPATIAL", "VECTOR")
            if not cursor.one_of("INDEX"):
                self._result.structural = False
                return
            self._create_index(unique)

    def _database(self, name: str) -> None:
        cursor = self._cursor
        self._result.database = name
        charset = self._structure.server_charset if name not in self._structure.charsets else None
        while not cursor.done:
            cursor.one_of("DEFAULT")
            option = charset_option(cursor)
            if option is not None:
                charset = option
            elif not cursor.done:
                cursor.take()
        if charset is not None:
            self._structure.charsets[name] = charset

    def _create_table(self, replacing: bool) -> None:
        cursor, structure = self._cursor, self._structure
        only_new = cursor.words("IF", "NOT", "EXISTS")
        name = self._table_name()
        if only_new and not replacing and name in structure.tables:
            return
        if cursor.one_of("LIKE") or (cursor.next.text == "(" and cursor.ahead(1).is_word("LIKE")):
            if cursor.sign("("):
                cursor.one_of("LIKE")
            database = self._result.database
            source = structure.tables.get(self._table_name())
            self._result.database = database
            if source is not None:
                self._did(structure.put(replace(source, name=name)))
            return
        definitions: list[Definition] = []
        keys: list[Key] = []
        if cursor.sign("("):
            while True:
                key = key_definition(cursor)
                if key is None:
                    definitions.append(column_definition(cursor, cursor.name(), None))
                elif key.columns:
                    keys.append(key)
                if not cursor.sign(","):
                    break
            cursor.expect(")")
        table = self._options(Table(name, charset=structure.charset_of(name[0])))
        for made in definitions:
            table = with_column(table, made, ColumnPosition())
        for key in keys:
            table = with_key(table, key)
        self._did(structure.put(table))

    def _options(self, table: Table) -> Table:
        cursor = self._cursor
        while not cursor.done and not cursor.next.is_word("PARTITION", "SELECT", "AS", "IGNORE", "REPLACE"):
            table = table_option(cursor, table)
        return table

    def _create_index(self, unique: bool) -> None:
        cursor, structure = self._cursor, self._structure
        cursor.words("IF", "NOT", "EXISTS")
        index = cursor.name()
        if cursor.one_of("USING"):
            cursor.name()
        if not cursor.one_of("ON"):
            raise cursor.wrong("ON")
        table = structure.tables.get(self._table_name())
        if not unique or table is None:
            return
        made = key_definition(Cursor("UNIQUE KEY k " + _parenthesis(cursor)))
        if made is not None and made.columns:
            self._did(structure.alter(with_key(table, replace(made, name=index)), table.name))

    # ALTER

    def _alter(self) -> None:
        cursor = self._cursor
        cursor.one_of("ONLINE", "OFFLINE")
        cursor.one_of("IGNORE")
        if cursor.one_of("DATABASE", "SCHEMA"):
            name = (
                cursor.name()
                if cursor.next.kind == "name" or not cursor.next.is_word("DEFAULT", "CHARACTER", "COLLATE")
                else ""
            )
            self._database(name or self._result.database)
        elif cursor.one_of("TABLE"):
            cursor.words("IF", "EXISTS")
            altered = self._table_name()
            table = self._structure.tables.get(altered)
            if table is None:
                return
            if cursor.one_of("WAIT"):
                cursor.number()
            cursor.one_of("NOWAIT")
            while not cursor.done:
                table = alteration(cursor, table)
                if not cursor.sign(",") and not cursor.done:
                    cursor.take()
            self._did(self._structure.alter(table, altered))
        else:
            self._result.structural = False

    # DROP, RENAME

    def _drop(self) -> None:
        cursor, structure = self._cursor, self._structure
        if cursor.one_of("DATABASE", "SCHEMA"):
            cursor.words("IF", "EXISTS")
            name = cursor.name()
            self._result.database = name
            self._result.changes += structure.drop_database(name)
        elif cursor.one_of("TABLE", "TABLES"):
            cursor.words("IF", "EXISTS")
            database = self._result.database
            while True:
                self._result.database = database
                self._did(structure.drop(self._table_name()))
                if not cursor.sign(","):
                    break
        elif cursor.one_of("INDEX"):
            cursor.words("IF", "EXISTS")
            index = cursor.name()
            cursor.one_of("ON")
            table = structure.tables.get(self._table_name())
            if table is not None:
                without = replace(table, key=()) if index.upper() == "PRIMARY" else without_key(table, index)
                if without != table:
                    self._did(structure.alter(without, table.name))
        else:
            self._result.structural = False

    def _rename(self) -> None:
        cursor = self._cursor
        cursor.words("IF", "EXISTS")
        while True:
            old = self._table_name()
            if cursor.one_of("WAIT"):
                cursor.number()
            cursor.one_of("NOWAIT")
            if not cursor.one_of("TO"):
                raise cursor.wrong("TO")
            self._did(self._structure.rename(old, self._table_name()))
            if not cursor.sign(","):
                break


def _parenthesis(cursor: Cursor) -> str:
    """The contents of a pair of parentheses, as SQL text."""
    made, depth = [], 0
    while True:
        token = cursor.take()
        made.append("`" + token.text.replace("`", "``") + "`" if token.kind == "name" else token.text)
        if token.kind == "sign":
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth:
            return " ".join(made)
