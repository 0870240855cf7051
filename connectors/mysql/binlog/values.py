"""Converts column values of the binary log to Arrow: numbers, decimals, times, texts; whole columns at once.

Source: the storage formats of MySQL and MariaDB (sql/field.cc, my_time.c, decimal.c), as dev.mysql.com "MySQL
Internals" describes them.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connect.api import DataError
from connectors.mysql.binlog.rows import Cells, Physical, decimal_bytes
from connectors.sql.mysql_rows import texts_over

__all__ = ["bits_of", "blobs", "dates", "datetimes", "decimals", "floats", "integers", "times", "timestamps", "years"]

Bytes = npt.NDArray[np.uint8]
Numbers = npt.NDArray[np.int64]
_DAY: Final = 86_400_000_000
_DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


def _gather(data: Bytes, begins: Numbers, size: int) -> npt.NDArray[np.uint8]:
    """A matrix with one row of ``size`` bytes per position."""
    made: Bytes = data[begins[:, None] + np.arange(size)]
    return made


def _big_endian(data: Bytes, begins: Numbers, size: int) -> Numbers:
    made = np.zeros(len(begins), np.int64)
    for i in range(size):
        made = made << 8 | data[begins + i]
    return made


def _little_endian(data: Bytes, begins: Numbers, size: int) -> Numbers:
    made = np.zeros(len(begins), np.int64)
    for i in range(size):
        made |= data[begins + i].astype(np.int64) << (8 * i)
    return made


def _array(values: npt.NDArray[Any], null: npt.NDArray[np.bool_], arrow: pa.DataType | None = None) -> pa.Array:
    return pa.array(values, arrow, mask=null if null.any() else None)


def integers(data: Bytes, cells: Cells, size: int, *, unsigned: bool) -> pa.Array:
    """int64; uint64 for eight unsigned bytes."""
    if size == 8:
        kind = "<u8" if unsigned else "<i8"
        return _array(_gather(data, cells.begins, 8).view(kind).ravel(), cells.null)
    values = _little_endian(data, cells.begins, size)
    if not unsigned:
        sign = 1 << (8 * size - 1)
        values = (values ^ sign) - sign
    return _array(values, cells.null)


def floats(data: Bytes, cells: Cells, size: int) -> pa.Array:
    return _array(_gather(data, cells.begins, size).view("<f4" if size == 4 else "<f8").ravel(), cells.null)


def years(data: Bytes, cells: Cells) -> pa.Array:
    values = data[cells.begins].astype(np.int64)
    return _array(np.where(values == 0, 0, values + 1900), cells.null)


def bits_of(data: Bytes, cells: Cells, size: int) -> pa.Array:
    """uint64."""
    made = np.zeros(len(cells.begins), np.uint64)
    for i in range(size):
        made = made << np.uint64(8) | data[cells.begins + i].astype(np.uint64)
    return _array(made, cells.null)


def blobs(data: bytes, cells: Cells) -> pa.Array:
    """Binary."""
    return texts_over(pa.py_buffer(data), cells.begins, cells.ends, cells.null)


def _civil(year: Numbers, month: Numbers, day: Numbers) -> Numbers:
    """Days since 1970-01-01 in the proleptic Gregorian calendar."""
    year = year - (month <= 2)
    era = np.floor_divide(year, 400)
    rest = year - era * 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    made: Numbers = era * 146097 + rest * 365 + rest // 4 - rest // 100 + of_year - 719468
    return made


def _no_date(month: Numbers, day: Numbers) -> npt.NDArray[np.bool_]:
    """Marks 0000-00-00 and dates with a month or day of 0, which only these servers have."""
    return (month < 1) | (month > 12) | (day < 1)


def dates(data: Bytes, cells: Cells) -> pa.Array:
    """Days since 1970-01-01 as int64; null for an invalid date."""
    packed = _little_endian(data, cells.begins, 3)
    day, month, year = packed & 31, packed >> 5 & 15, packed >> 9
    return _array(_civil(year, month, day), cells.null | _no_date(month, day))


def _fraction(data: Bytes, begins: Numbers, digits: int) -> Numbers:
    """Microseconds."""
    size = (digits + 1) // 2
    made: Numbers = _big_endian(data, begins, size) * np.int64(10 ** (6 - 2 * size))
    return made


def timestamps(data: Bytes, cells: Cells, column: Physical) -> pa.Array:
    """Microseconds since 1970 as int64; null for 0000-00-00."""
    if column.code == 7:
        seconds = _little_endian(data, cells.begins, 4)
        return _array(seconds * 1_000_000, cells.null | (seconds == 0))
    seconds = _big_endian(data, cells.begins, 4)
    micros = seconds * 1_000_000 + _fraction(data, cells.begins + 4, column.detail)
    return _array(micros, cells.null | (micros == 0))


def datetimes(data: Bytes, cells: Cells, column: Physical) -> pa.Array:
    """Microseconds since 1970-01-01 00:00 in local time, as int64; null for an invalid date."""
    if column.code == 12:
        packed = _little_endian(data, cells.begins, 8)
        date, clock = packed // 1_000_000, packed % 1_000_000
        year, month, day = date // 10000, date // 100 % 100, date % 100
        seconds = (clock // 10000 * 60 + clock // 100 % 100) * 60 + clock % 100
        micros = np.zeros(len(packed), np.int64)
    else:
        packed = _big_endian(data, cells.begins, 5) - 0x8000000000
        months, clock = packed >> 22, packed & 0x1FFFF
        year, month, day = months // 13, months % 13, packed >> 17 & 31
        seconds = ((clock >> 12) * 60 + (clock >> 6 & 63)) * 60 + (clock & 63)
        micros = _fraction(data, cells.begins + 5, column.detail)
    made = _civil(year, month, day) * _DAY + seconds * 1_000_000 + micros
    return _array(made, cells.null | _no_date(month, day))


def times(data: Bytes, cells: Cells, column: Physical) -> pa.Array:
    """Microseconds as int64; may be negative."""
    if column.code == 11:
        packed = _little_endian(data, cells.begins, 3)
        packed = (packed ^ 0x800000) - 0x800000
        size, clock = np.abs(packed), packed
        seconds = (size // 10000 * 60 + size // 100 % 100) * 60 + size % 100
        return _array(np.where(clock < 0, -seconds, seconds) * 1_000_000, cells.null)
    fraction = (column.detail + 1) // 2
    packed = _big_endian(data, cells.begins, 3 + fraction) - (1 << (8 * (3 + fraction) - 1))
    size = np.abs(packed)
    clock = size >> (8 * fraction)
    seconds = ((clock >> 12 & 0x3FF) * 60 + (clock >> 6 & 63)) * 60 + (clock & 63)
    micros = (size & ((1 << (8 * fraction)) - 1)) * 10 ** (6 - 2 * fraction)
    made = seconds * 1_000_000 + micros
    return _array(np.where(packed < 0, -made, made), cells.null)


def _groups(digits: int, *, leading: bool) -> list[int]:
    """The number of digits in each stored group on one side of the decimal point; the incomplete group is the
    outermost.
    """
    rest = [digits % 9] if digits % 9 else []
    return [*rest, *([9] * (digits // 9))] if leading else [*([9] * (digits // 9)), *rest]


def decimals(data: Bytes, cells: Cells, column: Physical) -> pa.Array:
    """decimal128 or decimal256 of the column's precision and scale."""
    precision, scale = column.detail & 0xFF, column.detail >> 8
    if not 0 <= scale <= precision <= 76 or not precision:
        raise DataError(f"the binary log holds a decimal of {precision} digits, {scale} of them after the point")
    groups = [*_groups(precision - scale, leading=True), *_groups(scale, leading=False)]
    size = decimal_bytes(precision - scale) + decimal_bytes(scale)
    raw = _gather(data, cells.begins, size)
    negative = raw[:, 0] < 0x80
    raw[:, 0] ^= 0x80
    raw[negative] ^= 0xFF
    wide = precision > 18
    value: npt.NDArray[Any] = np.zeros(len(raw), object if wide else np.int64)
    at = 0
    for digits in groups:
        part = np.zeros(len(raw), np.int64)
        for _ in range(_DIGIT_BYTES[digits]):
            part = part << 8 | raw[:, at]
            at += 1
        value = value * 10**digits + (part.astype(object) if wide else part)
    value = np.where(negative, -value, value)
    arrow = pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    width = 16 if precision <= 38 else 32
    if wide:
        limit = 10**precision
        memory = b"".join(
            v.to_bytes(width, "little", signed=True) if -limit < v < limit else bytes(width) for v in value
        )
    else:
        halves = np.empty((len(value), 2), np.int64)
        halves[:, 0], halves[:, 1] = value, value >> 63
        memory = halves.tobytes()
    validity = pa.py_buffer(np.packbits(~cells.null, bitorder="little")) if cells.null.any() else None
    return pa.Array.from_buffers(arrow, len(raw), [validity, pa.py_buffer(memory)])
