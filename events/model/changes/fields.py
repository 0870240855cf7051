"""The fields of a change event: their Avro types, their names in ``doc``, their form in CometD."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Final

from events.model.definitions import FieldType

__all__ = ["SYSTEM_FIELDS", "ChangeField", "Kind", "shown"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MIN_MS: Final = -62_135_596_800_000
_MAX_MS: Final = 253_402_300_799_999


class Kind(Enum):
    """A type of field: its Avro type, its name in ``doc``, and its type in filters (None: not comparable)."""

    TEXT = ("string", "Text", FieldType.TEXT)
    LONG_TEXT = ("string", "StringPlusClob", FieldType.LONG_TEXT_AREA)
    ID = ("string", "EntityId", FieldType.TEXT)
    BOOLEAN = ("boolean", "Boolean", FieldType.CHECKBOX)
    INTEGER = ("int", "Integer", FieldType.NUMBER)
    LONG = ("long", "Long", FieldType.NUMBER)
    DOUBLE = ("double", "Double", FieldType.NUMBER)
    DATE = ("long", "DateOnly", FieldType.DATE)
    DATE_TIME = ("long", "DateTime", FieldType.DATE_TIME)
    TIME = ("long", "TimeOnly", None)

    def __init__(self, avro: str, doc: str, compared: FieldType | None) -> None:
        self.avro, self.doc, self.compared = avro, doc, compared

    @staticmethod
    def of_doc(doc: str) -> Kind:
        """The kind named by an Avro field's ``doc``; text if it names none of ours."""
        parts = doc.split(":")
        return next((kind for kind in Kind if len(parts) > 1 and kind.doc == parts[1]), Kind.TEXT)


@dataclass(frozen=True, slots=True)
class ChangeField:
    """A field of a change event, or a compound one with parts."""

    name: str
    kind: Kind = Kind.TEXT
    parts: tuple[ChangeField, ...] = ()


SYSTEM_FIELDS: Final = {
    "CreatedDate": Kind.DATE_TIME,
    "CreatedById": Kind.ID,
    "LastModifiedDate": Kind.DATE_TIME,
    "LastModifiedById": Kind.ID,
}
"""Fields of every Salesforce record. A table's change events get them from the commit."""


def shown(field: ChangeField, value: Any) -> Any:
    """A value as CometD shows it; for a compound field the parts that have a value."""
    if value is None:
        return None
    if field.parts:
        values: Mapping[str, Any] = value
        return {part.name: shown(part, values[part.name]) for part in field.parts if values[part.name] is not None}
    if field.kind is Kind.DATE_TIME:
        return _instant(value) + "Z"
    if field.kind is Kind.DATE:
        return _instant(value)[:10]
    if field.kind is Kind.TIME:
        return _instant(value)[11:] + "Z"
    if field.kind is Kind.DOUBLE and value - value != 0:
        return None  # JSON has no infinity
    return value


def _instant(ms: int) -> str:
    moment = _EPOCH + timedelta(milliseconds=min(max(ms, _MIN_MS), _MAX_MS))
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds")
