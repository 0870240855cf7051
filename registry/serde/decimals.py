"""Converts decimals between Avro's big-endian two's complement of any length and Arrow's 128 or 256 bits."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from registry.serde.casts import plain_values
from registry.serde.cursor import Bytes, Cursor, Ints, Mask, gather
from registry.serde.errors import CorruptRecord, UnencodableValue
from registry.serde.pieces import Long, Piece, Short, fixed, masked, varints

__all__ = ["decimal_pieces", "fixed_decimal_pieces", "read_decimal", "read_fixed_decimal"]


def read_decimal(cursor: Cursor, arrow: pa.DataType, path: str) -> pa.Array:
    """The next length-prefixed decimal of each row. More digits than its type has are an error."""
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
    taken = gather(cursor.data, np.maximum(end - width, 0), width).view(np.uint8).reshape(-1, width)
    inside = np.arange(width) >= (width - shown).reshape(-1, 1)
    sign = cursor.data.take(start, mode="clip") >= 0x80
    sign &= lengths > 0
    aligned = np.where(inside, taken, np.where(sign, np.uint8(0xFF), np.uint8(0)).reshape(-1, 1))
    limit = 10**arrow.precision
    # The few that begin before the matrix, and those with more bytes than the type: one by one.
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


def decimal_pieces(column: pa.Array, present: Mask | None) -> list[Piece]:
    """Decimals as the fewest bytes that keep the sign, like Java's BigInteger."""
    numbers = _numbers(column, present)
    if numbers is None:
        return _wide_pieces(column, present)
    magnitude = numbers ^ (numbers >> 63)
    lengths = np.ones(len(numbers), np.int64)
    most = (int(magnitude.max()).bit_length() if len(magnitude) else 0) // 8 + 1
    for digit in range(1, most):
        lengths += magnitude >= 1 << (8 * digit - 1)
    words = (numbers << (64 - (lengths << 3))).byteswap().view(np.uint64)
    return [*varints(lengths, present), masked(Short(words, lengths, 1, most), present)]


def _numbers(column: pa.Array, present: Mask | None) -> Ints | None:
    """The unscaled values, if all fit into 64 bits."""
    words = plain_values(column, np.int64, column.type.bit_width // 64)
    low: Ints = np.ascontiguousarray(words[:, 0])
    fits = (words[:, 1:] == (low >> 63).reshape(-1, 1)).all(axis=1)
    if present is not None:
        fits |= ~present
    return low if fits.all() else None


def _big_endian(column: pa.Array) -> Bytes:
    """Unscaled values as two's complement, highest byte first."""
    return plain_values(column, np.uint8, column.type.bit_width // 8)[:, ::-1]


def _wide_pieces(column: pa.Array, present: Mask | None) -> list[Piece]:
    data = _big_endian(column)
    width = data.shape[1]
    negative = data[:, :1] >= 0x80
    meaningful = data != np.where(negative, np.uint8(0xFF), np.uint8(0))
    first = np.where(meaningful.any(axis=1), meaningful.argmax(axis=1), width - 1)
    # The first remaining byte must show the sign; if its top bit does not, one more sign byte is needed.
    shown = data[np.arange(len(data)), first] >= 0x80
    first = first - ((shown != negative[:, 0]) & (first > 0))
    kept = np.arange(width) >= first.reshape(-1, 1)
    lengths = (width - first).astype(np.int64)
    offsets = np.zeros(len(data) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    return [*varints(lengths, present), Long(offsets, pa.py_buffer(data[kept]), present)]


def fixed_decimal_pieces(column: pa.Array, size: int, present: Mask | None, path: str) -> list[Piece]:
    numbers = _numbers(column, present)
    if numbers is not None and size <= 8:
        over = numbers >> (8 * size - 1)
        _check_fits((over == 0) | (over == -1), present, size, path)
        words = (numbers << (64 - 8 * size)).byteswap().view(np.uint64)
        return [masked(Short(words, size, size, size), present)]
    data = _big_endian(column)
    width = data.shape[1]
    sign = np.where(data[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    if size >= width:
        filled = np.broadcast_to(sign, (len(data), size - width))
        return fixed(np.concatenate([filled, data], axis=1), present)
    cut, kept = data[:, : width - size], data[:, width - size :]
    _check_fits((cut == sign).all(axis=1) & ((kept[:, 0] >= 0x80) == (sign[:, 0] == 0xFF)), present, size, path)
    return fixed(kept, present)


def _check_fits(good: Mask, present: Mask | None, size: int, path: str) -> None:
    if present is not None:
        good = good | ~present
    if not good.all():
        raise UnencodableValue(f"the decimal needs more than {size} bytes", row=int(good.argmin()), path=path)
