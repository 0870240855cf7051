"""Writes JSON like Java's Jackson, so that equal schemas have equal text in both."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any, Final

__all__ = ["write_json"]

_ESCAPES: Final = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Lone surrogates are escaped too: JSON can represent them, UTF-8 can't.
_ESCAPED_CODES: Final = (*range(0x20), *range(0xD800, 0xE000))
_ESCAPED: Final = str.maketrans({**{chr(code): f"\\u{code:04X}" for code in _ESCAPED_CODES}, **_ESCAPES})


def write_json(value: Any) -> str:
    """Compact JSON like Jackson's: Java's doubles and decimals, upper-case escapes."""
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPED)}"'
    if isinstance(value, dict):
        return "{" + ",".join(f"{write_json(name)}:{write_json(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(write_json(item) for item in value) + "]"
    if isinstance(value, float):
        return _java_double(value)
    if isinstance(value, Decimal):
        return _java_decimal(value)
    return json.dumps(value)


def _java_double(value: float) -> str:
    """``Double.toString``: plain between 10^-3 and 10^7, otherwise one digit before the point and an exponent."""
    if not math.isfinite(value):
        return '"NaN"' if math.isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    sign = "-" if math.copysign(1, value) < 0 else ""
    if value == 0:
        return f"{sign}0.0"
    digits_tuple, exponent = Decimal(repr(abs(value))).as_tuple()[1:]
    digits = "".join(map(str, digits_tuple)).rstrip("0") or "0"
    point = len(digits_tuple) + int(exponent)
    if not 1e-3 <= abs(value) < 1e7:
        return f"{sign}{digits[0]}.{digits[1:] or '0'}E{point - 1}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    return f"{sign}{digits[:point].ljust(point, '0')}.{digits[point:] or '0'}"


def _java_decimal(value: Decimal) -> str:
    """``BigDecimal.toString``: digits as written; there is no negative zero."""
    if not value.is_finite():
        return '"NaN"' if value.is_nan() else '"Infinity"' if value > 0 else '"-Infinity"'
    return str(value.copy_abs() if value.is_zero() else value)
