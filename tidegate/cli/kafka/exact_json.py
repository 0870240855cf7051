"""JSON whose numbers keep their digits: those with a fraction or an exponent are ``Decimal``."""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any

__all__ = ["json_text", "parsed_json"]


def parsed_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError for what is none."""
    try:
        return json.loads(text, parse_float=_number)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def json_text(value: Any) -> str:
    """The JSON of a value that ``parsed_json`` returned."""
    match value:
        case dict():
            return "{" + ", ".join(f"{json_text(name)}: {json_text(item)}" for name, item in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(json_text, value)) + "]"
        case Decimal():
            return str(value)
    return json.dumps(value, ensure_ascii=False)


def _number(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text} has too large an exponent") from None
