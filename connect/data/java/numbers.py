"""Formats and narrows numbers like Java."""

from __future__ import annotations

import decimal
import math
import struct
from typing import Final

__all__ = ["INTEGER_BITS", "decimal_text", "float_text", "narrowed", "saturated", "single", "single_of_integer"]

INTEGER_BITS: Final = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def narrowed(value: int, bits: int) -> int:
    """The low ``bits`` of an integer, as in Java's casts between integer types."""
    half = 1 << (bits - 1)
    return ((value + half) & ((1 << bits) - 1)) - half


def saturated(value: float, bits: int) -> int:
    """A float as an integer: truncated, 0 for NaN, clamped to the range.

    Types below 32 bits go through 32 bits, as in Java.
    """
    if math.isnan(value):
        return 0
    wide = max(bits, 32)
    bound = 1 << (wide - 1)
    if not -bound <= value < bound:
        return narrowed(bound - 1 if value > 0 else -bound, bits)
    return narrowed(int(value), bits)


def single(value: float) -> float:
    """The float32 nearest to a number."""
    try:
        made: float = struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return made


def single_of_integer(value: int) -> float:
    """The float32 nearest to an integer, rounded once."""
    spare = abs(value).bit_length() - 24
    if spare <= 0:
        return float(value)
    kept, lost = abs(value) >> spare, abs(value) & ((1 << spare) - 1)
    half = 1 << (spare - 1)
    kept += lost > half or (lost == half and kept & 1)
    return math.copysign(float(kept << spare), value)


def float_text(value: float, *, bits: int = 64) -> str:
    """``Double.toString``, or ``Float.toString`` with 32 bits: the shortest digits, in Java's two notations."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "-0.0" if math.copysign(1, value) < 0 else "0.0"
    digits, exponent = _shortest(abs(value), bits)
    sign = "-" if value < 0 else ""
    if 1e-3 <= abs(value) < 1e7:
        if exponent < 0:
            return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
        digits = digits.ljust(exponent + 2, "0")
        return f"{sign}{digits[: exponent + 1]}.{digits[exponent + 1 :]}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def _shortest(value: float, bits: int) -> tuple[str, int]:
    """Significant digits and the exponent of the first of them."""
    if bits == 32:
        text = next(made for size in range(9) if single(float(made := f"{value:.{size}e}")) == value)
    else:
        text = f"{decimal.Decimal(repr(value)):e}"
    mantissa, _, exponent = text.partition("e")
    return mantissa.replace(".", "").rstrip("0") or "0", int(exponent)


def decimal_text(value: decimal.Decimal) -> str:
    """``BigDecimal.toString``: with an exponent where Python's own text has one."""
    return str(value).replace("e", "E")
