"""What the REST ways of publishing share: events in a request's JSON, and results in Salesforce's forms."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.requests import Request

from events.access import long_id
from events.bus.publishing import JsonEvent, Published
from events.errors import BadRequest, EventsError, MalformedBody, TooManyRecords, UnknownEvent, WrongType
from tidegate.kit.errors import TidegateError

__all__ = [
    "MAX_RECORDS",
    "collection_result",
    "error_body",
    "events_of",
    "flag_of",
    "id_of",
    "idempotency_key",
    "record_id",
    "save_result",
    "status_of",
]

MAX_RECORDS: Final = 200
_MAX_TYPE_CHUNKS: Final = 10
_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_KEYS: Final = uuid.UUID("5f0c3f6e-6c0f-4b7e-9a6c-0d1d0b8f2a11")
"""The name space in which an Idempotency-Key becomes an event's uuid, the same for ever."""


def error_body(error: TidegateError) -> list[dict[str, Any]]:
    """Salesforce's error answer: a list of one."""
    code = error.code if isinstance(error, EventsError) else "UNKNOWN_EXCEPTION"
    made: dict[str, Any] = {"message": error.message, "errorCode": code}
    if isinstance(error, EventsError) and error.fields:
        made["fields"] = list(error.fields)
    return [made]


def idempotency_key(request: Request, user_id: str) -> str:
    """The request's Idempotency-Key, made the user's own; empty when it has none."""
    given = request.headers.get("idempotency-key", "").strip()
    if len(given) > 255:
        raise BadRequest(f"Idempotency-Key has {len(given)} characters; at most 255 are read")
    return f"{user_id}\n{given}" if given else ""


def id_of(key: str, place: object = 0) -> str:
    """The uuid of the event at a place of a request with this Idempotency-Key; empty without a key."""
    return str(uuid.uuid5(_KEYS, f"{key}\n{place}")) if key else ""


def events_of(body: Mapping[str, Any], key: str, place: object = "") -> list[JsonEvent]:
    """The events of ``{"records": [{"attributes": {"type": ...}, ...}, ...]}``. Raises BadRequest for the request as a whole."""
    records = body.get("records")
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise MalformedBody("'records' is a list of objects, each with attributes.type")
    if len(records) > MAX_RECORDS:
        raise TooManyRecords(
            f"record limit reached. cannot submit more than {MAX_RECORDS} records into this call, and {len(records)} came"
        )
    events = [
        JsonEvent(_type_of(record), record, id_of(key, f"{place}{index}"), is_keyed=bool(key))
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
    """A flag of a request, false where it is left out."""
    value = body.get(name, False)
    if not isinstance(value, bool):
        raise MalformedBody(f"'{name}' is true or false, not {str(value)[:50]!r}")
    return value


def _type_of(record: Mapping[str, Any]) -> str:
    attributes = record.get("attributes")
    name = attributes.get("type") if isinstance(attributes, dict) else None
    return name if isinstance(name, str) else ""


def record_id(replay_id: int) -> str:
    """An 18-character id as Salesforce gives one; it identifies nothing there, and is the replay id here."""
    digits, number = "", replay_id
    for _ in range(12):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return long_id("e01" + digits)


def save_result(published: Published) -> dict[str, Any]:
    enqueued = {"statusCode": "OPERATION_ENQUEUED", "message": published.uuid, "fields": []}
    return {"id": record_id(published.replay_id), "success": True, "errors": [enqueued]}


def status_of(
    event: JsonEvent, answer: TidegateError | None, *, from_json: bool = True
) -> tuple[str, str, Sequence[str]]:
    """Status code, message and fields of a record that is not published; None is one that was held back.

    A value of a wrong type has other words where it did not come as JSON.
    """
    if answer is None:
        code = "ALL_OR_NONE_OPERATION_ROLLED_BACK"
        return (
            code,
            "Record rolled back because not all records were valid and the request was using AllOrNone header",
            (),
        )
    if isinstance(answer, UnknownEvent):
        return "INVALID_TYPE", f"sObject type '{event.name[:100]}' is not supported.", ()
    (said,) = error_body(answer.in_record if isinstance(answer, WrongType) and not from_json else answer)
    return said["errorCode"], said["message"], said.get("fields", [])


def collection_result(event: JsonEvent, answer: Published | TidegateError | None) -> dict[str, Any]:
    """One record's SaveResult in a collection."""
    if isinstance(answer, Published):
        return save_result(answer)
    code, message, fields = status_of(event, answer)
    return {"success": False, "errors": [{"statusCode": code, "message": message, "fields": list(fields)}]}
