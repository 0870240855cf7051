"""Shared by the REST publishing endpoints: events in a request's JSON, and results in Salesforce's forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from starlette.requests import Request

from events.bus.outcomes import Outcome, Published, event_uuid, record_error, record_id
from events.bus.publishing import JsonEvent
from events.errors import BadRequest, MalformedBody, TooManyRecords

__all__ = [
    "MAX_RECORDS",
    "collection_result",
    "events_of",
    "flag_of",
    "idempotency_key",
    "save_result",
]

MAX_RECORDS: Final = 200
_MAX_TYPE_CHUNKS: Final = 10


def idempotency_key(request: Request, user_id: str) -> str:
    """The request's Idempotency-Key, made specific to the user; empty if it has none."""
    key = request.headers.get("idempotency-key", "").strip()
    if len(key) > 255:
        raise BadRequest(f"Idempotency-Key has {len(key)} characters; at most 255 are read")
    return f"{user_id}\n{key}" if key else ""


def events_of(body: Mapping[str, Any], key: str) -> list[JsonEvent]:
    """The events of ``{"records": [{"attributes": {"type": ...}, ...}, ...]}``.

    Raises BadRequest for the request as a whole.
    """
    records = body.get("records")
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise MalformedBody("'records' is a list of objects, each with attributes.type")
    if len(records) > MAX_RECORDS:
        raise TooManyRecords(
            f"record limit reached. cannot submit more than {MAX_RECORDS} records into this call, and {len(records)} came"
        )
    events = [
        JsonEvent(_type_of(record), record, event_uuid(key, index), is_keyed=bool(key))
        for index, record in enumerate(records)
    ]
    chunks = sum(index == 0 or event.name != events[index - 1].name for index, event in enumerate(events))
    if chunks > _MAX_TYPE_CHUNKS:
        raise TooManyRecords(
            f"Cannot have more than {_MAX_TYPE_CHUNKS} chunks in a single operation, and these records have {chunks}. "
            "Put records of one type next to each other."
        )
    return events


def flag_of(body: Mapping[str, Any], name: str) -> bool:
    """A flag of a request; false if absent."""
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise MalformedBody(f"'{name}' is true or false, not {str(value)[:50]!r}")
    return value


def _type_of(record: Mapping[str, Any]) -> str:
    attributes = record.get("attributes")
    name = attributes.get("type") if isinstance(attributes, dict) else None
    return name if isinstance(name, str) else ""


def save_result(published: Published) -> dict[str, Any]:
    enqueued = {"statusCode": "OPERATION_ENQUEUED", "message": published.uuid, "fields": []}
    return {"id": record_id(published.replay_id), "success": True, "errors": [enqueued]}


def collection_result(event: JsonEvent, outcome: Outcome) -> dict[str, Any]:
    """A record's SaveResult in a collection."""
    if isinstance(outcome, Published):
        return save_result(outcome)
    code, message, fields = record_error(event.name, outcome)
    return {"success": False, "errors": [{"statusCode": code, "message": message, "fields": list(fields)}]}
