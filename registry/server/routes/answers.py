"""Answers with Confluent's members in Confluent's order."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from registry.model.associations import Association
from registry.model.records import SchemaVersion
from registry.model.subjects import DEFAULT_CONTEXT, context_of, within

__all__ = ["by_id", "compatibility", "listed", "registered", "version"]


def version(
    version: SchemaVersion,
    *,
    text: str | None = None,
    qualified: bool = False,
    tags: Sequence[Any] = (),
    history: bool = True,
) -> dict[str, Any]:
    """A version of a subject.

    ``text`` is the schema in another form; ``history`` adds the time and the deletion state.
    """
    value: dict[str, Any] = {
        "subject": version.subject,
        "version": version.version,
        "id": version.id,
        "guid": version.guid,
        "schemaType": version.schema_type,
    }
    if version.references:
        value["references"] = _references(version, qualified)
    if version.metadata is not None:
        value["metadata"] = json.loads(version.metadata)
    value["schema"] = version.schema if text is None else text
    if tags:
        value["schemaTags"] = tags
    if history:
        _add_history(value, version)
    if version.rule_set is not None:
        value["ruleSet"] = json.loads(version.rule_set)
    return value


def listed(
    schema_version: SchemaVersion, aliases: Sequence[str], associations: Sequence[Association] = ()
) -> dict[str, Any]:
    """A version in a list, with its subject's aliases and the requested associations."""
    value = version(schema_version)
    rule_set = value.pop("ruleSet", None)
    if aliases:
        value["aliases"] = list(aliases)
    if associations:
        value["associations"] = [each.as_json() for each in associations]
    if rule_set is not None:
        value["ruleSet"] = rule_set
    return value


def by_id(
    version: SchemaVersion,
    *,
    text: str | None = None,
    with_subject: bool = True,
    qualified: bool = False,
    tags: Sequence[Any] = (),
    max_id: int | None = None,
) -> dict[str, Any]:
    """A schema looked up by id or guid. ``with_subject`` adds the subject of one of its versions."""
    value: dict[str, Any] = {"subject": version.subject, "version": version.version} if with_subject else {}
    value |= {
        "guid": version.guid,
        "schemaType": version.schema_type,
        "schema": version.schema if text is None else text,
    }
    if version.references:
        value["references"] = _references(version, qualified)
    _add_contracts(value, version)
    if tags:
        value["schemaTags"] = tags
    if max_id is not None:
        value["maxId"] = max_id
    _add_history(value, version)
    return value


def registered(version: SchemaVersion, text: str | None = None) -> dict[str, Any]:
    """The result of a registration."""
    value: dict[str, Any] = {
        "id": version.id,
        "version": version.version,
        "guid": version.guid,
        "schemaType": version.schema_type,
    }
    if version.references:
        value["references"] = _references(version, qualified=False)
    _add_contracts(value, version)
    value["schema"] = version.schema if text is None else text
    return value


def compatibility(problems: list[str], *, verbose: bool) -> dict[str, Any]:
    return {"is_compatible": not problems, **({"messages": problems} if verbose else {})}


def _references(version: SchemaVersion, qualified: bool) -> list[dict[str, Any]]:
    shown = [reference.as_json() for reference in version.references]
    if qualified and context_of(version.subject) != DEFAULT_CONTEXT:
        for reference in shown:
            reference["subject"] = within(version.subject, reference["subject"])
    return shown


def _add_contracts(value: dict[str, Any], version: SchemaVersion) -> None:
    if version.metadata is not None:
        value["metadata"] = json.loads(version.metadata)
    if version.rule_set is not None:
        value["ruleSet"] = json.loads(version.rule_set)


def _add_history(value: dict[str, Any], version: SchemaVersion) -> None:
    if version.timestamp_ms is not None:
        value["ts"] = version.timestamp_ms
    value["deleted"] = version.deleted
