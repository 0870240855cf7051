"""Parses definitions of columns and keys in CREATE TABLE and ALTER TABLE."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from connectors.mysql.ddl_tokens import Cursor
from connectors.mysql.structure import Column

__all__ = ["Definition", "Key", "charset_option", "column_definition", "has_charset", "key_definition"]


@dataclass(frozen=True, slots=True)
class Definition:
    """A column, and whether its definition makes it the primary key or unique."""

    column: Column
    primary: bool = False
    unique: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """``name`` is empty where none was given. Only primary and unique keys matter; all others have no ``columns``."""

    name: str
    columns: tuple[str, ...]
    primary: bool = False


_TEXTS: Final = frozenset(
    [
        "CHAR",
        "CHARACTER",
        "VARCHAR",
        "TINYTEXT",
        "TEXT",
        "MEDIUMTEXT",
        "LONGTEXT",
        "NCHAR",
        "NVARCHAR",
        "NATIONAL",
        "LONG",
        "ENUM",
        "SET",
    ]
)


def has_charset(type_name: str) -> bool:
    """Whether columns of a type have a character set."""
    return type_name.split(" ", 1)[0] in _TEXTS and type_name != "LONG VARBINARY"


_DEFAULT_SIZES: Final = {"DECIMAL": (10, 0), "DEC": (10, 0), "FIXED": (10, 0), "NUMERIC": (10, 0), "BIT": (1, None)}


def _type_name(cursor: Cursor) -> str:
    word = cursor.name().upper()
    if word == "DOUBLE" and cursor.words("PRECISION"):
        return "DOUBLE PRECISION"
    if word in ("CHAR", "CHARACTER", "NCHAR") and cursor.one_of("VARYING"):
        return f"{word} VARYING"
    if word == "NCHAR" and cursor.one_of("VARCHAR"):
        return "NCHAR VARCHAR"
    if word == "NATIONAL":
        inner = cursor.name().upper()
        return f"NATIONAL {inner} VARYING" if cursor.one_of("VARYING") else f"NATIONAL {inner}"
    if word == "LONG":
        for more in ("VARCHAR", "VARBINARY"):
            if cursor.words(more):
                return f"LONG {more}"
    return word


def charset_option(cursor: Cursor) -> str | None:
    """The character set given by CHARACTER SET, CHARSET or COLLATE; None where none of these follows."""
    if cursor.words("CHARACTER", "SET") or cursor.words("CHAR", "SET") or cursor.one_of("CHARSET"):
        cursor.sign("=")
        return cursor.name().lower()
    if cursor.one_of("COLLATE"):
        cursor.sign("=")
        return _charset_of_collation(cursor.name())
    return None


def _charset_of_collation(name: str) -> str | None:
    lowered = name.lower()
    if lowered == "default" or lowered.startswith("uca1400"):  # MariaDB's; exist for any character set
        return None
    return lowered.split("_", 1)[0]


def _type(cursor: Cursor, column: Column) -> Column:
    name = _type_name(cursor)
    length, scale = _DEFAULT_SIZES.get(name, (None, None))
    labels: list[str] = []
    if cursor.sign("("):
        if name in ("ENUM", "SET"):
            labels.append(cursor.take().text)
            while cursor.sign(","):
                labels.append(cursor.take().text)
        elif cursor.next.kind == "number":
            length = cursor.number()
            if cursor.sign(","):
                scale = cursor.number()
        cursor.expect(")")
    if name == "ENUM":
        length = 1
    elif name == "SET":
        length = max(0, 2 * len(labels) - 1)
    column = replace(column, length=length, scale=scale, labels=tuple(labels))
    if name == "SERIAL":
        return replace(column, type="BIGINT UNSIGNED", optional=False, auto_increment=True, generated=True)
    while (flag := cursor.one_of("UNSIGNED", "SIGNED", "ZEROFILL")) is not None:
        name = f"{name} {flag}"
    if "ZEROFILL" in name and "UNSIGNED" not in name:
        name = name.replace(" ZEROFILL", " UNSIGNED ZEROFILL")
    return replace(column, type=name)


def _default(cursor: Cursor) -> str | None:
    """The text of a literal; None for an expression. CURRENT_TIMESTAMP becomes the epoch, as in Debezium."""
    token = cursor.next
    if token.kind == "string":
        text = cursor.take().text
        while cursor.next.kind == "string":  # 'a' 'b' is 'ab'
            text += cursor.take().text
        if cursor.one_of("COLLATE"):
            cursor.name()
        return text
    if token.kind == "bits":
        cursor.take()
        text = token.text
        if text[0] in "bB":
            return text[2:-1]
        if text[:2] == "0b":
            return text[2:]
        digits = text[2:-1] if text[0] in "xX" else text[2:]
        return bytes.fromhex(digits.rjust(len(digits) + len(digits) % 2, "0")).decode("latin-1")
    sign = ""
    if token.kind == "sign" and token.text in "+-":
        sign = cursor.take().text.replace("+", "")
        token = cursor.next
    if token.kind == "number":
        return sign + cursor.take().text
    if cursor.one_of("NULL"):
        return None
    if cursor.sign("("):
        depth = 1
        while depth:
            inner = cursor.take()
            depth += {"(": 1, ")": -1}.get(inner.text, 0) if inner.kind == "sign" else 0
        return None
    word = cursor.take().text.upper()
    if word in ("TRUE", "FALSE"):
        return word.lower()
    if cursor.ahead(0).text == "(":
        cursor.skip_parentheses()
    elif word == "NEXT":  # VALUE FOR a sequence
        cursor.words("VALUE", "FOR")
        cursor.name()
        if cursor.sign("."):
            cursor.name()
    return "1970-01-01 00:00:00" if word in ("CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP") else None


def column_definition(cursor: Cursor, name: str, charset: str | None) -> Definition:
    """Parse the definition after a column's name. ``charset`` is the table's."""
    column = _type(cursor, Column(name, ""))
    base = column.type.split(" ", 1)[0]
    explicit: str | None = None
    primary = unique = False
    if base == "NATIONAL" or base in ("NCHAR", "NVARCHAR"):
        explicit = "utf8"
    while not cursor.done and cursor.next.text not in (",", ")"):
        option = charset_option(cursor)
        if option is not None:
            explicit = explicit if explicit is not None and option == explicit.split("_")[0] else option
        elif cursor.words("NOT", "NULL"):
            column = replace(column, optional=False)
        elif cursor.one_of("NULL"):
            column = replace(column, optional=True)
        elif cursor.one_of("DEFAULT"):
            column = replace(column, default=_default(cursor), has_default=True)
        elif cursor.words("ON", "UPDATE"):
            cursor.take()
            if cursor.next.text == "(":
                cursor.skip_parentheses()
        elif cursor.one_of("AUTO_INCREMENT"):
            column = replace(column, auto_increment=True, generated=True)
        elif cursor.words("PRIMARY", "KEY") or cursor.words("PRIMARY"):
            primary = True
        elif cursor.one_of("UNIQUE"):
            cursor.one_of("KEY")
            unique = True
        elif cursor.one_of("KEY"):
            primary = True
        elif cursor.one_of("COMMENT"):
            cursor.sign("=")
            column = replace(column, comment=cursor.take().text)
        elif cursor.words("GENERATED", "ALWAYS", "AS") or cursor.one_of("AS"):
            if cursor.next.text == "(":
                cursor.skip_parentheses()
            else:  # ROW START, ROW END of a versioned table
                cursor.take()
                cursor.take()
            column = replace(column, generated=True)
        elif cursor.one_of("ASCII"):
            explicit = "latin1"
        elif cursor.one_of("UNICODE"):
            explicit = "ucs2"
        elif cursor.next.is_word("FIRST", "AFTER"):
            break
        elif cursor.one_of("REFERENCES"):
            cursor.name()
            if cursor.sign("."):
                cursor.name()
        elif cursor.next.text == "(":
            cursor.skip_parentheses()
        else:  # not relevant here: CHECK, CONSTRAINT, INVISIBLE, STORED, COLUMN_FORMAT, SRID, ...
            cursor.take()
    if primary:
        column = replace(column, optional=False)
    if has_charset(column.type):
        column = replace(column, charset=explicit or charset)
    return Definition(column, primary, unique)


def _index_columns(cursor: Cursor) -> tuple[str, ...]:
    """Names in parentheses; empty where one of them is an expression."""
    names: list[str] = []
    expression = False
    cursor.expect("(")
    while True:
        if cursor.next.text == "(" and cursor.next.kind == "sign":
            cursor.skip_parentheses()
            expression = True
        else:
            names.append(cursor.name())
            if cursor.next.text == "(" and cursor.next.kind == "sign":  # the length of an index prefix
                cursor.skip_parentheses()
            cursor.one_of("ASC", "DESC")
        if not cursor.sign(","):
            break
    cursor.expect(")")
    return () if expression else tuple(names)


def key_definition(cursor: Cursor) -> Key | None:
    """Parse a key or a constraint to its end; None where a column follows instead."""
    if not cursor.next.is_word(
        "CONSTRAINT", "PRIMARY", "UNIQUE", "KEY", "INDEX", "FULLTEXT", "SPATIAL", "VECTOR", "FOREIGN", "CHECK", "PERIOD"
    ):
        return None
    name = ""
    if cursor.one_of("CONSTRAINT") and not cursor.next.is_word("PRIMARY", "UNIQUE", "FOREIGN", "CHECK"):
        name = cursor.name()
    made = Key("", ())
    if cursor.words("PRIMARY", "KEY"):
        _index_type(cursor)
        if cursor.next.kind in ("word", "name"):
            cursor.name()
            _index_type(cursor)
        made = Key("PRIMARY", _index_columns(cursor), primary=True)
    elif cursor.one_of("UNIQUE"):
        cursor.one_of("KEY", "INDEX")
        cursor.words("IF", "NOT", "EXISTS")
        _index_type(cursor)
        if cursor.next.kind in ("word", "name", "string"):
            name = cursor.name()
            _index_type(cursor)
        columns = _index_columns(cursor)
        made = Key(name or (columns[0] if columns else ""), columns)
    cursor.skip_item()
    return made


def _index_type(cursor: Cursor) -> None:
    if cursor.one_of("USING", "TYPE"):
        cursor.name()
