"""The outcome of publishing an event, and its representation in Salesforce's answers."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from events.access import long_id
from events.errors import EventsError, UnknownEvent, WrongType
from tidegate.kit.errors import TidegateError

__all__ = ["Outcome", "Published", "Refused", "RolledBack", "error_body", "event_uuid", "record_error", "record_id"]

_BASE62: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_KEYS: Final = uuid.UUID("5f0c3f6e-6c0f-4b7e-9a6c-0d1d0b8f2a11")
"""The namespace for deriving an event's uuid from an Idempotency-Key. It must never change."""


@dataclass(frozen=True, slots=True)
class Published:
    """An event that the log has acknowledged."""

    uuid: str
    replay_id: int


@dataclass(frozen=True, slots=True)
class Refused:
    """An event that was not published, with the reason. ``error.retriable`` says whether the same event may succeed
    later.

    The error is only an answer here, so its traceback is dropped: the frames refer to the outcomes of the whole
    request, and with twenty thousand refused events that cycle used 300 MB until garbage collection.
    """

    error: TidegateError

    def __post_init__(self) -> None:
        error = self.error
        error.__traceback__ = error.__context__ = error.__cause__ = None


@dataclass(frozen=True, slots=True)
class RolledBack:
    """A valid event of an all-or-none request, not published because another event was refused."""


Outcome: TypeAlias = Published | Refused | RolledBack


def event_uuid(key: str, position: object = 0) -> str:
    """The uuid of the event at a position of a request with this Idempotency-Key; empty without a key."""
    return str(uuid.uuid5(_KEYS, f"{key}\n{position}")) if key else ""


def record_id(replay_id: int) -> str:
    """An 18-character id in Salesforce's format. In Salesforce it identifies nothing; here it encodes the replay id."""
    digits, number = "", replay_id
    for _ in range(12):
        number, digit = divmod(number, 62)
        digits = _BASE62[digit] + digits
    return long_id("e01" + digits)


def error_body(error: TidegateError) -> list[dict[str, Any]]:
    """Salesforce's error answer: a list with a single error."""
    code = error.code if isinstance(error, EventsError) else "UNKNOWN_EXCEPTION"
    body: dict[str, Any] = {"message": error.message, "errorCode": code}
    if isinstance(error, EventsError) and error.fields:
        body["fields"] = list(error.fields)
    return [body]


def record_error(
    event_name: str, outcome: Refused | RolledBack, *, from_json: bool = True
) -> tuple[str, str, Sequence[str]]:
    """Status code, message and fields of a record that was not published.

    For a value of a wrong type Salesforce has another message if the record was not sent as JSON.
    """
    if isinstance(outcome, RolledBack):
        message = "Record rolled back because not all records were valid and the request was using AllOrNone header"
        return "ALL_OR_NONE_OPERATION_ROLLED_BACK", message, ()
    error = outcome.error
    if isinstance(error, UnknownEvent):
        return "INVALID_TYPE", f"sObject type '{event_name[:100]}' is not supported.", ()
    (body,) = error_body(error.in_record if isinstance(error, WrongType) and not from_json else error)
    return body["errorCode"], body["message"], body.get("fields", [])
