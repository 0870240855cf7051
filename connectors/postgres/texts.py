"""Converts single values of PostgreSQL's text output, under the settings in ``types.SESSION``, to Python values."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Decimal
from functools import wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from connect.api import DataError

__all__ = [
    "array",
    "bits",
    "days",
    "decimal_or_none",
    "from_hex",
    "hstore",
    "hstore_json",
    "interval_micros",
    "interval_text",
    "iso_date",
    "iso_timestamp",
    "money",
    "point",
    "time_micros",
    "timestamp_micros",
    "to_base64",
    "to_base64_url",
    "variable_decimal",
    "zoned_time",
    "zoned_timestamp",
]

_DAY: Final = 86_400_000_000
POSITIVE_INFINITY: Final = 9223372036825200000
NEGATIVE_INFINITY: Final = -9223372036832400000
"""Microseconds that represent infinite timestamps, as in PostgreSQL's JDBC driver and therefore in Debezium."""
_INTERVAL: Final = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)W)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?[\d.]+)S)?)?"
)
_HSTORE: Final = re.compile(r'"((?:[^"\\]|\\.)*)"=>(?:NULL|"((?:[^"\\]|\\.)*)")(?:, )?', re.DOTALL)
_ITEM: Final = re.compile(r'"((?:[^"\\]|\\.)*)"|([^{},"]+)', re.DOTALL)
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


_T = TypeVar("_T")
_P = ParamSpec("_P")


def _reads(what: str) -> Callable[[Callable[Concatenate[str, _P], _T]], Callable[Concatenate[str, _P], _T]]:
    """Raises DataError for a text that is invalid for its type."""

    def wrapped(read: Callable[Concatenate[str, _P], _T]) -> Callable[Concatenate[str, _P], _T]:
        @wraps(read)
        def reading(text: str, /, *more: _P.args, **options: _P.kwargs) -> _T:
            try:
                return read(text, *more, **options)
            except (DataError, ValueError, ArithmeticError, IndexError) as error:
                raise DataError(f"{text!r} is no {what}") from error

        return reading

    return wrapped


@_reads("bytea in hexadecimal form")
def from_hex(text: str) -> bytes:
    return bytes.fromhex(text[2:])


def to_base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def to_base64_url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode()


@_reads("bit string")
def bits(text: str) -> bytes:
    """Least significant byte first, without leading zeros (Debezium's Bits)."""
    number = int(text or "0", 2)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


@_reads("number")
def decimal_or_none(text: str) -> Decimal | None:
    """None for NaN and infinity."""
    made = Decimal(text)
    return made if made.is_finite() else None


@_reads("number")
def variable_decimal(text: str) -> dict[str, Any] | None:
    """Scale and unscaled value (two's complement, big-endian)."""
    number = decimal_or_none(text)
    if number is None:
        return None
    sign, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
    size = (unscaled.bit_length() if unscaled >= 0 else (unscaled + 1).bit_length()) // 8 + 1
    return {"scale": -exponent, "value": unscaled.to_bytes(size, "big", signed=True)}


@_reads("amount of money")
def money(text: str) -> Decimal:
    return Decimal(re.sub(r"[^\d.-]", "", text)).quantize(Decimal("0.01"), ROUND_HALF_EVEN)


