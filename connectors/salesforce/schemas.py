"""Connect schemas for Salesforce's objects and events, and conversion of its JSON values to Python values for these
schemas.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from typing import Any, Final

from connect.api import DATE, TIME, TIMESTAMP, DataError, Field, Schema, SchemaType

__all__ = ["EVENT_TYPE", "EVENT_TYPES", "OBJECT_TYPE", "change_schema", "event_schema", "object_schema", "python_value"]

OBJECT_TYPE: Final = "_ObjectType"
EVENT_TYPE: Final = "_EventType"
EVENT_TYPES: Final = {"CREATE": "created", "UPDATE": "updated", "DELETE": "deleted", "UNDELETE": "undeleted"}
"""Maps a change event's type to the value of ``_EventType``."""
_TEXT: Final = Schema(SchemaType.STRING, optional=True)
_DOUBLE: Final = Schema(SchemaType.FLOAT64, optional=True)
_LONG: Final = Schema(SchemaType.INT64, optional=True)
_BOOLEAN: Final = Schema(SchemaType.BOOLEAN, optional=True)
_TEXTS: Final = Schema.array(Schema(SchemaType.STRING), optional=True)
_NAMESPACE: Final = "io.confluent.salesforce"
_ID: Final = Schema(SchemaType.STRING, doc="Unique identifier for the object.")
_ADDRESS: Final = Schema.struct(
    {
        "GeocodeAccuracy": _TEXT,
        "State": _TEXT,
        "Street": _TEXT,
        "PostalCode": _TEXT,
        "Country": _TEXT,
        "Latitude": _DOUBLE,
        "City": _TEXT,
        "Longitude": _DOUBLE,
    },
    name=f"{_NAMESPACE}.Address",
    optional=True,
)
_LOCATION: Final = Schema.struct(
    {"latitude": _DOUBLE, "longitude": _DOUBLE}, name=f"{_NAMESPACE}.Location", optional=True
)
_DESCRIBED: Final = {
    "id": _ID,
    "boolean": _BOOLEAN,
    "int": Schema(SchemaType.INT32, optional=True),
    "long": _LONG,
    "double": _DOUBLE,
    "percent": _DOUBLE,
    "date": Schema.date(optional=True),
    "datetime": Schema.timestamp(optional=True),
    "time": Schema.time(optional=True),
    "address": _ADDRESS,
    "location": _LOCATION,
}
"""By the type in a describe call; all others are text, including currency, as in the original."""
_BY_DOC: Final = {
    "DateOnly": Schema.date(optional=True),
    "DateTime": Schema.timestamp(optional=True),
    "TimeOnly": Schema.time(optional=True),
    "Currency": _TEXT,
}
"""By the second part of an Avro field's ``doc``, which says more than its Avro type."""
_BY_AVRO: Final = {
    "boolean": _BOOLEAN,
    "int": Schema(SchemaType.INT32, optional=True),
    "long": _LONG,
    "float": _DOUBLE,
    "double": _DOUBLE,
}
_HEADER: Final = Schema.struct(
    {
        "entityName": _TEXT,
        "recordIds": _TEXTS,
        "changeType": _TEXT,
        "changedFields": _TEXTS,
        "changeOrigin": _TEXT,
        "transactionKey": _TEXT,
        "sequenceNumber": _LONG,
        "commitTimestamp": _LONG,
        "commitUser": _TEXT,
        "commitNumber": _LONG,
    },
    name="ChangeEventHeader",
)


def object_schema(name: str, fields: Iterable[Mapping[str, Any]]) -> Schema:
    """The value schema of an object's records, from the fields in its describe call: the id first, then the fields that
    the source adds.
    """
    members = [Field(described["name"], _DESCRIBED.get(described["type"], _TEXT)) for described in fields]
    members.sort(key=lambda member: member.name != "Id")
    return _struct(name, [*members, Field(OBJECT_TYPE, _TEXT), Field(EVENT_TYPE, _TEXT)])


def event_schema(description: Mapping[str, Any]) -> Schema:
    """The value schema of a platform event from its describe call."""
    added = {"ReplayId": Schema(SchemaType.STRING), "EventUuid": _TEXT, OBJECT_TYPE: _TEXT, EVENT_TYPE: _TEXT}
    fields = [Field(described["name"], _DESCRIBED.get(described["type"], _TEXT)) for described in description["fields"]]
    members = [member for member in fields if member.name not in added]
    return _struct(description["name"], [*members, *(Field(name, schema) for name, schema in added.items())])


def change_schema(avro: Mapping[str, Any]) -> Schema:
    """The value schema of a change event from its Avro schema."""
    first = [Field("Id", _ID), Field("ReplayId", _TEXT), Field("ChangeEventHeader", _HEADER)]
    last = [Field(OBJECT_TYPE, _TEXT), Field(EVENT_TYPE, _TEXT)]
    taken = {member.name for member in (*first, *last)}
    fields_ = [Field(form["name"], _avro_field(form)) for form in avro["fields"] if form["name"] not in taken]
    return _struct(avro["name"], [*first, *fields_, *last])


def _struct(name: str, members: list[Field]) -> Schema:
    return Schema.struct(members, name=f"{_NAMESPACE}.{name}")


def _avro_field(form: Mapping[str, Any]) -> Schema:
    kinds = form["type"] if isinstance(form["type"], list) else [form["type"]]
    kind = next((member for member in kinds if member != "null"), "string")
    if isinstance(kind, Mapping):
        if kind.get("type") == "record":
            parts = [Field(part["name"], _avro_field(part)) for part in kind["fields"]]
            return Schema.struct(parts, name=f"{_NAMESPACE}.{kind['name']}", optional=True)
        return _TEXTS if kind.get("type") == "array" else _TEXT
    doc = str(form.get("doc", "")).split(":")
    by_doc = _BY_DOC.get(doc[1]) if len(doc) > 1 else None
    return by_doc or _BY_AVRO.get(kind, _TEXT)


def python_value(value: Any, schema: Schema) -> Any:
    """Convert a JSON value of Salesforce to the Python value for its field's schema; raises DataError where it is
    invalid.
    """
    if value is None:
        return None
    try:
        return _converted(value, schema)
    except (ValueError, TypeError, OverflowError, OSError) as error:
        raise DataError(f"{value!r:.200} is not a value of {schema.name or schema.type.value}: {error}") from error


def _converted(value: Any, schema: Schema) -> Any:
    if schema.type is SchemaType.STRUCT:
        return {member.name: python_value(value.get(member.name), member.schema) for member in schema.fields}
    if schema.type is SchemaType.ARRAY:
        return [str(item) for item in value]
    if schema.name == TIMESTAMP:
        return datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value / 1000, UTC)
    if schema.name == DATE:
        return date.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value / 1000, UTC).date()
    if schema.name == TIME:
        return time.fromisoformat(value.removesuffix("Z"))
    if schema.type is SchemaType.FLOAT64:
        return float(value)
    if schema.type in (SchemaType.INT32, SchemaType.INT64):
        return int(value)
    if schema.type is SchemaType.STRING and not isinstance(value, str):
        return json.dumps(value, separators=(",", ":"))
    return value
