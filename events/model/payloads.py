"""Event payloads: client JSON, Avro in the log, JSON for CometD."""

from __future__ import annotations

import io
import json
import math
import re
import struct
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import fastavro
from fastavro.types import Schema

from events.errors import (
    FieldNotWritable,
    InvalidField,
    NumberOutOfRange,
    RequiredFieldMissing,
    StringTooLong,
    UndecodablePayload,
    WrongType,
    WrongTypeInRecord,
)
from events.model import defaults
from events.model.definitions import AUDIT_FIELDS, EventDefinition, EventField, FieldType, from_avro

__all__ = ["EventSchema", "frame", "instant_text", "unframe"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS: Final = 86_400_000
_MIN_MS: Final = -62_135_596_800_000
_MAX_MS: Final = 253_402_300_799_999
_NUMBER: Final = re.compile(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?\s*", re.ASCII)
_ZONE: Final = r"(?:Z|[+-]\d\d:?\d\d)?"
_DAY: Final = re.compile(rf"(\d{{4}}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{{1,3}})?)?)?{_ZONE}", re.ASCII)
_MOMENT: Final = re.compile(rf"\d{{4}}-\d\d-\d\d(?:T\d\d:\d\d(?::\d\d(?:\.\d{{1,9}})?)?{_ZONE})?", re.ASCII)
_SYSTEM: Final = frozenset(name.lower() for name in (*AUDIT_FIELDS, "ReplayId", "EventUuid", "Id"))


def frame(schema_id: int, payload: bytes) -> bytes:
    """Confluent's framing: a zero byte, the schema's id in the registry, the Avro body."""
    return struct.pack(">bI", 0, schema_id) + payload


def unframe(value: bytes) -> tuple[int, bytes]:
    """Schema id and Avro body; raises UndecodablePayload for anything else."""
    if len(value) < 5 or value[0] != 0:
        raise UndecodablePayload(
            "The record is not Avro in Confluent framing: it does not begin with 0 and a schema id"
        )
    return struct.unpack_from(">I", value, 1)[0], bytes(value[5:])


def instant_text(ms: int) -> str:
    """ISO 8601 in UTC with milliseconds, for example ``2026-01-31T12:00:00.000Z``."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


class EventSchema:
    """One registered version of a definition: id, text, and its codec."""

    def __init__(self, schema_id: int, text: str) -> None:
        """Raises InvalidDefinition if the schema is not an event's."""
        self.id = schema_id
        self.text = text
        self.definition: EventDefinition = from_avro(text)
        self.name = self.definition.name
        self._parsed: Schema = fastavro.parse_schema(json.loads(text))
        self._fields = {field.name.lower(): field for field in self.definition.fields}
        self._checks = [
            (field.name, made) for field in self.definition.fields if (made := _check_of(field)) is not None
        ]
        self._defaults = {
            field.name: defaults.parse(field.type.value, field.default_formula, field=field.name)
            for field in self.definition.fields
            if field.default_formula
        }

    def encode_json(self, body: Mapping[str, Any], *, created_ms: int, created_by: str) -> bytes:
        """The Avro body of an event from a JSON object, as in REST.

        Field names are case-insensitive, an empty string is null (but not for a Checkbox, date or time), a Checkbox
        can't be null, ``attributes`` is ignored. Raises a BadEvent that names the field and the problem.
        """
        values: dict[str, Any] = {"CreatedDate": created_ms, "CreatedById": created_by}
        for name, value in body.items():
            if name == "attributes":
                continue
            field = self._fields.get(name.lower())
            if field is None:
                if name.lower() in _SYSTEM:
                    raise FieldNotWritable(name, self.definition.name)
                raise InvalidField(name, self.definition.name)
            values[field.name] = _from_json(field, value)
        missing = []
        for field in self.definition.fields:
            if values.get(field.name) is None:
                if field.name in self._defaults and field.name not in values:
                    values[field.name] = self._defaults[field.name](created_ms)
                    _check(field, values[field.name])
                elif field.type is FieldType.CHECKBOX:
                    values[field.name] = field.default
                elif field.required:
                    missing.append(field.name)
                else:
                    values[field.name] = None
        if missing:
            raise RequiredFieldMissing(*missing)
        return self._encode(values)

    def _encode(self, values: dict[str, Any]) -> bytes:
        out = io.BytesIO()
        try:
            fastavro.schemaless_writer(out, self._parsed, values)
        except (ValueError, TypeError, OverflowError) as error:
            raise UndecodablePayload(f"The event does not fit its Avro schema: {error}") from error
        return out.getvalue()

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The Avro values of a body. Raises UndecodablePayload if it is not exactly one record of this schema."""
        source = io.BytesIO(payload)
        try:
            values = fastavro.schemaless_reader(source, self._parsed, None)
        except Exception as error:
            raise UndecodablePayload(
                f"The payload is not an Avro record of {self.definition.name} (schema {self.id}): "
                f"{type(error).__name__}"
            ) from error
        if source.tell() != len(payload) or not isinstance(values, dict):
            raise UndecodablePayload(
                f"The payload has {len(payload) - source.tell()} bytes after the Avro record of {self.definition.name} "
                f"(schema {self.id})"
            )
        return values

    def check(self, payload: bytes) -> None:
        """Raise a BadEvent for an invalid Avro body: undecodable, too long, out of range."""
        values = self.decode(payload)
        created = _plain(values.get("CreatedDate"))
        if isinstance(created, int) and not _MIN_MS <= created <= _MAX_MS:
            raise WrongType("CreatedDate", "datetime", created)
        for name, check in self._checks:
            value = values[name]
            if value is not None:
                check(value)

    def to_json(self, payload: bytes, *, timestamp_ms: int) -> dict[str, Any]:
        """The payload as CometD shows it: instants and dates as ISO 8601 text.

        ``timestamp_ms`` replaces CreatedDate in a record without one, for example from a connector.
        """
        values = self.decode(payload)
        created = _plain(values.get("CreatedDate"))
        shown: dict[str, Any] = {
            "CreatedDate": instant_text(_bounded(created if isinstance(created, int) else timestamp_ms)),
            "CreatedById": values.get("CreatedById", ""),
        }
        for field in self.definition.fields:
            shown[field.name] = _to_json(field, values.get(field.name))
        return shown


def _bounded(ms: int) -> int:
    return min(max(ms, _MIN_MS), _MAX_MS)


def _from_json(field: EventField, value: Any) -> Any:
    if field.type is FieldType.CHECKBOX:
        if value is None:
            raise WrongTypeInRecord(field.name, field.label, "")
        return _checkbox(field, value)
    if value is None or (value == "" and field.type not in (FieldType.DATE, FieldType.DATE_TIME)):
        return None
    if field.type in (FieldType.TEXT, FieldType.LONG_TEXT_AREA):
        read: Any = _text(field, value)
    elif field.type is FieldType.NUMBER:
        read = _number(field, value)
    elif field.type is FieldType.DATE:
        read = _date(field, value)
    else:
        read = _date_time(field, value)
    _check(field, read)
    return read


def _text(field: EventField, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise WrongType(field.name, "string", value, label=field.label)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise WrongType(field.name, "string", ascii(value), label=field.label) from error
    return value


def _checkbox(field: EventField, value: Any) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise WrongType(field.name, "boolean", value, label=field.label)


def _number(field: EventField, value: Any) -> float:
    number = not isinstance(value, bool) and isinstance(value, int | float)
    if number or (isinstance(value, str) and _NUMBER.fullmatch(value)):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise WrongType(field.name, "double", value, label=field.label)


def _date(field: EventField, value: Any) -> int:
    match = _DAY.fullmatch(value) if isinstance(value, str) else None
    if match is not None:
        try:
            return int(_plain(date.fromisoformat(match[1])))
        except ValueError:
            pass
    raise WrongType(field.name, "date", value, label=field.label)


def _date_time(field: EventField, value: Any) -> int:
    """Milliseconds; text without a zone is UTC."""
    if isinstance(value, str) and _MOMENT.fullmatch(value):
        try:
            moment = datetime.fromisoformat(value)
            moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return (moment - _EPOCH) // timedelta(milliseconds=1)
        except (ValueError, OverflowError):
            pass
    raise WrongType(field.name, "datetime", value, label=field.label)


def _plain(value: Any) -> Any:
    """Milliseconds for decoded values of Avro's logical types, which a plain record may have."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(milliseconds=1)
    if isinstance(value, date):
        return (value - _EPOCH.date()).days * _DAY_MS
    return value


def _check(field: EventField, value: Any) -> None:
    check = _check_of(field)
    if check is not None:
        check(value)


def _check_of(field: EventField) -> Callable[[Any], None] | None:
    """A function that raises a BadEvent for an invalid value of the field; None if every value is valid."""
    if field.type in (FieldType.TEXT, FieldType.LONG_TEXT_AREA):
        length = field.length

        def check(value: Any) -> None:
            if len(value) > length:
                raise StringTooLong(field.name, field.label, value, length)

    elif field.type is FieldType.NUMBER:
        digits = field.precision - field.scale
        limit = float(10**digits)

        def check(value: Any) -> None:
            if not -limit < value < limit:  # refuses numbers that are not finite, too
                raise NumberOutOfRange(field.name, field.label, value, digits)

    elif field.type in (FieldType.DATE, FieldType.DATE_TIME):

        def check(value: Any) -> None:
            value = _plain(value)
            if not _MIN_MS <= value <= _MAX_MS:
                raise WrongType(field.name, field.type.value.lower(), value, label=field.label)

    else:
        return None
    return check


def _to_json(field: EventField, value: Any) -> Any:
    if value is None:
        return None
    value = _plain(value)
    if field.type is FieldType.DATE_TIME:
        return instant_text(_bounded(value))
    if field.type is FieldType.DATE:
        return instant_text(_bounded(value))[:10]
    if field.type is FieldType.NUMBER:
        return float(value) if math.isfinite(value) else None
    return value
