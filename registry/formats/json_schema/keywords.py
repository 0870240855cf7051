"""Reads values of keywords, with an error that names the path and the expected type."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any, Final, NoReturn

from registry.formats.json_schema.references import SchemaError

__all__ = [
    "MAX_DEPTH",
    "TYPES",
    "array",
    "boolean",
    "count",
    "number",
    "object_",
    "refused",
    "strings",
    "text",
]

MAX_DEPTH: Final = 100
"""The deepest nesting of schemas. Deeper ones are refused, because every later traversal is recursive."""

TYPES: Final = frozenset({"string", "integer", "number", "boolean", "null", "array", "object"})


def refused(where: str, expected: str, value: Any) -> NoReturn:
    shown = json.dumps(value, ensure_ascii=False, default=str)
    raise SchemaError(f"{where}: expected {expected}, found {shown if len(shown) <= 100 else shown[:100] + '...'}")


def count(value: Any, where: str) -> int:
    """A whole number within Java's int, as lengths and counts are."""
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 31) <= value < 1 << 31:
        refused(where, "an integer", value)
    return value


def number(value: Any, where: str) -> int | Decimal:
    if not isinstance(value, int | Decimal) or isinstance(value, bool):
        refused(where, "a number", value)
    return value


def text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        refused(where, "a string", value)
    return value


def boolean(value: Any, where: str) -> bool:
    if not isinstance(value, bool):
        refused(where, "true or false", value)
    return value


def array(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        refused(where, "an array", value)
    return value


def object_(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        refused(where, "an object", value)
    return value


def strings(value: Any, where: str) -> list[str]:
    return [text(item, f"{where}/{index}") for index, item in enumerate(array(value, where))]
