"""JSON whose numbers keep their digits: those with a fraction or an exponent are ``Decimal``."""

from __future__ import annotations

import base64
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


def json_text(value: Any, *, constants: bool = False) -> str:
    """The JSON of a value that ``parsed_json`` returned. Raises ValueError for NaN and Infinity without ``constants``.

    Bytes are written as base64, other objects as their text.
    """
    try:
        return json.dumps(value, default=_no_decimal, ensure_ascii=False, allow_nan=constants)
    except _DecimalMet:
        return _slowly(value, constants)
    except ValueError as error:
        raise ValueError(f"{_constant_in(value) or error} is no number of JSON") from None


class _DecimalMet(Exception):
    """json writes no Decimal with its digits."""


def _no_decimal(value: Any) -> str:
    if isinstance(value, Decimal):
        raise _DecimalMet
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _slowly(value: Any, constants: bool) -> str:
    match value:
        case dict():
            members = (f"{json_text(name)}: {_slowly(item, constants)}" for name, item in value.items())
            return "{" + ", ".join(members) + "}"
        case list():
            return "[" + ", ".join(_slowly(item, constants) for item in value) + "]"
        case Decimal():
            return str(value)
    return json_text(value, constants=constants)


def _constant_in(value: Any) -> str | None:
    """The first NaN or Infinity in a value, as JSON's readers of JavaScript write it."""
    match value:
        case dict():
            return next(filter(None, map(_constant_in, value.values())), None)
        case list():
            return next(filter(None, map(_constant_in, value)), None)
        case float() if not math.isfinite(value):
            return json.dumps(value)
    return None


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
