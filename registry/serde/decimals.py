"""Decimals between Avro's big-endian two's complement of any length and Arrow's words of 128 or 256 bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from registry.serde.cursor import Cursor, Ints
from registry.serde.errors import CorruptRecord

__all__ = ["read_decimal", "read_fixed_decimal"]


def read_decimal(cursor: Cursor, arrow: pa.DataType, path: str) -> pa.Array:
    """The next length-prefixed decimal of each row; one with more digits than its type has is an error."""
    start, lengths = cursor.extents(path)
    return _decimals(cursor, start, lengths, arrow, path)


def read_fixed_decimal(cursor: Cursor, size: int, arrow: pa.DataType, path: str) -> pa.Array:
    start = cursor.position
    cursor.check(start + size <= cursor.end, path, f"the record ends within the {size} bytes of the value")
    lengths = np.full(len(start), size)
    if cursor.present is not None:
        lengths *= cursor.present
    cursor.position = start + lengths
    return _decimals(cursor, start, lengths, arrow, path)


def _decimals(cursor: Cursor, start: Ints, lengths: Ints, arrow: pa.DataType, path: str) -> pa.Array:
    if len(lengths) and int(lengths.max()) > 8:
        return _wide(cursor, start, lengths, arrow, path)
    words = cursor.words(start).byteswap().view(np.int64)
    words >>= 64 - 8 * lengths
    if len(lengths) and not lengths.all():
        words *= lengths > 0
    if arrow.precision < 19:
        limit = 10**arrow.precision
        cursor.check((words < limit) & (words > -limit), path, _too_long(lengths, arrow))
    spread = np.empty((len(words), arrow.bit_width // 64), np.int64)
    spread[:, 0] = words
    spread[:, 1:] = (words >> 63).reshape(-1, 1)
    return pa.Array.from_buffers(arrow, len(words), [cursor.validity, pa.py_buffer(spread)])


def _too_long(lengths: Ints, arrow: pa.DataType) -> Callable[[int], str]:
    return lambda at: f"a decimal of {lengths[at]} bytes, more than {arrow.precision} digits"


def _wide(cursor: Cursor, start: Ints, lengths: Ints, arrow: pa.DataType, path: str) -> pa.Array:
    """Decimals of any length, right-aligned in a matrix as wide as the type."""
    width = arrow.bit_width // 8
    end, shown = start + lengths, np.minimum(lengths, width)
    taken = cursor.gather(np.maximum(end - width, 0), width).view(np.uint8).reshape(-1, width)
    inside = np.arange(width) >= (width - shown).reshape(-1, 1)
    sign = cursor.data.take(start, mode="clip") >= 0x80
    sign &= lengths > 0
    aligned = np.where(inside, taken, np.where(sign, np.uint8(0xFF), np.uint8(0)).reshape(-1, 1))
    limit = 10**arrow.precision
    # The few that begin before the matrix does, and those with more bytes than the type has: one by one.
    for at in np.flatnonzero((end < width) | (lengths > width)).tolist():
        number = int.from_bytes(cursor.data[start[at] : end[at]].tobytes(), "big", signed=True)
        if not -limit < number < limit:
            raise CorruptRecord(_too_long(lengths, arrow)(at), row=int(cursor.rows[at]), path=path)
        aligned[at] = np.frombuffer(number.to_bytes(width, "big", signed=True), np.uint8)
    data = pa.py_buffer(np.ascontiguousarray(aligned[:, ::-1]))
    made = pa.Array.from_buffers(arrow, len(aligned), [cursor.validity, data])
    try:
        made.validate(full=True)
    except pa.ArrowInvalid as error:
        at = _first_invalid(made)
        raise CorruptRecord(_too_long(lengths, arrow)(at), row=int(cursor.rows[at]), path=path) from error
    return made


def _first_invalid(made: pa.Array) -> int:
    for at in range(len(made)):
        try:
            made.slice(at, 1).validate(full=True)
        except pa.ArrowInvalid:
            return at
    raise AssertionError("every value is valid")
