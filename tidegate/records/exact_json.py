"""JSON whose numbers keep their digits: those with a fraction or an exponent are ``Decimal``."""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from collections.abc import Iterator
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


def json_text(value: Any, *, constants: bool = False, indent: bool = False) -> str:
    """The JSON of a value that ``parsed_json`` returned, however deep it is nested; with ``indent`` a line for each member.

    Raises ValueError for NaN and Infinity without ``constants``. Bytes are written as base64, other objects as their text.
    """
    if indent:
        return "".join(_pieces(value, constants, indent=True))
    try:
        return json.dumps(value, default=_no_decimal, ensure_ascii=False, allow_nan=constants)
    except (_DecimalMet, RecursionError):
        return "".join(_pieces(value, constants, indent=False))
    except ValueError as error:
        raise ValueError(f"{_constant_in(value) or error} is no number of JSON") from None


class _DecimalMet(Exception):
    """json writes no Decimal with its digits."""


def _no_decimal(value: Any) -> str:
    if isinstance(value, Decimal):
        raise _DecimalMet
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)


def _pieces(value: Any, constants: bool, *, indent: bool) -> Iterator[str]:
    """The parts of the JSON. Without recursion: a record may be nested deeper than Python's stack."""
    waiting: list[tuple[bool, Any, int]] = [(False, value, 0)]  # text as it is or a value, and the depth of the latter
    while waiting:
        is_text, item, depth = waiting.pop()
        if is_text:
            yield item
        elif isinstance(item, dict | list) and item:
            opening, closing = "{}" if isinstance(item, dict) else "[]"
            margin, outer = (f"\n{'  ' * (depth + 1)}", f"\n{'  ' * depth}") if indent else ("", "")
            between = f",{margin}" if indent else ", "
            yield opening + margin
            waiting.append((True, outer + closing, depth))
            members = list(item.items()) if isinstance(item, dict) else [(None, member) for member in item]
            for number, (name, member) in reversed(list(enumerate(members))):
                waiting.append((False, member, depth + 1))
                if name is not None:
                    waiting.append((True, f"{json_text(name)}: ", depth))
                if number:
                    waiting.append((True, between, depth))
        else:
            yield str(item) if isinstance(item, Decimal) else json_text(item, constants=constants)


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
