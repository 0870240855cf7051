"""The errors of the events service, each with Salesforce's own code.

EventsError
├── LoginError                 the client is not authenticated: log in (again)
│   ├── InvalidLogin, InvalidSession
│   └── GrantError             a token is refused, with OAuth's code: see access/errors.py
├── AccessError                the client lacks a permission: see access/errors.py
├── LimitError                 a limit is exceeded: wait; see limits/errors.py
├── NotThere                   the named object does not exist
│   ├── ResourceNotFound, UnknownEvent, UnknownSchema, UnknownManagedSubscription, UnknownVersion
├── BadEvent                   this event is refused; others in the same request are not
│   ├── InvalidField, RequiredFieldMissing, StringTooLong, NumberOutOfRange, FieldNotWritable, WrongType,
│   │   WrongTypeInRecord, UndecodablePayload, EventTooLarge, IdempotencyKeyReused
├── BadRequest                 the request as a whole is refused
│   ├── MalformedBody, InvalidReplayId, WrongMethod, WrongMediaType, TooManyRecords, MalformedXml
├── DefinitionError            an event definition is refused
│   ├── InvalidDefinition, DefinitionConflict, TopicUnfit, InvalidMetadata
├── SubscriptionEnded          a managed subscription was taken over, or stopped
│   ├── SubscriptionStopped, SubscriptionDeleted, SubscriptionTakenOver, SubscriptionElsewhere
├── LaterFormat                the log holds what a later release has written
└── BusUnavailable             the log or the registry does not answer: try again
"""

from __future__ import annotations

from typing import ClassVar

from tidegate.kit.errors import RetriableError, TidegateError, UsageError

__all__ = [
    "BadEvent",
    "BadRequest",
    "BusUnavailable",
    "DefinitionConflict",
    "DefinitionError",
    "EventTooLarge",
    "EventsError",
    "FieldNotWritable",
    "IdempotencyKeyReused",
    "InvalidDefinition",
    "InvalidField",
    "InvalidLogin",
    "InvalidMetadata",
    "InvalidReplayId",
    "InvalidSession",
    "LaterFormat",
    "LoginError",
    "MalformedBody",
    "MalformedXml",
    "NotThere",
    "NumberOutOfRange",
    "RequiredFieldMissing",
    "ResourceNotFound",
    "StringTooLong",
    "SubscriptionActive",
    "SubscriptionDeleted",
    "SubscriptionElsewhere",
    "SubscriptionEnded",
    "SubscriptionStopped",
    "SubscriptionTakenOver",
    "TooManyRecords",
    "TopicUnfit",
    "UndecodablePayload",
    "UnknownEvent",
    "UnknownManagedSubscription",
    "UnknownSchema",
    "UnknownVersion",
    "WrongMediaType",
    "WrongMethod",
    "WrongType",
    "WrongTypeInRecord",
]


