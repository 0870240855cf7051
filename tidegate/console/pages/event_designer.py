"""A new platform event by a form, and the Salesforce metadata that it makes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from starlette.responses import Response
from starlette.routing import Route

from tidegate.console.console import Console, Visit
from tidegate.console.numbers import whole_number
from tidegate.kit.errors import TidegateError, UsageError

if TYPE_CHECKING:
    from events.model.definitions import EventDefinition, EventField

__all__ = ["routes"]

_TYPES: Final = ("Text", "LongTextArea", "Number", "Checkbox", "Date", "DateTime")
_WHOLE: Final = ("name", "label", "description", "behavior")
_OF_FIELD: Final = ("name", "label", "type", "length", "precision", "scale", "required")
_ROWS: Final = 6
_MOST_ROWS: Final = 200


def routes(console: Console) -> list[Route]:
    return [
        console.route("/new-event", _form),
        console.route("/new-event", _made, ["POST"]),
    ]


async def _form(visit: Visit) -> Response:
    return _page(visit, {}, _ROWS)


def _page(visit: Visit, values: dict[str, str], rows: int, metadata: str = "", error: str = "") -> Response:
    return visit.page(
        "event_new.html",
        400 if error else 200,
        values=values,
        rows=range(rows),
        types=_TYPES,
        metadata=metadata,
        error=error,
        may_define=visit.may_some("manage", "event"),
    )


async def _made(visit: Visit) -> Response:
    """Show the metadata of the form, define its event, or add rows; what was typed stays."""
    form = await visit.form()
    rows = min(max(whole_number(form.get("rows", "")) or _ROWS, 1), _MOST_ROWS)
    what = form.get("what", "show")
    if what == "more":
        return _page(visit, form, min(rows + _ROWS, _MOST_ROWS))
    try:
        definition = _definition(form, rows)
        metadata = _metadata(definition)
        if what == "define":
            await asyncio.to_thread(_define, visit, definition.name, metadata)
    except TidegateError as error:
        return _page(visit, form, rows, error=error.message)
    if what == "define":
        visit.faces.forget()
        visit.audit("define event", platform_event=definition.name)
        return visit.redirect(f"/events/{quote(definition.name, safe='')}")
    return _page(visit, form, rows, metadata.decode())


def _define(visit: Visit, name: str, metadata: bytes) -> None:
    """Raises UsageError for an event that exists: to change it is for who knows what reads it."""
    client = visit.faces.events_client()
    if any(event["name"].lower() == name.lower() for event in client.events()):
        raise UsageError(
            f"There is an event {name} already, and this form makes new ones. `tidegate events define` changes it, once its "
            "fields are in the metadata that you give"
        )
    client.define_xml(name, metadata)


def _metadata(definition: EventDefinition) -> bytes:
    from events.model.metadata_export import object_xml

    return object_xml(definition)


def _definition(form: dict[str, str], rows: int) -> EventDefinition:
    """Raises UsageError and InvalidDefinition that name the field."""
    from events.model.definitions import EventDefinition

    name, label, description, behavior = (form.get(part, "").strip() for part in _WHOLE)
    if not label:
        raise UsageError("Label: it is empty")
    if not name and not label.isascii():
        raise UsageError(
            f"API name: give one; of {label!r} none can be made, as it has letters, digits and underscores only"
        )
    return EventDefinition(
        name=_with_suffix(name or label.replace(" ", "_"), "__e"),
        fields=tuple(_fields(form, rows)),
        label=label,
        plural_label=f"{label}s",
        description=description,
        publish_behavior=behavior or "PublishImmediately",
    )


def _fields(form: dict[str, str], rows: int) -> list[EventField]:
    from events.model.definitions import EventField, FieldType

    made = []
    for row in range(rows):
        told = {part: form.get(f"field.{row}.{part}", "").strip() for part in _OF_FIELD}
        if not told["name"] and not told["label"]:
            continue
        if not told["name"] and not told["label"].isascii():
            raise UsageError(
                f"Field {row + 1}: give an API name; of {told['label']!r} none can be made, as it has letters, digits and "
                "underscores only"
            )
        if told["type"] not in _TYPES:
            raise UsageError(f"Field {row + 1}: {told['type']!r} is no type; there are {', '.join(_TYPES)}")
        kind = FieldType(told["type"])
        is_text, is_number = kind in (FieldType.TEXT, FieldType.LONG_TEXT_AREA), kind is FieldType.NUMBER
        made.append(
            EventField(
                name=_with_suffix(told["name"] or told["label"].replace(" ", "_"), "__c"),
                type=kind,
                label=told["label"],
                required=told["required"] == "yes" and kind is not FieldType.CHECKBOX,
                length=_number(told, "length", row, 0) if is_text else 0,
                precision=_number(told, "precision", row, 18) if is_number else 18,
                scale=_number(told, "scale", row, 0) if is_number else 0,
            )
        )
    if not made:
        raise UsageError("Fields: give at least one a name or a label")
    return made


def _with_suffix(name: str, suffix: str) -> str:
    return name if name.endswith(suffix) else f"{name}{suffix}"


def _number(told: dict[str, Any], part: str, row: int, default: int) -> int:
    if not told[part]:
        return default
    if (number := whole_number(told[part])) is None:
        raise UsageError(f"Field {row + 1}: {part} is {told[part]!r}; give a whole number")
    return number
