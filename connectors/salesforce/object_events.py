"""Converts an object's change events to the form of its records, so that a topic has one schema for both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from connect.api import Header, Record, Schema, SchemaType
from connectors.salesforce.schemas import EVENT_TYPE, EVENT_TYPES, OBJECT_TYPE, python_value

__all__ = ["ObjectEvents"]

_TEXT: Final = Schema(SchemaType.STRING)


class ObjectEvents:
    """Makes records from change events.

    Fields that are not in the event are null, and headers name the fields that have changed.
    """

    def __init__(
        self, name: str, topic: str, schema: Schema, fields: Sequence[Mapping[str, Any]], tombstones: bool
    ) -> None:
        """``fields`` come from the object's describe call; with ``tombstones``, deletes are followed by a tombstone."""
        self._name, self._topic, self._schema, self._tombstones = name, topic, schema, tombstones
        self._parts = {field["name"]: field["compoundFieldName"] for field in fields if field.get("compoundFieldName")}

    def records(self, event: Mapping[str, Any]) -> Iterator[Record]:
        """One record per record id."""
        payload = event["payload"]
        header = payload["ChangeEventHeader"]
        kind = EVENT_TYPES[header["changeType"]]
        value = {
            field.name: python_value(self._value_of(payload, field.name), field.schema) for field in self._schema.fields
        }
        value |= {OBJECT_TYPE: self._name, EVENT_TYPE: kind}
        changed = header.get("changedFields") or []
        headers = (
            Header("source.changed.fields", ",".join(changed), _TEXT),
            Header("cdc.nulled.fields", ",".join(name for name in changed if _is_null(payload, name)), _TEXT),
        )
        at = header.get("commitTimestamp")
        for id_ in header["recordIds"]:
            more: dict[str, Any] = {"key": id_, "key_schema": _TEXT, "timestamp_ms": at}
            yield Record(self._topic, value | {"Id": id_}, self._schema, headers=headers, **more)
            if kind == "deleted" and self._tombstones:
                yield Record(self._topic, None, self._schema, headers=headers, **more)

    def _value_of(self, payload: Mapping[str, Any], name: str) -> Any:
        """A field's value, either from its own member or from a compound field: Street of MailingAddress."""
        if name in payload and not isinstance(payload[name], Mapping):
            return payload[name]
        compound = self._parts.get(name)
        parts = payload.get(compound) if compound else None
        if not isinstance(parts, Mapping):
            return None
        assert compound is not None
        short = name.removeprefix(compound.removesuffix("Address").removesuffix("__c")).removesuffix("__s").strip("_")
        return next((parts[each] for each in (name, short, short.lower()) if each in parts), None)


def _is_null(payload: Mapping[str, Any], name: str) -> bool:
    """Whether the event states that a field is now null; a field that is missing in the event is unknown."""
    field, _, part = name.partition(".")
    if part and isinstance(payload.get(field), Mapping):
        return part in payload[field] and payload[field][part] is None
    return field in payload and payload[field] is None
