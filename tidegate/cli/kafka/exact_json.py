"""JSON whose numbers keep their digits: those with a fraction or an exponent are ``Decimal``."""

from __future__ import annotations

import json
import math
from collections import Counter
from decimal import Decimal, InvalidOperation
from typing import Any, Final, NoReturn

__all__ = ["json_text", "parsed_json"]

_LONGEST_INT: Final = 4300
"""Python makes no int of text with more digits."""


def parsed_json(text: str, *, constants: bool = False) -> Any:
    """The value of a JSON text. With ``constants`` NaN and Infinity are numbers, as ``json`` prints them.

    Raises ValueError for what is no JSON, and for an object that has a member twice.
    """
    constant = None if constants else _no_number  # json's own NaN is one object, so that it equals itself in lists
    try:
        return json.loads(
            text, parse_float=_number, parse_int=_whole, parse_constant=constant, object_pairs_hook=_object
        )
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def json_text(value: Any) -> str:
    """The JSON of a value that ``parsed_json`` returned. Raises ValueError for NaN and Infinity."""
    match value:
        case dict():
            return "{" + ", ".join(f"{json_text(name)}: {json_text(item)}" for name, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(json_text, value)) + "]"
        case Decimal():
            return str(value)
        case float() if not math.isfinite(value):
            _no_number(json.dumps(value))
    return json.dumps(value, ensure_ascii=False)


def _whole(text: str) -> int | Decimal:
    return int(text) if len(text) <= _LONGEST_INT else Decimal(text)


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text} has too large an exponent") from None


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _object(members: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(members)
    if len(value) < len(members):
        counts = Counter(name for name, _ in members)
        name = next(name for name, count in counts.items() if count > 1)
        raise ValueError(f"an object has the member {json.dumps(name, ensure_ascii=False)} {_times(counts[name])}")
    return value


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"
