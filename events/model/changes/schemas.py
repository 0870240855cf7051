"""Schemas of change events: ``ChangeEventHeader`` and every field of the record, nullable.

Source: Change Data Capture Developer Guide, "Change Event Message Structure"; the header's Avro form from the Pub/Sub
API.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from events.errors import InvalidDefinition, UndecodablePayload
from events.model.changes.fields import SYSTEM_FIELDS, ChangeField, Kind, shown
from events.model.definitions import NAMESPACE, FieldType, field_id

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HEADER", "STANDARD_CHANNEL", "ChangeEventSchema", "change_event_name", "is_change_event", "to_avro_text"]

HEADER: Final = "ChangeEventHeader"
STANDARD_CHANNEL: Final = "ChangeEvents"
"""The channel of all entities selected for it."""
_SUFFIX: Final = "ChangeEvent"
_TYPES: Final = (
    *("CREATE", "UPDATE", "DELETE", "UNDELETE"),
    *("GAP_CREATE", "GAP_UPDATE", "GAP_DELETE", "GAP_UNDELETE", "GAP_OVERFLOW", "SNAPSHOT"),
)
_TEXTS: Final = {"type": "array", "items": "string"}
_HEADER_FIELDS: Final = [
    {"name": "entityName", "type": "string"},
    {"name": "recordIds", "type": _TEXTS},
    {"name": "changeType", "type": {"type": "enum", "name": "ChangeType", "symbols": list(_TYPES)}},
    {"name": "changeOrigin", "type": "string"},
    {"name": "transactionKey", "type": "string"},
    {"name": "sequenceNumber", "type": "int"},
    {"name": "commitTimestamp", "type": "long"},
    {"name": "commitNumber", "type": "long"},
    {"name": "commitUser", "type": "string"},
    {"name": "nulledFields", "type": _TEXTS},
    {"name": "diffFields", "type": _TEXTS},
    {"name": "changedFields", "type": _TEXTS},
]
_COMPARED_HEADER: Final = {
    **dict.fromkeys(("entityName", "changeType", "changeOrigin", "transactionKey", "commitUser"), FieldType.TEXT),
    **dict.fromkeys(("sequenceNumber", "commitNumber"), FieldType.NUMBER),
    "commitTimestamp": FieldType.DATE_TIME,
}


def change_event_name(entity: str) -> str:
    """``AccountChangeEvent`` for Account, ``Customer__ChangeEvent`` for Customer__c."""
    return entity[:-1] + _SUFFIX if entity.endswith("__c") else entity + _SUFFIX


def is_change_event(name: str) -> bool:
    return name.lower().endswith(_SUFFIX.lower())


def to_avro_text(entity: str, fields: Sequence[ChangeField]) -> str:
    """The Avro record of an entity's change events.

    Fields of the record come after the header and the system fields.
    """
    header = {"name": HEADER, "type": {"type": "record", "name": HEADER, "fields": _HEADER_FIELDS}}
    field_names = {field.name for field in fields}
    system = [ChangeField(name, kind) for name, kind in SYSTEM_FIELDS.items() if name not in field_names]
    return json.dumps(
        {
            "type": "record",
            "name": change_event_name(entity),
            "namespace": NAMESPACE,
            "fields": [header, *(_avro(entity, field) for field in (*system, *fields))],
        },
        separators=(",", ":"),
    )


def _avro(entity: str, field: ChangeField, parent: str = "") -> dict[str, Any]:
    avro_type: Any = field.kind.avro
    doc = f"Data:{field.kind.doc}:{field_id(entity, f'{parent}{field.name}')}"
    if not parent and field.name in SYSTEM_FIELDS:
        doc = f"{field.name.removesuffix('Id')}:{field.kind.doc}"
    if field.parts:
        parts = [_avro(entity, part, f"{field.name}.") for part in field.parts]
        avro_type, doc = {"type": "record", "name": field.name, "fields": parts}, "Data:ComplexValueType"
    return {"name": field.name, "type": ["null", avro_type], "doc": doc, "default": None}


class ChangeEventSchema:
    """One registered version: id, text, fields and the codec. Immutable."""

    def __init__(self, schema_id: int, text: str) -> None:
        """Raises InvalidDefinition if the schema is not a change event's."""
        import fastavro

        self.id, self.text = schema_id, text
        try:
            form = json.loads(text)
            self.name: str = form["name"]
            first, *rest = form["fields"]
            if first["name"] != HEADER or not is_change_event(self.name):
                raise KeyError(HEADER)
            self.fields = tuple(_field(each) for each in rest)
            self._parsed = fastavro.parse_schema(form)
        except (ValueError, KeyError, TypeError, LookupError, RecursionError) as error:
            raise InvalidDefinition("The schema is not a change event's") from error

    @property
    def columns(self) -> dict[str, FieldType]:
        """The comparable fields for a filter: fields, parts of compound fields and the header's single values."""
        kinds = {f"{HEADER}.{name}": kind for name, kind in _COMPARED_HEADER.items()}
        for field in self.fields:
            for name, kind in [(f"{field.name}.{part.name}", part.kind) for part in field.parts] or [
                (field.name, field.kind)
            ]:
                if kind.compared is not None:
                    kinds[name] = kind.compared
        return kinds

    def rows(self, events: Sequence[Mapping[str, Any]]) -> pa.StructArray:
        """The comparable values by column, as the struct column that a filter takes."""
        import pyarrow as pa

        types = {FieldType.CHECKBOX: pa.bool_(), FieldType.NUMBER: pa.float64()}
        whole = {FieldType.DATE: pa.int64(), FieldType.DATE_TIME: pa.int64()}
        columns = self.columns
        arrays = [
            pa.array([row.get(name) for row in events], types.get(kind) or whole.get(kind) or pa.string())
            for name, kind in columns.items()
        ]
        return pa.StructArray.from_arrays(arrays, names=list(columns))

    def comparable(self, payload: bytes) -> dict[str, Any]:
        """The comparable values of an event by column. An unchanged field has no value."""
        values = self.decode(payload)
        values_ = {f"{HEADER}.{name}": value for name, value in values[HEADER].items()}
        for field in self.fields:
            value = values[field.name]
            parts = value or {} if field.parts else None
            values_ |= {field.name: value} if parts is None else {f"{field.name}.{p}": v for p, v in parts.items()}
        return values_

    def encode(self, values: Mapping[str, Any]) -> bytes:
        """The Avro body of an event with its header; raises UndecodablePayload."""
        import fastavro

        out = io.BytesIO()
        try:
            fastavro.schemaless_writer(out, self._parsed, values)
        except (ValueError, TypeError, OverflowError, KeyError) as error:
            raise UndecodablePayload(f"The change does not fit the schema of {self.name}: {error}") from error
        return out.getvalue()

    def decode(self, payload: bytes) -> dict[str, Any]:
        """The Avro values of a body; raises UndecodablePayload."""
        import fastavro

        try:
            event = fastavro.schemaless_reader(io.BytesIO(payload), self._parsed, None)
        except Exception as error:
            raise UndecodablePayload(f"The payload is not a record of {self.name} (schema {self.id})") from error
        assert isinstance(event, dict)
        return event

    def to_json(self, payload: bytes, *, timestamp_ms: int) -> dict[str, Any]:
        """The event as CometD shows it: fields with a value and those that were set to null; the header with names of
        fields.

        ``timestamp_ms`` is not needed: a change event has the time of its commit.
        """
        values = self.decode(payload)
        header = dict(values[HEADER])
        nulled = set(self._named(header.pop("nulledFields")))
        del header["diffFields"]
        header["changedFields"] = self._named(header["changedFields"])
        made: dict[str, Any] = {HEADER: header}
        for field in self.fields:
            value = values[field.name]
            if field.parts:
                gone = [part.name for part in field.parts if f"{field.name}.{part.name}" in nulled]
                if value is not None or gone:
                    made[field.name] = (shown(field, value) if value is not None else {}) | dict.fromkeys(gone)
                    continue
            if value is not None or field.name in nulled:
                made[field.name] = shown(field, value)
        return made

    def _named(self, bitmaps: Sequence[str]) -> list[str]:
        """The names of the fields in bitmaps."""
        names: list[str] = []
        for bitmap in bitmaps:
            prefix, dash, digits = bitmap.rpartition("-")
            bits = int(digits, 16)
            if dash:
                compound = self.fields[int(prefix) - 1]
                names += [f"{compound.name}.{part.name}" for i, part in enumerate(compound.parts) if bits >> i & 1]
            else:
                names += [field.name for i, field in enumerate(self.fields, 1) if bits >> i & 1]
        return names


def _field(avro: Mapping[str, Any]) -> ChangeField:
    branch = next(member for member in avro["type"] if member != "null")
    parts = tuple(_field(part) for part in branch["fields"]) if isinstance(branch, Mapping) else ()
    return ChangeField(avro["name"], Kind.of_doc(avro.get("doc", "")), parts)
