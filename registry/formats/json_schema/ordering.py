"""Confluent's order of combined schemas: by name of their kind, then title, description, default, contents."""

from __future__ import annotations

import json
from typing import Any, Final

__all__ = ["members_of", "parts_of", "sort_key"]

_COMBINED: Final = {"allOf": "allof", "anyOf": "anyof", "oneOf": "oneof"}
_KINDS: Final = {
    "allof": "combined",
    "anyof": "combined",
    "oneof": "combined",
    "types": "combined",
    "integer": "number",
    "$ref": "reference",
}
_WORDS: Final = {
    "object": ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties",
               "dependencies", "propertyNames"),
    "array": ("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "string": ("minLength", "maxLength", "pattern", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}  # fmt: skip
"""Keywords that give a schema without ``type`` this type."""

Key = tuple[Any, ...]


def parts_of(node: Any) -> list[str]:
    """The parts of a schema: its type (``types`` for a list) and its combinations, in order.

    A single part is the schema's kind; several count as ``allOf``.
    """
    if not isinstance(node, dict):
        return []
    if "$ref" in node:
        return ["$ref"]
    parts = [part for keyword, part in _COMBINED.items() if isinstance(node.get(keyword), list)]
    parts += [word for word in ("enum", "not", "const") if word in node]
    if "if" in node:
        parts.append("conditional")
    type_ = node.get("type")
    if isinstance(type_, list):
        parts.append("types")
    elif isinstance(type_, str):
        parts.append(type_)
    else:
        parts += [name for name, words in _WORDS.items() if any(word in node for word in words)]
    return sorted(parts, key=lambda part: _KINDS.get(part, part))


def members_of(node: dict[str, Any], keyword: str) -> list[Any]:
    """The members of ``allOf``, ``anyOf`` or ``oneOf`` in Confluent's order."""
    members = node.get(keyword)
    return sorted(members, key=sort_key) if isinstance(members, list) else []


def sort_key(node: Any) -> Key:
    """The sort key of a schema."""
    if isinstance(node, bool):
        return (str(node).lower(),)
    if not isinstance(node, dict):
        return ("empty",)
    parts = parts_of(node)
    kind = "empty" if not parts else "combined" if len(parts) > 1 else _KINDS.get(parts[0], parts[0])
    named = tuple(_text(node.get(word)) for word in ("title", "description", "default"))
    return (kind, *named, *_contents(node, kind, parts))


def _contents(node: dict[str, Any], kind: str, parts: list[str]) -> Key:
    match kind:
        case "const":
            return _text(node["const"])
        case "enum":
            return _collection(node["enum"])
        case "not":
            return sort_key(node["not"])
        case "conditional":
            return tuple(sort_key(node.get(word, {})) for word in ("if", "then", "else"))
        case "object":
            return (_collection(node.get("properties")), _collection(node.get("required")))
        case "array":
            return sort_key(node.get("items"))
        case "combined" if len(parts) == 1 and parts[0] in _COMBINED.values():
            keyword = next(keyword for keyword, part in _COMBINED.items() if part == parts[0])
            members = [sort_key(member) for member in members_of(node, keyword)]
            return (parts[0], len(members), tuple(members))
        case "combined":
            return ("anyof" if parts == ["types"] else "allof", len(parts), ())
    return ()


def _collection(values: Any) -> Key:
    """The number of values, then the values in their order."""
    listed = values if isinstance(values, list | dict) else ()
    names = [value if isinstance(value, str) else json.dumps(value) for value in listed]
    return (len(names), tuple(sorted(names)))


def _text(value: Any) -> tuple[str, ...]:
    """Absent sorts before any text."""
    return () if value is None else (value if isinstance(value, str) else json.dumps(value),)
