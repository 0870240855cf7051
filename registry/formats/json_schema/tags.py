"""Tags inside a JSON Schema: reads and changes ``confluent:tags`` of objects and properties by Confluent's paths.

A path has the kind of each schema: ``object.PROPERTY``, ``object.definitions.NAME``, ``array`` (its items),
``allof.N``, ``anyof.N``, ``oneof.N`` (the Nth member in Confluent's order, which is by kind and then by title),
``not``, ``conditional.then``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from registry.formats.entities import Entity, Tags, no_such_path, retagged
from registry.formats.json_schema.ordering import members_of, parts_of, sort_key
from registry.formats.json_text import write_json

__all__ = ["tagged", "with_tags"]

_TAGS: Final = "confluent:tags"
_CRITERIA: Final = {"allof": "allOf", "anyof": "anyOf", "oneof": "oneOf"}


def tagged(text: str) -> dict[Entity, list[str]]:
    """The tagged entities of a schema: objects that are not properties, and properties."""
    return {entity: tags for entity, node in _bearers(json.loads(text), "") if (tags := _tags_of(node))}


def with_tags(text: str, add: Tags, remove: Tags) -> str:
    """The schema with tags added and then others removed. Raises InvalidSchema for an unknown path."""
    root = json.loads(text)
    for entity in dict.fromkeys((*add, *remove)):
        bearer = _find(root, entity.path.split("."), entity.kind)
        if bearer is None:
            raise no_such_path(entity)
        if tags := retagged(entity, _tags_of(bearer), add, remove):
            bearer[_TAGS] = tags
        else:
            bearer.pop(_TAGS, None)
    return write_json(root)


def _bearers(node: Any, scope: str, *, is_property: bool = False) -> Iterator[tuple[Entity, Any]]:
    parts = parts_of(node)
    if len(parts) == 1:
        yield from _part(node, parts[0], scope, is_property=is_property)
        return
    for index, part in enumerate(parts):  # several parts of a schema count as allOf
        yield from _part(node, part, f"{scope}allof.{index}.", is_property=False)


def _part(node: dict[str, Any], part: str, scope: str, *, is_property: bool) -> Iterator[tuple[Entity, Any]]:
    """The taggable entities in one part of a schema: one of its types, or one of its combinations."""
    match part:
        case "object":
            if not is_property:
                yield Entity(f"{scope}object", "sr_record"), node
            for name, inner in _named(node, "properties"):
                yield Entity(f"{scope}object.{name}", "sr_field"), inner
                yield from _bearers(inner, f"{scope}object.{name}.", is_property=True)
            for keyword in ("definitions", "$defs"):
                for name, inner in _named(node, keyword):
                    yield from _bearers(inner, f"{scope}object.{keyword}.{name}.")
        case "array":
            yield from _bearers(node.get("items"), f"{scope}array.")
        case "not":
            yield from _bearers(node["not"], f"{scope}not.")
        case "conditional":
            for keyword in ("if", "then", "else"):
                yield from _bearers(node.get(keyword), f"{scope}conditional.{keyword}.")
        case "types":  # "type": ["null", "object"]
            for index, name in enumerate(sorted(node["type"], key=lambda name: sort_key({"type": name}))):
                yield from _part(node, str(name), f"{scope}anyof.{index}.", is_property=False)
        case "allof" | "anyof" | "oneof":
            for index, inner in enumerate(members_of(node, _CRITERIA[part])):
                yield from _bearers(inner, f"{scope}{part}.{index}.")


def _find(node: Any, path: list[str], kind: str) -> dict[str, Any] | None:
    """The schema that the path leads to from ``node``, at which the first word applies."""
    while isinstance(node, dict) and path:
        word, *path = path
        match word:
            case "object":
                if not path:
                    return node if kind == "sr_record" else None
                keyword = path[0] if path[0] in ("definitions", "$defs") else "properties"
                path = path[keyword != "properties" :]
                node, path = _longest(node.get(keyword), path)
                if not path:
                    return node if isinstance(node, dict) else None
            case "array":
                node = node.get("items")
            case "not":
                node = node.get("not")
            case "conditional":
                node, path = node.get(path[0]) if path else None, path[1:]
            case "allof" | "anyof" | "oneof":
                step, path = path[0] if path else "", path[1:]
                # Without the keyword the word means the schema's parts, or its list of types.
                if _CRITERIA[word] in node:
                    members = members_of(node, _CRITERIA[word])
                    node = members[int(step)] if step.isdecimal() and int(step) < len(members) else None
            case _:
                return None
    return None


def _longest(named: Any, path: list[str]) -> tuple[Any, list[str]]:
    """The schema whose name (which may contain dots) the path starts with, and the rest of the path."""
    if isinstance(named, dict):
        for words in range(1, len(path) + 1):
            if (name := ".".join(path[:words])) in named:
                return named[name], path[words:]
    return None, []


def _named(node: dict[str, Any], keyword: str) -> list[tuple[str, Any]]:
    members = node.get(keyword)
    return list(members.items()) if isinstance(members, dict) else []


def _tags_of(node: Any) -> list[str]:
    tags = node.get(_TAGS) if isinstance(node, dict) else None
    return [str(tag) for tag in tags] if isinstance(tags, list) else []
