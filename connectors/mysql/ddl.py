"""What a statement of DDL does to the structure: CREATE, ALTER, DROP, RENAME, TRUNCATE of tables, indexes and databases.

Only what shapes rows and keys is understood; the rest of a statement is stepped over. sqlglot, the library there is, turns much
of MySQL's ALTER TABLE into an opaque command, so this reads it itself. Grammar: dev.mysql.com and mariadb.com, "Data Definition".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from connect.api import DataError
from connectors.mysql.ddl_columns import Definition, Key, charset_option, column_definition, key_definition
from connectors.mysql.ddl_tokens import Cursor
from connectors.mysql.structure import Change, Place, Structure, Table, TableName
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

__all__ = ["Applied", "apply"]


@dataclass(slots=True)
class Applied:
    """``database`` is the one the statement is about; ``structural`` whether it is one that the history keeps."""

    database: str
    changes: list[Change] = field(default_factory=list)
    truncated: list[TableName] = field(default_factory=list)
    structural: bool = True


_PREFIX: Final = ("SET", "STATEMENT")


def apply(structure: Structure, sql: str, database: str) -> Applied:
    """Do to ``structure`` what the statement does, run in ``database``. Raises DataError that names what is not understood."""
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
            found = charset_option(cursor)
            if found is not None:
                charset = found
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
            table = with_column(table, made, Place())
        for key in keys:
            table = with_key(table, key)
        self._did(structure.put(table))

    def _options(self, table: Table) -> Table:
        cursor = self._cursor
        while not cursor.done and not cursor.next.is_word("PARTITION", "SELECT", "AS", "IGNORE", "REPLACE"):
            table = self._option(table)
        return table

    def _option(self, table: Table) -> Table:
        """Read one option of a table."""
        cursor = self._cursor
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
                table = self._alteration(table)
                if not cursor.sign(",") and not cursor.done:
                    cursor.take()
            self._did(self._structure.alter(table, altered))
        else:
            self._result.structural = False

    def _alteration(self, table: Table) -> Table:
        """Read one alteration, to the comma after it."""
        cursor = self._cursor
        match cursor.one_of("ADD", "DROP", "MODIFY", "CHANGE", "ALTER", "RENAME", "CONVERT"):
            case "ADD":
                return self._add(table)
            case "DROP":
                return self._drop_part(table)
            case "MODIFY":
                cursor.one_of("COLUMN")
                cursor.words("IF", "EXISTS")
                return self._changed(table, cursor.name(), None)
            case "CHANGE":
                cursor.one_of("COLUMN")
                cursor.words("IF", "EXISTS")
                old = cursor.name()
                return self._changed(table, old, cursor.name())
            case "ALTER":
                return self._alter_column(table)
            case "RENAME":
                return self._rename_part(table)
            case "CONVERT":
                cursor.one_of("TO")
                charset = charset_option(cursor)
                cursor.skip_item()
                return table if charset is None else converted(table, charset)
        if cursor.next.is_word(
            "PARTITION", "REORGANIZE", "COALESCE", "EXCHANGE", "ANALYZE", "REMOVE", "TRUNCATE", "ORDER"
        ):
            while not cursor.done:
                cursor.take()
            return table
        while not cursor.done and cursor.next.text != ",":
            table = self._option(table)
        return table

    def _add(self, table: Table) -> Table:
        cursor = self._cursor
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
            place = self._place()
            return table if only_new and table.column(made.column.name) else with_column(table, made, place)
        while True:
            made = column_definition(cursor, cursor.name(), table.charset)
            table = with_column(table, made, Place())
            if not cursor.sign(","):
                break
        cursor.expect(")")
        return table

    def _place(self) -> Place:
        cursor = self._cursor
        if cursor.one_of("FIRST"):
            return Place(first=True)
        return Place(after=cursor.name()) if cursor.one_of("AFTER") else Place()

    def _drop_part(self, table: Table) -> Table:
        cursor = self._cursor
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

    def _changed(self, table: Table, old: str, new: str | None) -> Table:
        cursor = self._cursor
        known = table.column(old)
        made = column_definition(cursor, new or (known.name if known is not None else old), table.charset)
        place = self._place()
        if known is None:
            return table
        columns = [made.column if column is known else column for column in table.columns]
        if place != Place():
            columns.remove(made.column)
            columns.insert(position(columns, place), made.column)
        table = renamed_in_keys(replace(table, columns=tuple(columns)), known.name, made.column.name)
        if made.column.name in table.key:
            table = with_required(table, table.key)
        return with_keys_of(table, made)

    def _alter_column(self, table: Table) -> Table:
        cursor = self._cursor
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

    def _rename_part(self, table: Table) -> Table:
        cursor = self._cursor
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
            return replace(
                table, unique=tuple((new if name == old else name, columns) for name, columns in table.unique)
            )
        cursor.one_of("TO", "AS")
        cursor.sign("=")
        database = self._result.database
        self._result.database = table.name[0]
        renamed = replace(table, name=self._table_name())
        self._result.database = database
        return renamed

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
    """What stands in parentheses, as SQL again."""
    made, depth = [], 0
    while True:
        token = cursor.take()
        made.append("`" + token.text.replace("`", "``") + "`" if token.kind == "name" else token.text)
        if token.kind == "sign":
            depth += {"(": 1, ")": -1}.get(token.text, 0)
        if not depth:
            return " ".join(made)


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
