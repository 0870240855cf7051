"""Tags inside schemas of any type: parsed from requests, read, changed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, Protocol

from registry.errors import InvalidBody
from registry.formats.avro import tags as avro
from registry.formats.entities import Entity, Tags
from registry.formats.json_schema import tags as json_schema
from registry.formats.protobuf import tags as protobuf
from tidegate.kit.logs import get_logger

__all__ = ["found_tags", "read_tags", "tagged_entities", "with_tags"]

logger = get_logger(__name__)


class _TagsOfFormat(Protocol):
    def tagged(self, text: str) -> dict[Entity, list[str]]: ...

    def with_tags(self, text: str, add: Tags, remove: Tags) -> str: ...


_FORMATS: Final[dict[str, _TagsOfFormat]] = {"AVRO": avro, "JSON": json_schema, "PROTOBUF": protobuf}


def read_tags(value: object, where: str) -> dict[Entity, list[str]]:
    """A list of ``{"schemaEntity": {"entityPath", "entityType"}, "tags": [...]}``; raises InvalidBody."""
    by_entity: dict[Entity, list[str]] = {}
    if value is None:
        return by_entity
    for item in value if isinstance(value, list) else [value]:
        entity = item.get("schemaEntity") if isinstance(item, dict) else None
        path = entity.get("entityPath") if isinstance(entity, dict) else None
        kind = entity.get("entityType") if isinstance(entity, dict) else None
        tags = item.get("tags") if isinstance(item, dict) else None
        named = isinstance(path, str) and kind in ("sr_record", "sr_field")
        if not named or not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            raise InvalidBody(
                f"{where} must be a list of a schemaEntity (entityPath; entityType sr_record or sr_field) with its tags, "
                f"not {json.dumps(item)[:100]}"
            )
        by_entity.setdefault(Entity(str(path), str(kind)), []).extend(tags)
    return by_entity


def tagged_entities(schema_type: str, text: str) -> dict[Entity, list[str]]:
    """The tagged entities of a schema; none for an unreadable schema that another registry stored."""
    if schema_type not in _FORMATS:
        return {}
    try:
        return _FORMATS[schema_type].tagged(text)
    except Exception as error:  # noqa: BLE001 - any text may stand in the log
        logger.debug("no tags are read from a schema", schema_type=schema_type, reason=repr(error))
        return {}


def with_tags(schema_type: str, text: str, add: Tags, remove: Tags) -> str:
    """The schema text with tags added, then removed. Raises InvalidSchema for a path that it lacks."""
    return _FORMATS[schema_type].with_tags(text, add, remove) if add or remove else text


def found_tags(schema_type: str, text: str, tag_names: Sequence[str]) -> list[dict[str, Any]]:
    """The answer to ``findTags``: the entities with one of the tags, or with any for ``*``."""
    if not tag_names:
        return []
    return [
        {"schemaEntity": {"entityPath": entity.path, "entityType": entity.kind}, "tags": tags}
        for entity, tags in tagged_entities(schema_type, text).items()
        if "*" in tag_names or set(tags) & set(tag_names)
    ]
