"""The fields of an Avro record as inputs of a form, and back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from registry.serde import text_example
from tidegate.kit.errors import UsageError
from tidegate.records.exact_json import parsed_json

__all__ = ["PREFIX", "FormField", "form_fields", "form_value"]

PREFIX: Final = "field."
"""Of the names of inputs; the field's name follows."""
_NUMBERS: Final = frozenset({"int", "long", "float", "double"})


@dataclass(frozen=True, slots=True)
class FormField:
    """A field of a record. ``kind`` is how it is typed: ``json`` for what has parts, and for bytes."""

    name: str
    label: str
    type: str
    """As a person reads it: Salesforce's type of an event's field, else Avro's with its logical type."""
    kind: Literal["boolean", "enum", "number", "text", "json"]
    is_required: bool
    """Whether it has no default and may not be null."""
    symbols: tuple[str, ...] = ()
    help: str = ""
    example: str = ""
    """Of how it is typed, where that is not plain: a date, a time."""

    def value(self, text: str) -> Any:
        """The value of what was typed, as ``registry.serde.record_from_json`` takes it. Raises UsageError with the field's name."""
        if self.kind == "boolean":
            return text == "true"
        if self.kind in ("text", "enum"):
            return text
        try:
            value = parsed_json(text)
        except ValueError as error:
            what = "no number" if self.kind == "number" else f"not JSON: {error}"
            raise UsageError(f"{self.name}: {text!r} is {what}") from error
        if self.kind == "number" and (isinstance(value, bool) or value is None or isinstance(value, str | list | dict)):
            raise UsageError(f"{self.name}: {text!r} is no number")
        return value


def form_fields(schema: Mapping[str, Any]) -> list[FormField]:
    """The fields of a record in the order of its schema."""
    return [_field(field) for field in schema["fields"]]


def form_value(fields: Iterable[FormField], form: Mapping[str, str]) -> dict[str, Any]:
    """The record of a form. A field that was left empty is missing in it, but for a text that must be given.

    Raises UsageError with the field's name for what is no value of it.
    """
    made = {}
    for field in fields:
        text = form.get(PREFIX + field.name, "")
        if text or (field.is_required and field.type == "string"):
            made[field.name] = field.value(text)
        elif field.is_required:
            raise UsageError(f"{field.name}: it must be given")
    return made


def _field(field: Mapping[str, Any]) -> FormField:
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    others = [kind for kind in kinds if kind != "null"]
    type_ = others[0] if len(others) == 1 else others
    avro = type_.get("type") if isinstance(type_, dict) else type_
    logical = type_.get("logicalType", "") if isinstance(type_, dict) else ""
    about = next((value for value in field.values() if isinstance(value, dict) and "label" in value), {})
    return FormField(
        name=field["name"],
        label=about.get("label", field["name"]),
        type=about.get("type") or (f"{avro} ({logical})" if logical else _shown(type_, avro)),
        kind=_kind(avro, logical, about.get("type", "")),
        is_required="null" not in kinds and "default" not in field,
        symbols=tuple(type_["symbols"]) if avro == "enum" and isinstance(type_, dict) else (),
        example=text_example(logical) or "",
        help=about.get("inlineHelpText") or about.get("description") or field.get("doc") or "",
    )


def _kind(avro: Any, logical: str, of_event: str) -> Literal["boolean", "enum", "number", "text", "json"]:
    if avro == "boolean":
        return "boolean"
    if avro == "enum":
        return "enum"
    if avro == "string" or of_event in ("Date", "DateTime") or text_example(logical) is not None:
        return "text"
    return "number" if logical == "decimal" or (isinstance(avro, str) and avro in _NUMBERS) else "json"


def _shown(type_: Any, avro: Any) -> str:
    if isinstance(type_, dict) and avro in ("record", "enum", "fixed"):
        return f"{avro} {type_.get('name', '')}"
    return avro if isinstance(avro, str) else json.dumps(type_)
