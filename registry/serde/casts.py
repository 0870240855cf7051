"""Casts columns to the Arrow types of their schema, and reads plain values from their buffers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from registry.serde.errors import UnencodableValue

__all__ = ["cast", "first_failing", "plain_values"]


def plain_values(column: pa.Array, kind: type[np.generic], width: int = 1) -> npt.NDArray[Any]:
    """The values of a fixed-width column with ``width`` items per row: one dimension for one item, otherwise a matrix.

    Values of null rows are arbitrary.
    """
    buffer, rows = column.buffers()[1], len(column)
    count = rows * width
    if buffer is None or not count:
        plain = np.zeros(count, kind)
    else:
        plain = np.frombuffer(buffer, kind, count, column.offset * width * np.dtype(kind).itemsize)
    return plain if width == 1 else plain.reshape(rows, width)


def cast(column: pa.Array, target: pa.DataType, path: str) -> pa.Array:
    """The column in the type of its schema, if that changes no value."""
    if column.type == target:
        return column
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_temporal(target) and pa.types.is_integer(column.type):
            # A plain number is Avro's underlying value in its own unit, which differs from Arrow's interpretation.
            return column.cast(pa.int32() if target.bit_width == 32 else pa.int64()).view(target)
        if pa.types.is_timestamp(target) and not pa.types.is_timestamp(column.type):
            raise pa.ArrowInvalid(f"{column.type} is no timestamp")
        return column.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        row = first_failing(column, target)
        raise UnencodableValue(f"{column.type} does not fit {target}: {error}", row=row, path=path) from error


def first_failing(column: pa.Array, target: pa.DataType) -> int | None:
    """The first row whose value can't be cast, found by bisection; None if no value can."""
    low, high = 0, len(column)
    try:
        column.slice(0, 0).cast(target)
    except pa.ArrowException:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        try:
            column.slice(low, middle - low).cast(target)
            low = middle
        except pa.ArrowException:
            high = middle
    return low
