"""Dates and times: converts the server's texts to days and microseconds, and these to the types in the schemas."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError, Schema, SchemaType
from connectors.debezium.values import in_unit

__all__ = [
    "DAY",
    "MICRO",
    "clock_of_text",
    "date_form",
    "datetime_form",
    "days_of_text",
    "micros_of_text",
    "time_form",
    "timestamp_form",
    "with_years",
]

Convert: TypeAlias = Callable[[pa.Array], pa.Array]
MICRO: Final = 86_400_000_000
DAY: Final = 1
_CENTURY: Final = -683_003
"""0100-01-01 in days since 1970-01-01: dates before it were given with a two-digit year."""
_TIME: Final = re.compile(r"(-?)(\d+):(\d+):(\d+)(?:\.(\d+))?")


def _s(kind: SchemaType, name: str) -> Schema:
    return Schema(kind, name=name, version=1)


def _strings(column: pa.Array) -> pa.Array:
    return column if pa.types.is_string(column.type) else column.cast(pa.string())


def _no_zero(texts: pa.Array) -> pa.Array:
    """Null for dates with a zero month or day, which only these servers have."""
    zero = pc.match_substring(texts, "-00")
    return pc.if_else(zero, pa.scalar(None, pa.string()), texts) if pc.any(zero).as_py() else texts


def days_of_text(column: pa.Array) -> pa.Array:
    try:
        return pc.cast(_no_zero(_strings(column)), pa.date32()).view(pa.int32()).cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise DataError(str(error)) from error


def micros_of_text(column: pa.Array) -> pa.Array:
    try:
        return pc.cast(_no_zero(_strings(column)), pa.timestamp("us")).view(pa.int64())
    except pa.ArrowInvalid as error:
        raise DataError(str(error)) from error


def _micros(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is None:
        raise DataError(f"{text!r} is no time")
    sign, hours, minutes, seconds, fraction = match.groups()
    made = ((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 1_000_000 + int((fraction or "").ljust(6, "0"))
    return -made if sign else made


def clock_of_text(column: pa.Array) -> pa.Array:
    texts = _strings(column)
    try:
        return pc.cast(texts, pa.time64("us")).view(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):  # negative, or a day and more
        return pa.array([None if v is None else _micros(v) for v in texts.to_pylist()], pa.int64())


def with_years(finish: Convert, unit: int, adjust: bool) -> Convert:
    """``finish``, applied after two-digit years were interpreted as the server does, where there are any."""
    if not adjust:
        return finish

    def convert(column: pa.Array) -> pa.Array:
        low = pc.min(column).as_py()
        if low is not None and low < _CENTURY * unit:
            column = pa.array([None if v is None else _adjusted(v, unit) for v in column.to_pylist()], column.type)
        return finish(column)

    return convert


def _adjusted(value: int, unit: int) -> int:
    if value >= _CENTURY * unit:
        return value
    days, rest = divmod(value, unit)
    start = days + 719_162  # days since 0001-01-01
    shift = 800 * 1461 // 4 - 6  # 800 years are two full cycles of the calendar, so leap years stay the same
    date = dt.date.fromordinal(start + 1 + shift)
    year = date.year - 800
    full_year = 1900 + year if year >= 70 else 2000 + year
    try:
        moved = date.replace(year=full_year)
    except ValueError:  # 29 February
        moved = date.replace(year=full_year, day=28)
    return (moved.toordinal() - 719_163) * unit + rest


def _iso(pattern: str, digits: int, arrow: str) -> Convert:
    """Microseconds as ISO 8601 with so many digits after the second."""

    def convert(column: pa.Array) -> pa.Array:
        unit = "us" if digits > 3 else "ms" if digits else "s"
        stamps = pc.cast(column.view(pa.timestamp("us")), pa.timestamp(unit), safe=False)
        texts = pc.strftime(stamps, format=pattern)
        cut = {1: 2, 2: 1, 4: 2, 5: 1}.get(digits, 0)
        texts = pc.utf8_slice_codeunits(texts, 0, -cut) if cut else texts
        return pc.binary_join_element_wise(texts, arrow, "")

    return convert


def date_form(mode: str) -> tuple[Schema, Convert]:
    if mode == "connect":
        return Schema.date(), lambda c: pc.cast(c, pa.int32()).view(pa.date32())
    if mode == "isostring":
        iso: Convert = lambda c: pc.binary_join_element_wise(  # noqa: E731
            pc.strftime(pc.cast(c, pa.int32()).view(pa.date32()), format="%Y-%m-%d"), "Z", ""
        )
        return _s(SchemaType.STRING, "io.debezium.time.IsoDate"), iso
    return _s(SchemaType.INT32, "io.debezium.time.Date"), lambda c: pc.cast(c, pa.int32())


def _within_a_day(column: pa.Array) -> pa.Array:
    """Null for times outside a day: the types of Kafka Connect and ISO 8601 cannot represent them, and neither does
    Debezium.
    """
    outside = pc.or_(pc.less(column, 0), pc.greater_equal(column, MICRO))
    return pc.if_else(outside, pa.scalar(None, pa.int64()), column) if pc.any(outside).as_py() else column


def _iso_clock(micros: int | None) -> str | None:
    if micros is None:
        return None
    seconds, fraction = divmod(micros, 1_000_000)
    tail = f".{fraction:06}".rstrip("0") if fraction else ""
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{tail}Z"


def time_form(mode: str) -> tuple[Schema, Convert]:
    if mode == "connect":
        return Schema.time(), lambda c: pc.cast(in_unit(_within_a_day(c), "ms"), pa.int32()).view(pa.time32("ms"))
    if mode == "isostring":
        iso: Convert = lambda c: pa.array([_iso_clock(v) for v in _within_a_day(c).to_pylist()], pa.string())  # noqa: E731
        return _s(SchemaType.STRING, "io.debezium.time.IsoTime"), iso
    if mode == "nanoseconds":
        return _s(SchemaType.INT64, "io.debezium.time.NanoTime"), lambda c: in_unit(c, "ns")
    return _s(SchemaType.INT64, "io.debezium.time.MicroTime"), lambda c: c


def datetime_form(digits: int, mode: str) -> tuple[Schema, Convert]:
    if mode == "connect":
        return Schema.timestamp(), lambda c: in_unit(c, "ms").view(pa.timestamp("ms", tz="UTC"))
    if mode == "isostring":
        return _s(SchemaType.STRING, "io.debezium.time.IsoTimestamp"), _iso("%Y-%m-%dT%H:%M:%S", digits, "Z")
    unit = {"microseconds": "us", "nanoseconds": "ns"}.get(mode, "ms" if digits <= 3 else "us")
    name = {"ms": "Timestamp", "us": "MicroTimestamp", "ns": "NanoTimestamp"}[unit]
    return _s(SchemaType.INT64, f"io.debezium.time.{name}"), lambda c: in_unit(c, unit)


def timestamp_form(digits: int) -> tuple[Schema, Convert]:
    """A TIMESTAMP is an instant: text in UTC in every mode."""
    return _s(SchemaType.STRING, "io.debezium.time.ZonedTimestamp"), _iso("%Y-%m-%dT%H:%M:%S", digits, "Z")
