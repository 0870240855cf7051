"""Reads options: ``name = value``, where a value may be a message literal."""

from __future__ import annotations

from typing import Any, Final

from registry.formats.protobuf.cursor import Cursor
from registry.formats.protobuf.elements import Option, OptionKind, Primitive

__all__ = ["MAX_DEPTH", "read_option", "read_options"]

MAX_DEPTH: Final = 100
"""The deepest nesting, in options as in messages.

Deeper files are refused, because every later traversal is recursive.
"""


def read_options(cursor: Cursor) -> list[Option]:
    """The options in square brackets, if any come next."""
    options: list[Option] = []
    if not cursor.take("["):
        return options
    while True:
        options.append(read_option(cursor, "="))
        if cursor.take("]"):
            return options
        if not cursor.take(","):
            cursor.fail("Expected ',' or ']'")


def read_option(cursor: Cursor, separator: str, depth: int = 0) -> Option:
    """One option without its terminator. ``separator`` is ``=``, or ``:`` inside a message literal."""
    if depth > MAX_DEPTH:
        cursor.fail(f"nested too deep: more than {MAX_DEPTH} levels")
    opening = cursor.peek()
    name = cursor.name()
    if opening == "[":
        name = f"[{name}]"
    inner: list[str] = []
    while (char := cursor.char()) == ".":
        inner.append(cursor.name(keep_wrap=True, dots=False))
        if len(inner) > MAX_DEPTH:
            cursor.fail(f"nested too deep: more than {MAX_DEPTH} levels")
    if separator == ":" and char == "{":
        cursor.back()  # a message literal needs no separator
    elif char != separator:
        cursor.back()
        cursor.fail(f"expected '{separator}' in option")
    kind, value = _value(cursor, depth + 1)
    for part in reversed(inner):
        wrapped = part.startswith("(")
        value = Option(part[1:-1] if wrapped else part, kind, value, wrapped)
        kind = "option"
    return Option(name, kind, value, opening == "(")


def _value(cursor: Cursor, depth: int) -> tuple[OptionKind, Any]:
    char = cursor.peek()
    if char == "{":
        return "map", _map(cursor, depth)
    if char == "[":
        return "list", _list(cursor, depth)
    if char in "'\"":
        return "string", cursor.string()
    word = cursor.word()
    if char.isdigit() or char == "-":
        return "number", word
    return ("boolean" if word in ("true", "false") else "enum"), word


def _element(kind: OptionKind, value: Any) -> Any:
    return Primitive(kind, value) if kind in ("boolean", "enum", "number") else value


def _map(cursor: Cursor, depth: int) -> dict[str, Any]:
    """A message literal. A repeated field becomes a list."""
    cursor.require("{")
    values: dict[str, Any] = {}
    while not cursor.take("}"):
        option = read_option(cursor, ":", depth)
        name, value = option.name, _element(option.kind, option.value)
        known = values.get(name)
        if isinstance(value, Option):
            if not isinstance(known, dict):
                known = values[name] = {}
            known[value.name] = value.value
        elif name not in values:
            values[name] = value
        else:
            more = value if isinstance(value, list) else [value]
            values[name] = [*known, *more] if isinstance(known, list) else [known, *more]
        if not cursor.take(","):
            cursor.take(";")
    return values


def _list(cursor: Cursor, depth: int) -> list[Any]:
    if depth > MAX_DEPTH:
        cursor.fail(f"nested too deep: more than {MAX_DEPTH} levels")
    cursor.require("[")
    values: list[Any] = []
    while not cursor.take("]"):
        values.append(_element(*_value(cursor, depth + 1)))
        if not cursor.take(",") and cursor.peek() != "]":
            cursor.fail("expected ',' or ']'")
    return values