class EventsError(TidegateError):
    """An error with Salesforce's ``errorCode``; ``fields`` are the names of the affected fields."""

    code: ClassVar[str] = "UNKNOWN_EXCEPTION"

    def __init__(self, message: str, *, fields: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.fields = fields


class LoginError(EventsError):
    http_status = 400


class InvalidLogin(LoginError):
    """The name, the password or the security token is wrong, or the user is frozen. The message does not say which."""

    code = "INVALID_LOGIN"

    def __init__(self) -> None:
        super().__init__("Invalid username, password, security token; or user locked out.")


class InvalidSession(LoginError):
    code = "INVALID_SESSION_ID"
    http_status = 401

    def __init__(self, message: str = "Session expired or invalid") -> None:
        super().__init__(message)


class NotThere(EventsError):
    code = "NOT_FOUND"
    http_status = 404


class ResourceNotFound(NotThere):
    def __init__(self) -> None:
        super().__init__("The requested resource does not exist")


class UnknownEvent(NotThere):
    """No event of this name is defined. REST gives the same answer as for any unknown path."""

    def __init__(self, name: str) -> None:
        super().__init__("The requested resource does not exist")
        self.name = name


class UnknownSchema(NotThere):
    def __init__(self, schema_id: str) -> None:
        super().__init__(f"Schema with ID {schema_id!r} does not exist")
        self.schema_id = schema_id


class UnknownManagedSubscription(NotThere):
    """``by`` says what it was looked up by: ``developer.name`` or ``subscription.id``."""

    def __init__(self, name: str, *, by: str = "developer.name") -> None:
        super().__init__(f"Managed subscription {name[:100]!r} does not exist")
        self.by = by


class UnknownVersion(NotThere):
    def __init__(self, version: str) -> None:
        super().__init__(f"The requested resource does not exist: API version {version} is not offered")


class BadEvent(EventsError):
    http_status = 400
    code = "INVALID_FIELD"


class IdempotencyKeyReused(BadEvent):
    """Another request was sent with this Idempotency-Key before (draft-ietf-httpapi-idempotency-key-header, section
    2.7).
    """

    code = "IDEMPOTENCY_KEY_REUSED"
    http_status = 422

    def __init__(self) -> None:
        super().__init__("This Idempotency-Key was sent with another body before: give each event a key of its own")


class InvalidField(BadEvent):
    def __init__(self, field: str, event: str) -> None:
        super().__init__(f"No such column '{field}' on sobject of type {event}", fields=(field,))


class RequiredFieldMissing(BadEvent):
    code = "REQUIRED_FIELD_MISSING"

    def __init__(self, *fields: str) -> None:
        super().__init__(f"Required fields are missing: [{', '.join(fields)}]", fields=fields)


class StringTooLong(BadEvent):
    code = "STRING_TOO_LONG"

    def __init__(self, field: str, label: str, value: str, limit: int) -> None:
        shown = value if len(value) <= 100 else value[:100] + "..."
        super().__init__(f"{label}: data value too large: {shown} (max length={limit})", fields=(field,))


class NumberOutOfRange(BadEvent):
    code = "NUMBER_OUTSIDE_VALID_RANGE"

    def __init__(self, field: str, label: str, value: object, integer_digits: int) -> None:
        message = f"{label}: value outside of valid range on numeric field: {value} (at most {integer_digits} digits)"
        super().__init__(message, fields=(field,))


class FieldNotWritable(BadEvent):
    code = "INVALID_FIELD_FOR_INSERT_UPDATE"

    def __init__(self, field: str, event: str) -> None:
        super().__init__(
            f"Unable to create/update fields: {field}. Please check the security settings of this field and verify that it "
            f"is read/write for your profile or permission set. (The service sets it on {event}.)",
            fields=(field,),
        )


class WrongType(BadEvent):
    """A value's type differs from the field's. The message is that of Salesforce's JSON reader.

    ``in_record`` is the message for values that were not sent as JSON.
    """

    code = "JSON_PARSER_ERROR"

    def __init__(self, field: str, expected: str, value: object, *, label: str = "") -> None:
        token, shown = _token(value)
        super().__init__(
            f"Cannot deserialize instance of {expected} from {token} value {shown} or request may be missing a required field",
            fields=(field,),
        )
        self.in_record = WrongTypeInRecord(field, label or field, shown)

    def locate(self, line: int, column: int) -> None:
        """Set the position of the value, counted from 1."""
        self.args = (f"{self} at [line:{line}, column:{column}]",)


class WrongTypeInRecord(BadEvent):
    """A value's type differs from the field's in a row or an XML element, or it is not a valid Checkbox."""

    code = "INVALID_TYPE_ON_FIELD_IN_RECORD"

    def __init__(self, field: str, label: str, value: str) -> None:
        super().__init__(f"{label}: value not of required type: {value}", fields=(field,))


def _token(value: object) -> tuple[str, str]:
    """The kind of a JSON value in the terms of Salesforce's reader, and the part of the value that the reader has
    consumed.
    """
    if isinstance(value, bool):
        return ("VALUE_TRUE", "true") if value else ("VALUE_FALSE", "false")
    if isinstance(value, int):
        return "VALUE_NUMBER_INT", str(value) if abs(value) < 1 << 63 else "of more than 19 digits"
    if isinstance(value, float):
        return "VALUE_NUMBER_FLOAT", str(value)
    if isinstance(value, dict):
        return "START_OBJECT", "{"
    if isinstance(value, list):
        return "START_ARRAY", "["
    return ("VALUE_NULL", "null") if value is None else ("VALUE_STRING", str(value)[:100])


class UndecodablePayload(BadEvent):
    code = "INVALID_FIELD"


class EventTooLarge(BadEvent):
    code = "LIMIT_EXCEEDED"


class BadRequest(EventsError):
    http_status = 400
    code = "INVALID_TYPE"


class MalformedBody(BadRequest):
    code = "JSON_PARSER_ERROR"


class MalformedXml(BadRequest):
    """The XML is not well-formed, or declares a document type or entities, which are never read."""

    code = "MALFORMED_XML"


class InvalidReplayId(BadRequest):
    code = "INVALID_REPLAY_ID"

    def __init__(self, replay_id: object) -> None:
        super().__init__(
            f"The replayId {{{replay_id}}} you provided was invalid.  "
            "Please provide a valid ID, -2 to replay all events, or -1 to replay only new events."
        )
        self.replay_id = replay_id


class WrongMethod(BadRequest):
    code = "METHOD_NOT_ALLOWED"
    http_status = 405


class WrongMediaType(BadRequest):
    code = "UNSUPPORTED_MEDIA_TYPE"
    http_status = 415


class TooManyRecords(BadRequest):
    code = "EXCEEDED_ID_LIMIT"


class DefinitionError(EventsError, UsageError):
    http_status = 400


class InvalidDefinition(DefinitionError):
    """The definition is impossible for an event. The message is Salesforce's if it is known."""

    code = "FIELD_INTEGRITY_EXCEPTION"


class DefinitionConflict(DefinitionError):
    """The registry refuses the new definition as incompatible with the one before."""

    code = "INCOMPATIBLE_DEFINITION"
    http_status = 409


class InvalidMetadata(DefinitionError):
    """Invalid metadata of a channel, a channel member or a managed subscription."""

    code = "FIELD_INTEGRITY_EXCEPTION"


class SubscriptionEnded(EventsError):
    """A managed subscription no longer belongs to its subscriber."""

    http_status = 409


class SubscriptionStopped(SubscriptionEnded):
    def __init__(self, name: str, state: str) -> None:
        super().__init__(f"Managed subscription {name} has state {state}; set its state to RUN to subscribe")


class SubscriptionDeleted(SubscriptionEnded):
    def __init__(self, name: str) -> None:
        super().__init__(f"Managed subscription {name} was deleted")


class SubscriptionElsewhere(SubscriptionEnded, RetriableError):
    """Another events server distributes this shared subscription."""

    http_status = 503

    def __init__(self, name: str) -> None:
        super().__init__(
            f"Shared subscription {name} is dealt out by another events server; connect all its workers to that one, "
            "or try again when it is gone"
        )


class SubscriptionActive(SubscriptionEnded):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"Managed subscription {name} is held by a stream of another user; it is free when that stream ends, and a user "
            "who may customize the application can take it over"
        )


class SubscriptionTakenOver(SubscriptionEnded):
    def __init__(self, name: str) -> None:
        super().__init__(
            f"Managed subscription {name} was taken over by a newer stream; one stream at a time may hold it"
        )


class TopicUnfit(DefinitionError):
    """A topic with the event's name exists and can't carry events: replay ids are offsets of a single partition."""

    code = "TOPIC_UNFIT"
    http_status = 409


class LaterFormat(EventsError):
    http_status = 500


class BusUnavailable(EventsError, RetriableError):
    code = "SERVER_UNAVAILABLE"
    http_status = 503
