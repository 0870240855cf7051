"""Parses requests about associations, with defaults, and validates what does not depend on the state."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from registry.domain.association_requests import Change, Delete, Request, RequestedAssociation, with_defaults
from registry.errors import InvalidAssociation, InvalidBody
from registry.model.associations import STRONG, TOPIC, WEAK, default_subject
from registry.server.routes.bodies import new_schema

__all__ = ["AssociationQuery", "read_batch", "read_query", "read_request"]

_KINDS: Final = ("key", "value")
_MAX_NAME: Final = 256


def read_request(body: Mapping[str, Any], *, create: bool, dry_run: bool, resource_id: str | None = None) -> Request:
    """Raises InvalidBody or InvalidAssociation. ``resource_id`` is that of the path."""
    resource = _text(body, "resourceId")
    if resource_id is not None and resource not in (None, resource_id):
        raise InvalidAssociation(
            "resourceId", "Resource ID in the path parameter does not match the resource ID in the request body"
        )
    request = _resource(body, resource_id or resource, dry_run=dry_run)
    associations = tuple(_association(item, create=create) for item in _items(body))
    return dataclasses.replace(
        request, associations=tuple(_placed(request, each, create=create) for each in associations)
    )


def read_batch(body: Mapping[str, Any], *, dry_run: bool) -> Change:
    """One request in a batch of changes. Raises the errors of ``read_request``."""
    _check_operations(body.get("associations"))
    request = _resource(body, _text(body, "resourceId"), dry_run=dry_run)
    steps: list[tuple[bool, tuple[RequestedAssociation, ...]] | Delete] = []
    kinds: set[str] = set()
    for item in _items(body):
        operation = item.get("opType")
        if operation == "DELETE":
            step: RequestedAssociation | Delete = Delete(_kind(item), item.get("cascadeLifecycle") is True)
        else:
            create = operation == "CREATE"
            step = _placed(request, _association(item, create=create), create=create)
        if step.kind in kinds:
            raise InvalidAssociation(
                "associationType", f"may only appear once per request, but '{step.kind}' appears more than once"
            )
        kinds.add(step.kind)
        if isinstance(step, Delete):
            steps.append(step)
            continue
        last = steps[-1] if steps else None
        # Adjacent steps of one kind are merged, so that they are checked together before anything is written.
        if last is not None and not isinstance(last, Delete) and last[0] is create:
            steps[-1] = (create, (*last[1], step))
        else:
            steps.append((create, (step,)))
    return Change(request, tuple(steps))


def _check_operations(items: object) -> None:
    for item in items if isinstance(items, list) else []:
        operation = item.get("opType") if isinstance(item, dict) else None
        if operation not in ("CREATE", "UPSERT", "DELETE"):
            raise InvalidBody(f"opType must be one of CREATE, UPSERT, DELETE, not {json.dumps(operation)[:100]}")


class AssociationQuery(NamedTuple):
    """One query of a batch."""

    name: str | None
    namespace: str | None
    id: str | None
    type: str
    kinds: list[str]
    lifecycle: str | None


def read_query(body: Mapping[str, Any]) -> AssociationQuery:
    """One request in a batch of queries. Raises InvalidBody or InvalidAssociation."""
    lifecycle = _lifecycle(body)
    name, namespace, resource_id = (_text(body, each) for each in ("resourceName", "resourceNamespace", "resourceId"))
    kinds = body.get("associationTypes") or []
    if not isinstance(kinds, list):
        raise InvalidBody(f"associationTypes must be a list, not {json.dumps(kinds)[:100]}")
    type_ = _text(body, "resourceType") or TOPIC
    if not resource_id and not name:
        raise InvalidAssociation("resourceId", "either resourceId or resourceName must be specified")
    if name and not namespace:
        raise InvalidAssociation("resourceNamespace", "resourceNamespace is required when resourceName is specified")
    return AssociationQuery(name, namespace, resource_id, type_, [str(kind) for kind in kinds], lifecycle)


def _resource(body: Mapping[str, Any], resource_id: str | None, *, dry_run: bool) -> Request:
    name, namespace = _name(body, "resourceName"), _name(body, "resourceNamespace")
    if not dry_run and not resource_id:
        raise InvalidAssociation("resourceId", "cannot be null or empty")
    if (_text(body, "resourceType") or TOPIC) != TOPIC:
        raise InvalidAssociation("resourceType", f"must be '{TOPIC}'")
    return Request(name, namespace, resource_id, ())


def _items(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    items = body.get("associations")
    if items is not None and not isinstance(items, list):
        raise InvalidBody(f"associations must be a list, not {json.dumps(items)[:100]}")
    if not items:
        raise InvalidAssociation("associations", "cannot be null or empty")
    for item in items:
        if not isinstance(item, dict):
            raise InvalidBody(f"associations must be a list of objects, not of {json.dumps(item)[:100]}")
    return items


def _association(item: Mapping[str, Any], *, create: bool) -> RequestedAssociation:
    subject, schema = _text(item, "subject"), item.get("schema")
    if subject is not None and (not subject or any(char < " " or "\x7f" <= char < "\xa0" for char in subject)):
        raise InvalidAssociation("subject", "must not be empty")
    if schema is not None and not isinstance(schema, dict):
        raise InvalidBody(f"schema must be an object, not {json.dumps(schema)[:100]}")
    association = RequestedAssociation(
        subject,
        _kind(item),
        _lifecycle(item),
        _flag(item, "frozen"),
        None if schema is None else new_schema(schema),
        _flag(item, "normalize") is True,
    )
    if create:
        association = with_defaults(association, create=True)
    if association.lifecycle == WEAK:
        if association.schema is not None:
            raise InvalidAssociation("lifecycle", "cannot be WEAK when schema is provided")
        if association.frozen:
            raise InvalidAssociation("frozen", "association with lifecycle of WEAK cannot be frozen")
        if create and association.subject is None:
            raise InvalidAssociation("subject", "must be provided for WEAK associations")
    return association


def _placed(request: Request, association: RequestedAssociation, *, create: bool) -> RequestedAssociation:
    """Give a new association without a subject the default subject of its resource."""
    if not create:
        return association
    default = default_subject(request.name, request.namespace, association.kind)
    subject = association.subject or default
    if association.frozen and subject != default:
        raise InvalidAssociation("subject", f"frozen associations must use subject '{default}'")
    if association.lifecycle == WEAK and subject == default:
        raise InvalidAssociation("subject", f"WEAK associations cannot use subject '{default}'")
    return dataclasses.replace(association, subject=subject)


def _name(body: Mapping[str, Any], member: str) -> str:
    name = _text(body, member)
    if not name:
        raise InvalidAssociation(member, "cannot be null or empty")
    if len(name) > _MAX_NAME:
        raise InvalidAssociation(member, f"exceeds max length of {_MAX_NAME}")
    for char in name:
        if not (char.isalnum() or char in "_-"):
            raise InvalidAssociation(member, f"illegal character '{char}'")
    return name


def _kind(item: Mapping[str, Any]) -> str:
    kind = _text(item, "associationType") or "value"
    if kind not in _KINDS:
        raise InvalidAssociation("associationType", "must be either 'key' or 'value'")
    return kind


def _lifecycle(item: Mapping[str, Any]) -> str | None:
    lifecycle = item.get("lifecycle")
    if lifecycle not in (None, STRONG, WEAK):
        raise InvalidBody(f"lifecycle must be {STRONG} or {WEAK}, not {json.dumps(lifecycle)[:100]}")
    return None if lifecycle is None else str(lifecycle)


def _flag(item: Mapping[str, Any], member: str) -> bool | None:
    value = item.get(member)
    if value is not None and not isinstance(value, bool):
        raise InvalidBody(f"{member} must be true or false, not {json.dumps(value)[:100]}")
    return value


def _text(body: Mapping[str, Any], member: str) -> str | None:
    value = body.get(member)
    if value is not None and not isinstance(value, str):
        raise InvalidBody(f"{member} must be text, not {json.dumps(value)[:100]}")
    return value
