"""Answers in Confluent's words: which members an object has, and in which order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from registry.model.associations import Association
from registry.model.records import SchemaVersion
from registry.model.subjects import DEFAULT_CONTEXT, context_of, within

__all__ = ["by_id", "compatibility", "listed", "registered", "version"]


def version(
    found: SchemaVersion,
    *,
    text: str | None = None,
    qualified: bool = False,
    tags: Sequence[Any] = (),
    history: bool = True,
) -> dict[str, Any]:
    """A version of a subject. ``text`` is the schema in another form; ``history`` says when it was written and its fate."""
    value: dict[str, Any] = {
        "subject": found.subject,
        "version": found.version,
        "id": found.id,
        "guid": found.guid,
        "schemaType": found.schema_type,
    }
    if found.references:
        value["references"] = _references(found, qualified)
    if found.metadata is not None:
        value["metadata"] = json.loads(found.metadata)
    value["schema"] = found.schema if text is None else text
    if tags:
        value["schemaTags"] = tags
    if history:
        _add_history(value, found)
    if found.rule_set is not None:
        value["ruleSet"] = json.loads(found.rule_set)
    return value


def listed(found: SchemaVersion, aliases: Sequence[str], associations: Sequence[Association] = ()) -> dict[str, Any]:
    """A version in a list, with the aliases of its subject and the associations that were asked for."""
    value = version(found)
    rule_set = value.pop("ruleSet", None)
    if aliases:
        value["aliases"] = list(aliases)
    if associations:
        value["associations"] = [each.as_json() for each in associations]
    if rule_set is not None:
        value["ruleSet"] = rule_set
    return value


def by_id(
    found: SchemaVersion,
    *,
    text: str | None = None,
    place: bool = True,
    qualified: bool = False,
    tags: Sequence[Any] = (),
    max_id: int | None = None,
) -> dict[str, Any]:
    """A schema asked for by id or guid; ``place`` says where one of its versions is."""
    value: dict[str, Any] = {"subject": found.subject, "version": found.version} if place else {}
    value |= {"guid": found.guid, "schemaType": found.schema_type, "schema": found.schema if text is None else text}
    if found.references:
        value["references"] = _references(found, qualified)
    _add_contracts(value, found)
    if tags:
        value["schemaTags"] = tags
    if max_id is not None:
        value["maxId"] = max_id
    _add_history(value, found)
    return value


def registered(found: SchemaVersion, text: str | None = None) -> dict[str, Any]:
    """What a registration came to."""
    value: dict[str, Any] = {
        "id": found.id,
        "version": found.version,
        "guid": found.guid,
        "schemaType": found.schema_type,
    }
    if found.references:
        value["references"] = _references(found, qualified=False)
    _add_contracts(value, found)
    value["schema"] = found.schema if text is None else text
    return value


def compatibility(problems: list[str], *, verbose: bool) -> dict[str, Any]:
    return {"is_compatible": not problems, **({"messages": problems} if verbose else {})}


def _references(found: SchemaVersion, qualified: bool) -> list[dict[str, Any]]:
    shown = [reference.as_json() for reference in found.references]
    if qualified and context_of(found.subject) != DEFAULT_CONTEXT:
        for reference in shown:
            reference["subject"] = within(found.subject, reference["subject"])
    return shown


def _add_contracts(value: dict[str, Any], found: SchemaVersion) -> None:
    if found.metadata is not None:
        value["metadata"] = json.loads(found.metadata)
    if found.rule_set is not None:
        value["ruleSet"] = json.loads(found.rule_set)


def _add_history(value: dict[str, Any], found: SchemaVersion) -> None:
    if found.timestamp_ms is not None:
        value["ts"] = found.timestamp_ms
    value["deleted"] = found.deleted