def _civil(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the proleptic Gregorian calendar, any year (0 is 1 BC)."""
    shifted = year - (month <= 2)
    era, rest = divmod(shifted, 400)
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    return era * 146097 + rest * 365 + rest // 4 - rest // 100 + of_year - 719468


def _date_parts(text: str) -> tuple[int, int, int]:
    before = text.endswith(" BC")
    year, month, day = (int(part) for part in text.removesuffix(" BC").split("-"))
    return (1 - year if before else year), month, day


@_reads("date")
def days(text: str) -> int:
    if text.endswith("infinity"):
        return -(2**31) if text[0] == "-" else 2**31 - 1
    return _civil(*_date_parts(text))


def _iso_year(year: int) -> str:
    if 0 <= year <= 9999:
        return f"{year:04}"
    return f"{year:+05}" if year > 0 else f"-{-year:04}"


@_reads("date")
def iso_date(text: str) -> str:
    if text.endswith("infinity"):
        return text
    year, month, day = _date_parts(text)
    return f"{_iso_year(year)}-{month:02}-{day:02}Z"


@_reads("time")
def time_micros(text: str) -> int:
    hours, minutes, seconds = text.split(":")
    whole, _, fraction = seconds.partition(".")
    return ((int(hours) * 60 + int(minutes)) * 60 + int(whole)) * 1_000_000 + int(fraction.ljust(6, "0") or "0")


def _split(text: str) -> tuple[str, str]:
    """Split a timestamp into its date with the era, and its time."""
    date, time = text.removesuffix(" BC").split(" ", 1)
    return date + (" BC" if text.endswith(" BC") else ""), time


@_reads("timestamp")
def timestamp_micros(text: str) -> int:
    if text.endswith("infinity"):
        return NEGATIVE_INFINITY if text[0] == "-" else POSITIVE_INFINITY
    date, time = _split(text)
    return days(date) * _DAY + time_micros(time)


@_reads("timestamp")
def iso_timestamp(text: str) -> str:
    if text.endswith("infinity"):
        return text
    date, time = _split(text)
    return f"{iso_date(date)[:-1]}T{time}Z"


@_reads("timestamp")
def zoned_timestamp(text: str, digits: int) -> str:
    """``text`` is in UTC; the result has this many digits after the second."""
    if text.endswith("infinity"):
        return text
    date, time = _split(text)
    whole, _, fraction = time.removesuffix("+00").partition(".")
    return f"{iso_date(date)[:-1]}T{whole}{'.' if digits else ''}{fraction[:digits]:0<{digits}}Z"


@_reads("time with a zone")
def zoned_time(text: str) -> str:
    """A time with a zone, converted to UTC."""
    at = max(text.rfind("+"), text.rfind("-"))
    clock, zone = text[:at], text[at:]
    parts = [int(part) for part in zone[1:].split(":")] + [0, 0]
    shift = (parts[0] * 3600 + parts[1] * 60 + parts[2]) * 1_000_000 * (-1 if zone[0] == "-" else 1)
    micros = (time_micros(clock) - shift) % _DAY
    seconds, fraction = divmod(micros, 1_000_000)
    tail = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{tail}Z"


def _interval(text: str) -> tuple[int, int, int, int, int, Decimal]:
    match = _INTERVAL.fullmatch(text)
    if match is None:
        raise ValueError(text)
    years, months, weeks, day, hours, minutes = (int(part or 0) for part in match.groups()[:6])
    return years, months, day + 7 * weeks, hours, minutes, Decimal(match[7] or 0)


@_reads("interval")
def interval_micros(text: str) -> int:
    """A month counts as a twelfth of 365.25 days."""
    years, months, day, hours, minutes, seconds = _interval(text)
    whole = (years * 12 + months) * Decimal("30.4375") + day
    return int(whole * _DAY + (hours * 3600 + minutes * 60 + seconds) * 1_000_000)


@_reads("interval")
def interval_text(text: str) -> str:
    years, months, day, hours, minutes, seconds = _interval(text)
    second = f"{seconds:f}"
    second = second.rstrip("0").rstrip(".") if "." in second else second
    return f"P{years}Y{months}M{day}DT{hours}H{minutes}M{second}S"


def hstore(text: str) -> dict[str, str | None]:
    return {
        _ESCAPED.sub(r"\1", match[1]): None if match[2] is None else _ESCAPED.sub(r"\1", match[2])
        for match in _HSTORE.finditer(text)
    }


def hstore_json(text: str) -> str:
    return json.dumps(hstore(text), ensure_ascii=False, separators=(",", ":"))


@_reads("point")
def point(text: str) -> dict[str, Any]:
    x, y = (float(part) for part in text.strip("()").split(","))
    return {"x": x, "y": y, "wkb": struct.pack("<bIdd", 1, 1, x, y), "srid": None}


@_reads("array")
def array(text: str) -> list[str | None]:
    """The elements of an array; those of several dimensions are concatenated."""
    body = text[text.index("{") :]
    return [
        _ESCAPED.sub(r"\1", match[1]) if match[1] is not None else None if match[2] == "NULL" else match[2]
        for match in _ITEM.finditer(body)
    ]
