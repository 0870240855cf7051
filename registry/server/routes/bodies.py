"""Parses request bodies with Confluent's members. Unknown members are ignored."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from registry.domain.registration import NewSchema, TagChange
from registry.domain.schemas import Definition
from registry.domain.tags import read_tags
from registry.errors import InvalidBody, InvalidRuleSet, InvalidSchema
from registry.formats.parsed import Reference
from registry.model.contracts import check_rules, read_metadata, read_rule_set

__all__ = ["definition", "new_schema", "tag_change"]


def definition(body: Mapping[str, Any]) -> Definition:
    """The schema in a request body; raises InvalidBody."""
    return Definition(
        schema=_text(body, "schema") or "",
        schema_type=_text(body, "schemaType") or "AVRO",
        references=tuple(_reference(item) for item in _list(body, "references")),
        metadata=read_metadata(body.get("metadata")),
        rule_set=read_rule_set(body.get("ruleSet")),
    )


def new_schema(body: Mapping[str, Any]) -> NewSchema:
    """A schema to register; raises InvalidBody or InvalidRuleSet."""
    schema_id, new_definition = _number(body, "id"), definition(body)
    check_rules(new_definition.rule_set)
    return NewSchema(
        new_definition,
        id=None if schema_id is None or schema_id < 0 else schema_id,
        version=max(_number(body, "version") or 0, -1),
        add_tags=read_tags(body.get("schemaTagsToAdd"), "schemaTagsToAdd"),
        remove_tags=read_tags(body.get("schemaTagsToRemove"), "schemaTagsToRemove"),
        propagate_tags=body.get("propagateSchemaTags") is True,
    )


def tag_change(body: Mapping[str, Any]) -> TagChange:
    """A change of tags, metadata or rules; raises InvalidBody or InvalidRuleSet."""
    rule_set, merged = read_rule_set(body.get("ruleSet")), read_rule_set(body.get("rulesToMerge"), "rulesToMerge")
    removed = body.get("rulesToRemove")
    if rule_set is not None and (merged is not None or removed is not None):
        raise InvalidRuleSet("ruleSet should be omitted if specifying rulesToMerge or rulesToRemove")
    check_rules(rule_set)
    check_rules(merged)
    return TagChange(
        new_version=max(_number(body, "newVersion") or 0, 0),
        add=read_tags(body.get("tagsToAdd"), "tagsToAdd"),
        remove=read_tags(body.get("tagsToRemove"), "tagsToRemove"),
        metadata=read_metadata(body.get("metadata")),
        rule_set=rule_set,
        rules_to_merge=merged,
        rules_to_remove=None if removed is None else tuple(str(name) for name in _list(body, "rulesToRemove")),
    )


def _text(body: Mapping[str, Any], name: str) -> str | None:
    value = body.get(name)
    if isinstance(value, bool | int | float):
        return json.dumps(value)  # like Confluent's parser
    if value is not None and not isinstance(value, str):
        raise InvalidBody(f"{name} must be text, not {json.dumps(value)[:100]}")
    return value


def _number(body: Mapping[str, Any], name: str) -> int | None:
    value = body.get(name)
    if isinstance(value, str) and value.lstrip("-").isascii() and value.removeprefix("-").isdigit():
        value = int(value[:20])
    if value is None or value == "":
        return None
    if isinstance(value, float) and abs(value) < 1 << 53:
        value = int(value)  # like Confluent's parser
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 31) <= value < 1 << 31:
        raise InvalidBody(f"{name} must be a number, not {json.dumps(value)[:100]}")
    return value


def _list(body: Mapping[str, Any], name: str) -> list[Any]:
    value = body.get(name)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidBody(f"{name} must be a list, not {json.dumps(value)[:100]}")
    return value


def _reference(item: Any) -> Reference:
    if not isinstance(item, dict):
        raise InvalidBody(f"A reference must be an object, not {json.dumps(item)[:100]}")
    name, subject, version = _text(item, "name"), _text(item, "subject"), _number(item, "version")
    if not name or not subject or version is None:
        raise InvalidSchema(f"A reference needs a name, a subject and a version, not {json.dumps(item)[:100]}")
    return Reference(name, subject, version)
