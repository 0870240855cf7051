"""Finds the row images of the binary log in the bytes, and then the values of each column, for all rows at once.

An image is a bitmap of nulls followed by the values that are not null, without a total length. So images are found by
stepping over their values, which only requires reading the lengths of variable-length values; everything else is done
per column.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from connect.api import DataError
from connectors.mysql.binlog.events import TableMap

__all__ = ["PADDING", "Cells", "ImageLayout", "Physical", "image_starts", "physical_columns"]

PADDING: Final = 64
"""Bytes that must follow the last image, so that a null at its end can be read like a value."""

Numbers = npt.NDArray[np.int64]

_FIXED: Final = {1: 1, 2: 2, 3: 4, 4: 4, 5: 8, 6: 0, 7: 4, 8: 8, 9: 3, 10: 3, 11: 3, 12: 8, 13: 1, 14: 3}
_DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)


class Physical(NamedTuple):
    """The storage format of a column: its real type, its size in bytes, or the size of the length before it
    (``prefix``).

    ``detail`` depends on the type: digits after the second, packed precision and scale, bits, a string's length.
    """

    code: int
    size: int
    prefix: int
    detail: int


def decimal_bytes(digits: int) -> int:
    """The number of bytes for this many digits on one side of the decimal point."""
    return digits // 9 * 4 + _DIGIT_BYTES[digits % 9]


def _physical(code: int, meta: int) -> Physical:
    if code in _FIXED:
        return Physical(code, _FIXED[code], 0, meta)
    if code in (17, 18, 19):  # TIMESTAMP, DATETIME, TIME with fractions
        return Physical(code, {17: 4, 18: 5, 19: 3}[code] + (meta + 1) // 2, 0, meta)
    if code in (140, 141):
        raise DataError(
            "the binary log holds columns that are COMPRESSED, which are not read here: alter or leave them out"
        )
    if code in (15, 253):
        return Physical(code, 0, 1 if meta < 256 else 2, meta)
    if code == 16:
        bits = (meta >> 8) * 8 + (meta & 0xFF)
        return Physical(code, (bits + 7) // 8, 0, bits)
    if code == 246:
        precision, scale = meta & 0xFF, meta >> 8
        return Physical(code, decimal_bytes(precision - scale) + decimal_bytes(scale), 0, meta)
    if code in (247, 248):
        return Physical(code, meta >> 8, 0, 0)
    if code == 254:
        real, length = meta & 0xFF, meta >> 8
        if real in (247, 248):
            return Physical(real, length, 0, 0)
        if real & 0x30 != 0x30:  # lengths over 255 borrow two bits of the type
            length |= ((real & 0x30) ^ 0x30) << 4
            real |= 0x30
        return Physical(real, 0, 1 if length < 256 else 2, length)
    if code in (242, 245, 249, 250, 251, 252, 255):
        if not 1 <= meta <= 4:
            raise DataError(f"the binary log counts a value by {meta} bytes")
        return Physical(code, 0, meta, meta)
    raise DataError(f"the binary log holds columns of type {code}, which is not known here")


def physical_columns(table: TableMap) -> tuple[Physical, ...]:
    return tuple(_physical(code, meta) for code, meta in zip(table.types, table.metadata, strict=True))


class Cells(NamedTuple):
    """Start and end of each value of a column; equal for a null."""

    begins: Numbers
    ends: Numbers
    null: npt.NDArray[np.bool_]


class ImageLayout:
    """The layout of images with certain columns of a table.

    ``present`` are the indices of these columns in the table.
    """

    def __init__(self, columns: Sequence[Physical], bitmap: bytes) -> None:
        self.present = tuple(at for at in range(len(columns)) if bitmap[at >> 3] >> (at & 7) & 1)
        if not self.present:
            raise DataError("an event of the binary log holds rows without columns")
        self._columns = tuple(columns[at] for at in self.present)
        self._null_bytes = (len(self.present) + 7) // 8
        self._plans: dict[bytes, tuple[list[tuple[int, int]], int]] = {}

    def _plan(self, nulls: bytes) -> tuple[list[tuple[int, int]], int]:
        """For images with these nulls: the bytes to step over before each variable-length value, and after the last."""
        steps, skip = [], self._null_bytes
        for i, column in enumerate(self._columns):
            if nulls[i >> 3] >> (i & 7) & 1:
                continue
            if column.prefix:
                steps.append((skip, column.prefix))
                skip = 0
            else:
                skip += column.size
        if len(self._plans) > 1000:  # wide tables with nulls anywhere
            self._plans.clear()
        self._plans[nulls] = steps, skip
        return steps, skip

    def end(self, data: bytes, at: int) -> int:
        """The end of the image that begins at ``at``. Raises IndexError beyond the data."""
        nulls = data[at : at + self._null_bytes]
        steps, rest = self._plans.get(nulls) or self._plan(nulls)
        for skip, prefix in steps:
            at += skip
            if prefix == 1:
                at += 1 + data[at]
            elif prefix == 2:
                at += 2 + (data[at] | data[at + 1] << 8)
            else:
                at += prefix + int.from_bytes(data[at : at + prefix], "little")
        return at + rest

    def cells(self, data: npt.NDArray[np.uint8], starts: Numbers) -> list[Cells]:
        """The positions of each present column's values in these images.

        ``data`` must have PADDING bytes after the images.
        """
        at = starts + self._null_bytes
        made = []
        for i, column in enumerate(self._columns):
            null = (data[starts + (i >> 3)] >> (i & 7) & 1).astype(np.bool_)
            begins = at
            if column.prefix:
                lengths = data[at].astype(np.int64)
                for byte in range(1, column.prefix):
                    lengths |= data[at + byte].astype(np.int64) << (8 * byte)
                begins = at + column.prefix
                at = begins + lengths
            else:
                at = at + column.size
            if null.any():
                nowhere = begins - column.prefix
                begins, at = np.where(null, nowhere, begins), np.where(null, nowhere, at)
            made.append(Cells(begins, at, null))
        return made


def image_starts(data: bytes, start: int, end: int, layouts: Sequence[ImageLayout]) -> list[int]:
    """The starts of the images between two positions; the layouts alternate for the images of an update.

    Raises DataError where they do not fit.
    """
    starts: list[int] = []
    at = start
    try:
        if len(layouts) == 1:
            following = layouts[0].end
            while at < end:
                starts.append(at)
                at = following(data, at)
        else:
            before, after = (layout.end for layout in layouts)
            while at < end:
                starts.append(at)
                at = before(data, at)
                starts.append(at)
                at = after(data, at)
    except IndexError:
        at = end + 1
    if at != end:
        raise DataError("an event of the binary log holds rows that do not fit its table")
    return starts
