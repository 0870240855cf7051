"""Tags inside an Avro schema: reads and changes ``confluent:tags`` of records and fields by path."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any, Final

from registry.formats.entities import Entity, Tags, no_such_path, retagged
from registry.formats.json_text import write_json

__all__ = ["tagged", "with_tags"]

_TAGS: Final = "confluent:tags"


def tagged(text: str) -> dict[Entity, list[str]]:
    """The tagged entities in the order of the schema: records by full name, fields by that and their own name."""
    by_entity: dict[Entity, list[str]] = {}
    for record, full_name in _records(json.loads(text)):
        if tags := _tags_of(record):
            by_entity[Entity(full_name, "sr_record")] = tags
        for field in _fields(record):
            if tags := _tags_of(field):
                by_entity[Entity(f"{full_name}.{field['name']}", "sr_field")] = tags
    return by_entity


def with_tags(text: str, add: Tags, remove: Tags) -> str:
    """The schema with tags added and then others removed. Raises InvalidSchema for an unknown path."""
    root = json.loads(text)
    for entity in dict.fromkeys((*add, *remove)):
        bearer = _find(root, entity)
        if tags := retagged(entity, _tags_of(bearer), add, remove):
            bearer[_TAGS] = tags
        else:
            bearer.pop(_TAGS, None)
    return write_json(root)


def _find(root: Any, entity: Entity) -> dict[str, Any]:
    path = entity.path.removeprefix(".")
    record_path, _, field_name = path.rpartition(".") if entity.kind == "sr_field" else (path, "", "")
    for record, full_name in _records(root):
        # A path without a namespace matches a record of that name in any namespace.
        if record_path not in (full_name, record["name"].rpartition(".")[2]):
            continue
        if entity.kind == "sr_record":
            return record
        for field in _fields(record):
            if field["name"] == field_name:
                return field
    raise no_such_path(entity)


def _records(root: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Every record defined in the schema with its full name, outer ones first."""
    waiting: deque[tuple[Any, str]] = deque([(root, "")])
    while waiting:
        node, namespace = waiting.popleft()
        if isinstance(node, list):
            waiting.extend((branch, namespace) for branch in node)
        elif isinstance(node, dict):
            if node.get("type") in ("record", "error"):
                name, own_namespace = node["name"], node.get("namespace", namespace)
                full_name = name if "." in name or not own_namespace else f"{own_namespace}.{name}"
                yield node, full_name
                inner = full_name.rpartition(".")[0]
                waiting.extend((field["type"], inner) for field in _fields(node))
            else:
                waiting.extend((node[part], namespace) for part in ("items", "values", "type") if part in node)


def _fields(record: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [field for field in record.get("fields", ()) if isinstance(field, dict)]


def _tags_of(bearer: Mapping[str, Any]) -> list[str]:
    tags = bearer.get(_TAGS)
    return [str(tag) for tag in tags] if isinstance(tags, list) else []
