"""Sums of hashes of rows on two sides: where two sums are equal, both sides have the same rows, and none is looked at by itself.

Rows go into buckets by their hash, and each bucket has a sum for each side. A row that only one side has makes the sums of its
bucket differ, so only the rows of such buckets are compared one by one.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["RowDigests", "in_buckets", "row_hashes"]

_BUCKET_BITS: Final = 20
_SHIFT: Final = np.uint64(64 - _BUCKET_BITS)
_SLICE: Final = 8192
"""Rows that are hashed at once, so that the arrays fit into the processor's cache."""
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_NULL: Final = np.uint64(0x6A09E667F3BCC909)

Hashes = npt.NDArray[np.uint64]


class RowDigests:
    """Rows may come in any order and in batches of any size."""

    def __init__(self) -> None:
        self._sums = np.zeros((2, 1 << _BUCKET_BITS), np.uint64)
        self._counts = [0, 0]

    def add(self, side: int, part: str, rows: pa.RecordBatch) -> None:
        """Add rows of ``part``, which may be a table."""
        for hashes in _sliced(part, rows):
            np.add.at(self._sums[side], hashes >> _SHIFT, _mixed(hashes))
        self._counts[side] += len(rows)

    def count(self, side: int) -> int:
        return self._counts[side]

    def differing(self) -> npt.NDArray[np.bool_]:
        """For each bucket, whether it differs."""
        different: npt.NDArray[np.bool_] = self._sums[0] != self._sums[1]
        return different


def in_buckets(part: str, rows: pa.RecordBatch, buckets: npt.NDArray[np.bool_]) -> pa.Array:
    """For each row, whether it is in one of ``buckets``."""
    return pa.array(
        np.concatenate([buckets[hashes >> _SHIFT] for hashes in _sliced(part, rows)] or [np.zeros(0, bool)])
    )


def _sliced(part: str, rows: pa.RecordBatch) -> list[Hashes]:
    salt = _salt(part)
    return [_mixed(row_hashes(rows.slice(start, _SLICE)) ^ salt) for start in range(0, len(rows), _SLICE)]


def row_hashes(rows: pa.RecordBatch) -> Hashes:
    """Rows with the same values in columns of the same names have the same hash; nulls and the order of columns don't count."""
    made = np.zeros(len(rows), np.uint64)
    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        cells = _mixed(_hashed(column) ^ _salt(name))
        if column.null_count:
            cells = np.where(_valid(column), cells, np.uint64(0))
        made += cells
    return made


_SEED: Final = secrets.randbits(64)
"""Nobody can make rows with equal hashes who does not know it."""


def _mixed(numbers: Hashes) -> Hashes:
    """The last steps of SplitMix64."""
    numbers = (numbers ^ (numbers >> np.uint64(30))) * _FIRST
    numbers = (numbers ^ (numbers >> np.uint64(27))) * _SECOND
    return numbers ^ (numbers >> np.uint64(31))


def _salt(name: str) -> np.uint64:
    return np.uint64(hash((_SEED, name)) & 0xFFFFFFFFFFFFFFFF)


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    valid: npt.NDArray[np.bool_] = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _hashed(column: pa.Array) -> Hashes:
    """Values with another ``repr`` have another hash. A value that is null has that of a null."""
    kind = column.type
    hashed = _hasher(kind)
    if hashed is None:  # each value by itself
        numbers = [hash(repr(value)) & 0xFFFFFFFFFFFFFFFF for value in column.to_pylist()]
        return np.array(numbers, np.uint64)
    made = hashed(column)
    return np.where(_valid(column), made, _NULL) if column.null_count else made


def _hasher(kind: pa.DataType) -> Callable[[pa.Array], Hashes] | None:
    types = pa.types
    if types.is_boolean(kind):
        return _booleans
    if types.is_integer(kind):
        return _integers
    if types.is_floating(kind):
        return _floats
    if types.is_temporal(kind) and not types.is_interval(kind):
        return _times
    if types.is_decimal(kind):
        return _decimals
    if _is_text(kind):
        return _texts
    if types.is_list(kind) or types.is_large_list(kind) or types.is_map(kind):
        return _lists
    if types.is_struct(kind):
        return _structs
    return None


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind)
    )


def _zeroed(column: pa.Array) -> pa.Array:
    """A column of fixed width without nulls."""
    return pc.fill_null(column, 0) if column.null_count else column


def _integers(column: pa.Array) -> Hashes:
    if pa.types.is_unsigned_integer(column.type):
        unsigned: Any = _zeroed(column).cast(pa.uint64()).to_numpy(zero_copy_only=False)
        return _mixed(unsigned ^ _salt("unsigned"))
    numbers: Any = _zeroed(column).cast(pa.int64()).to_numpy(zero_copy_only=False)
    return _mixed(numbers.view(np.uint64) + _STEP)


def _booleans(column: pa.Array) -> Hashes:
    numbers: Any = _zeroed(column.cast(pa.uint8())).to_numpy(zero_copy_only=False)
    return _mixed(numbers.astype(np.uint64) ^ _salt("boolean"))


def _floats(column: pa.Array) -> Hashes:
    numbers: Any = _zeroed(column.cast(pa.float64())).to_numpy(zero_copy_only=False)
    numbers = np.where(np.isnan(numbers), np.nan, numbers)
    return _mixed(np.ascontiguousarray(numbers).view(np.uint64) ^ _salt("float"))


def _times(column: pa.Array) -> Hashes:
    numbers: Any = _zeroed(column.cast(pa.int32() if column.type.bit_width == 32 else pa.int64()).cast(pa.int64()))
    return _mixed(numbers.to_numpy(zero_copy_only=False).view(np.uint64) ^ _salt(str(column.type)))


def _decimals(column: pa.Array) -> Hashes:
    return _texts(column.cast(pa.string())) ^ _salt("decimal")


def _texts(column: pa.Array) -> Hashes:
    """Python's hash of bytes: it takes a call for each value, and is fast for long ones."""
    binary = pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)
    values = column.cast(pa.large_binary()).to_pylist()
    numbers = np.fromiter(map(hash, values), np.int64, len(values)).view(np.uint64)
    return _mixed(numbers ^ _salt("bytes" if binary else "text"))


def _lists(column: pa.Array) -> Hashes:
    is_map = pa.types.is_map(column.type)
    if not len(column):
        return np.zeros(0, np.uint64)
    bounds = np.asarray(column.offsets.to_numpy(zero_copy_only=False), np.int64)
    first, count = int(bounds[0]), int(bounds[-1] - bounds[0])
    if is_map:
        keys, values = column.keys.slice(first, count), column.items.slice(first, count)
        items = _mixed(_hashed(keys) ^ _salt("key")) + _hashed(values)
    else:
        items = _hashed(column.values.slice(first, count))
    starts, lengths = bounds[:-1] - first, np.diff(bounds)
    positions = np.arange(count, dtype=np.int64) - np.repeat(starts, lengths)
    each = _mixed(items + positions.view(np.uint64) * _STEP)
    summed = np.concatenate([np.zeros(1, np.uint64), np.cumsum(each)])
    sums = summed[starts + lengths] - summed[starts]
    return _mixed(sums ^ (lengths.view(np.uint64) * _STEP) ^ _salt("map" if is_map else "list"))


def _structs(column: pa.Array) -> Hashes:
    made = np.full(len(column), _salt("struct"))
    for field, cells in zip(column.type, column.flatten(), strict=True):
        made += _mixed(_hashed(cells) ^ _salt(field.name))
    return _mixed(made)
