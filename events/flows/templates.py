"""Values of a flow with an event's fields filled in: ``"{Order_Number__c}"``."""

from __future__ import annotations

import math
import os
import string
from collections.abc import Iterator
from typing import Any

from events.triggers.api import TriggerEvent
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.url_paths import LeadsElsewhere, with_values

__all__ = ["FlowFailed", "check", "filled", "filled_address"]


class FlowFailed(TidegateError):
    """An action failed; it is retried with its event."""


def check(value: Any, where: str) -> None:
    """Raise UsageError for text with invalid braces, and for values that JSON can't represent."""
    if isinstance(value, dict):
        for name, part in value.items():
            check(part, f"{where}.{name}")
    elif isinstance(value, list):
        for part in value:
            check(part, where)
    elif isinstance(value, str):
        try:
            list(_parts(value))
        except ValueError as error:
            raise UsageError(
                f"{where}: {value[:100]!r} cannot be read ({error}); a field stands in braces, as in "
                '"{Order_Number__c}", a variable of the environment as "{env:NAME}", a brace itself is doubled'
            ) from error
    elif not isinstance(value, int) and not (isinstance(value, float) and math.isfinite(value)):
        raise UsageError(f"{where}: {value} is no JSON value; a date or a time stands in quotes")


def _parts(text: str) -> Iterator[tuple[str, str | None]]:
    """Literal text, each with the name that follows it."""
    for literal, name, spec, conversion in string.Formatter().parse(text):
        if name is None:
            yield literal, None
            continue
        whole = f"{name}:{spec}" if spec else name
        if (
            conversion is not None
            or not all(part.isidentifier() for part in name.split("."))
            or (spec and name != "env")
            or (name == "env" and not spec)
        ):
            raise ValueError(f"{{{whole}}} is no field")
        yield literal, whole


def filled(value: Any, event: TriggerEvent) -> Any:
    """The value with the event's fields filled in. A text that is a single field becomes the field's value, including
    null and numbers.

    Raises FlowFailed for a field that the event lacks.
    """
    if isinstance(value, dict):
        return {name: filled(part, event) for name, part in value.items()}
    if isinstance(value, list):
        return [filled(part, event) for part in value]
    if not isinstance(value, str):
        return value
    parts = list(_parts(value))
    if len(parts) == 1 and parts[0][0] == "" and parts[0][1] is not None:
        return _value(parts[0][1], event)
    return "".join(literal + ("" if name is None else _text(_value(name, event))) for literal, name in parts)


def filled_address(address: str, event: TriggerEvent) -> str:
    """An address with the event's fields percent-encoded, so that no event can redirect it.

    Raises FlowFailed like ``filled``.
    """
    pieces = []
    for literal, name in _parts(address):
        pieces.append((literal, False))
        if name is not None:
            pieces.append((_text(_value(name, event)), not name.startswith("env:")))
    try:
        return with_values(pieces)
    except LeadsElsewhere as error:
        raise FlowFailed(f"{event.name}: {error}; it needs a value") from error


def _value(name: str, event: TriggerEvent) -> Any:
    if name.startswith("env:"):
        value = os.environ.get(name[4:])
        if value is None:
            raise FlowFailed(f"the environment has no variable {name[4:]}")
        return value
    first, *parts = name.split(".")
    try:
        value = event[first]
        for part in parts:  # of a change event's header or a compound field, which may be null
            value = value and value[part]
    except (KeyError, TypeError):
        raise FlowFailed(f"{event.name} has no field {name}; it has {', '.join(event.fields)}") from None
    return value


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
