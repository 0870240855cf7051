"""Converts columns of PostgreSQL's text to Arrow columns: with Arrow's casts, and value by value only where these
cannot read one (years before Christ, infinity).

Most conversions also accept a column in the type that the driver returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError
from connectors.postgres import texts

__all__ = [
    "Convert",
    "binary",
    "boolean",
    "cast",
    "days",
    "decimal_text",
    "each",
    "same",
    "time_micros",
    "timestamp_micros",
    "zoned",
]

Convert: TypeAlias = Callable[[pa.Array], pa.Array]
"""Converts a column to the type of its schema."""
_EPOCH_MICROS: Final = 946_684_800_000_000
_EPOCH_DAYS: Final = 10_957


def each(read: Callable[[str], Any], arrow: pa.DataType) -> Convert:
    """Converts value by value; nulls stay null."""
    return lambda column: pa.array([None if v is None else read(v) for v in column.to_pylist()], arrow)


def cast(arrow: pa.DataType, slow: Callable[[str], Any] | None = None) -> Convert:
    """Converts with Arrow; if Arrow rejects a value, with ``slow``."""

    def convert(column: pa.Array) -> pa.Array:
        if column.type == arrow:
            return column
        try:
            return pc.cast(column, arrow)
        except pa.ArrowInvalid as error:
            if slow is None:
                raise DataError(str(error)) from error
            return each(slow, arrow)(column)

    return convert


def boolean(true: str) -> Convert:
    """``true`` is the text that stands for true."""
    return lambda column: column if pa.types.is_boolean(column.type) else pc.equal(column, true)


def binary(column: pa.Array) -> pa.Array:
    if pa.types.is_binary(column.type):
        return column
    return each(texts.from_hex, pa.binary())(column)


def days(column: pa.Array) -> pa.Array:
    """Days since 1970 (int32)."""
    if pa.types.is_date(column.type):
        return _finite(column.view(pa.int32()), _EPOCH_DAYS, (-(2**31), 2**31 - 1))
    return cast(pa.date32(), texts.days)(column).view(pa.int32())


def time_micros(column: pa.Array) -> pa.Array:
    try:
        return pc.cast(column, pa.time64("us")).view(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return each(texts.time_micros, pa.int64())(column)


def timestamp_micros(column: pa.Array) -> pa.Array:
    """Microseconds since 1970 (int64)."""
    if pa.types.is_timestamp(column.type):
        infinities = (texts.NEGATIVE_INFINITY, texts.POSITIVE_INFINITY)
        return _finite(column.view(pa.int64()), _EPOCH_MICROS, infinities)
    try:
        return pc.cast(column, pa.timestamp("us")).view(pa.int64())
    except pa.ArrowInvalid:
        return each(texts.timestamp_micros, pa.int64())(column)


def _finite(column: pa.Array, epoch: int, infinities: tuple[int, int]) -> pa.Array:
    """Restores infinite values.

    The driver adds ``epoch`` to the server's count since 2000 without a check, even to the smallest and the largest
    number, which stand for infinity. No other value is that long before the calendar begins.
    """
    numbers = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    limits = np.iinfo(numbers.dtype)
    least = limits.min + epoch
    if not len(numbers) or int(numbers.min()) > least:
        return column
    made = np.where(numbers == least, infinities[0], np.where(numbers == least - 1, infinities[1], numbers))
    return pa.array(made, column.type, mask=column.is_null().to_numpy(zero_copy_only=False))


def zoned(digits: int) -> Convert:
    """Timestamps in UTC as ISO 8601 with this many digits after the second (0 to 6)."""

    def convert(column: pa.Array) -> pa.Array:
        if pc.any(pc.match_substring_regex(column, "BC|^[0-9]{5}|infinity")).as_py():
            return each(lambda text: texts.zoned_timestamp(text, digits), pa.string())(column)
        iso = pc.replace_substring_regex(column, r"^(.{10}) (.{8})(?:\.([0-9]*))?\+00$", r"\1T\2.\3")
        padded = pc.utf8_rpad(iso, len("2024-01-02T03:04:05.") + digits, "0")
        return pc.binary_join_element_wise(padded if digits else pc.utf8_slice_codeunits(padded, 0, 19), "Z", "")

    return convert


_SPECIAL: Final = {"NaN": "NAN", "Infinity": "POSITIVE_INFINITY", "-Infinity": "NEGATIVE_INFINITY"}
"""Maps non-numbers to the names in Debezium's ``SpecialValueDecimal``."""


def decimal_text(column: pa.Array) -> pa.Array:
    if not pc.any(pc.is_in(column, value_set=pa.array(_SPECIAL))).as_py():
        return column
    return each(lambda text: _SPECIAL.get(text, text), pa.string())(column)


def same(column: pa.Array) -> pa.Array:
    return column
