"""Positions in many Avro records, and reads of numbers and bytes from all of them at once.

A read is a few vector operations over all rows: most numbers fit into the eight bytes from each row's position. Every
read is checked against the row's end, so that data that contradicts its schema gives an error with row and field.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from registry.serde.checking import Budget
from registry.serde.errors import CorruptRecord

__all__ = ["Bytes", "Cursor", "Ints", "Mask", "Words", "gather", "packed", "spread_bits", "words_at"]

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]

_HIGH: Final = np.uint64(0x8080808080808080)
_ONES: Final = np.uint64(0x0101010101010101)
_LOW: Final = np.uint64(0x7F7F7F7F7F7F7F7F)
_PACKING: Final = tuple(
    (np.uint64(keep), np.uint64(move), np.uint64(by))
    for keep, move, by in (
        (0x007F007F007F007F, 0x7F007F007F007F00, 1),
        (0x00003FFF00003FFF, 0x3FFF00003FFF0000, 2),
        (0x000000000FFFFFFF, 0x0FFFFFFF00000000, 4),
    )
)
_ONE: Final = np.uint64(1)


def packed(mask: Mask | None) -> pa.Buffer | None:
    """A mask as Arrow's validity bits."""
    return None if mask is None else pa.py_buffer(np.packbits(mask, bitorder="little"))


def spread_bits(mask: Mask) -> pa.Array:
    """For each row its rank among the selected ones, null if it is not selected: the indices with which ``take``
    restores positions.
    """
    return pa.array(np.maximum(np.cumsum(mask) - 1, 0), mask=~mask)


def gather(data: Bytes, position: Ints, width: int) -> npt.NDArray[np.void]:
    """``width`` bytes from each position, which must be within the data."""
    if len(data) < width:
        data = np.concatenate([data, np.zeros(width - len(data), np.uint8)])
    # Numpy copies items of any width from any position if it is told that the items overlap.
    items = np.ndarray((len(data) - width + 1,), f"V{width}", buffer=data, strides=(1,))
    gathered: npt.NDArray[np.void] = items[position]
    return gathered


def words_at(data: Bytes, position: Ints) -> Words:
    """The eight bytes from each position on, lowest first, with zeros after the end of the data."""
    last = len(data) - 8
    if last >= 0 and (not len(position) or int(position.max()) <= last):
        return gather(data, position, 8).view(np.uint64)
    over = np.maximum(position - max(last, 0), 0)
    words: Words = gather(data, position - over, 8).view(np.uint64)
    words >>= (over << 3).view(np.uint64)
    return words


class Cursor:
    """Rows of one data buffer, each with its read position and its end.

    With a mask ``present``, only those rows are read: the others keep their position, and read as 0 or no bytes.
    """

    __slots__ = ("budget", "data", "end", "position", "present", "rows")

    def __init__(
        self, data: Bytes, position: Ints, end: Ints, rows: Ints, budget: Budget, present: Mask | None = None
    ) -> None:
        self.data, self.position, self.end, self.rows, self.budget = data, position, end, rows, budget
        self.present = present

    def __len__(self) -> int:
        return len(self.position)

    @property
    def validity(self) -> pa.Buffer | None:
        return packed(self.present)

    def part(self, chosen: Any) -> Cursor:
        """A cursor of some of the rows. Pass it to ``advance`` after reading."""
        return Cursor(self.data, self.position[chosen], self.end[chosen], self.rows[chosen], self.budget)

    def advance(self, chosen: Any, part: Cursor) -> None:
        self.position[chosen] = part.position

    def among(self, present: Mask) -> Cursor:
        """A cursor of all rows that reads only some of them. Use its ``position`` after reading."""
        return Cursor(self.data, self.position, self.end, self.rows, self.budget, present)

    def check(self, good: Mask, path: str, reason: str | Callable[[int], str]) -> None:
        if good.all():
            return
        if self.present is not None:
            good = good | ~self.present
            if good.all():
                return
        at = int(good.argmin())
        raise CorruptRecord(reason if isinstance(reason, str) else reason(at), row=int(self.rows[at]), path=path)

    def _step(self, by: int | Ints) -> None:
        self.position = self.position + (by if self.present is None else by * self.present)

    def words(self, position: Ints) -> Words:
        """The eight bytes from each position on, lowest first, with zeros after the end of all data."""
        return words_at(self.data, position)

    def take(self, width: int, path: str) -> npt.NDArray[np.void]:
        """The next ``width`` bytes of each row."""
        self.check(self.position + width <= self.end, path, f"the record ends within the {width} bytes of the value")
        position = self.position
        if self.present is not None:
            position = np.minimum(position, max(len(self.data) - width, 0))
        taken = gather(self.data, position, width)
        self._step(width)
        return taken

    def octets(self, path: str) -> Bytes:
        """The next byte of each row."""
        self.check(self.position < self.end, path, "the record ends within the 1 bytes of the value")
        return self._first()

    def _first(self) -> Bytes:
        first: Bytes = self.data.take(self.position, mode="clip")
        if self.present is not None:
            first *= self.present
        self._step(1)
        return first

    def varints(self, path: str) -> Ints:
        """The next zigzag number of each row."""
        self.check(self.position < self.end, path, "the record ends where a number should begin")
        start = self.position
        first = self._first()
        more = first >= 0x80
        if not more.any():
            return _unzigzag(first.astype(np.uint64))
        open_ = np.flatnonzero(more)
        if 2 * len(open_) < len(first):
            value = first.astype(np.uint64)
            value[open_], length = self._long(start[open_], open_, path)
            self.position[open_] += length - 1
        else:
            value, length = self._long(start, None, path)
            if self.present is not None:
                value *= self.present
                length *= self.present
            self.position = start + length
        self.check(self.position <= self.end, path, "the record ends within a number")
        return _unzigzag(value)

    def _long(self, start: Ints, rows: Ints | None, path: str) -> tuple[Words, Ints]:
        """The raw zigzag numbers at some positions, of ``rows`` or all, and the length of each in bytes."""
        words = self.words(start)
        stop = ~words & _HIGH
        lowest = stop & (~stop + _ONE)
        # All bits up to the first byte without a high bit; all bits if there is none.
        within = lowest ^ (lowest - _ONE)
        words &= within
        words &= _LOW
        for keep, move, by in _PACKING:
            moved = words & move
            moved >>= by
            words &= keep
            words |= moved
        length: Ints = (((within & _ONES) * _ONES) >> np.uint64(56)).view(np.int64)
        if not lowest.all():
            wide = np.flatnonzero(lowest == 0)
            if self.present is not None and rows is None:
                wide = wide[self.present[wide]]
            self._widest(words, length, start, wide, wide if rows is None else rows[wide], path)
        return words, length

    def _widest(self, value: Words, length: Ints, start: Ints, wide: Ints, rows: Ints, path: str) -> None:
        """Add the ninth and tenth bytes of numbers."""
        for offset in (8, 9):
            if not len(wide):
                return
            tail = Cursor(self.data, start[wide] + offset, self.end[rows], self.rows[rows], self.budget)
            tail.check(tail.position < tail.end, path, "the record ends within a number")
            byte = self.data[tail.position]
            if offset == 9:
                tail.check(byte <= 1, path, "a number is wider than 64 bits")
            value[wide] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * offset)
            length[wide] = offset + 1
            further = byte >= 0x80
            wide, rows = wide[further], rows[further]

    def extents(self, path: str) -> tuple[Ints, Ints]:
        """The start and length of the next length-prefixed bytes of each row."""
        lengths = self.varints(path)
        self.check(lengths >= 0, path, lambda at: f"a length of {lengths[at]}")
        start = self.position
        # Not start + length <= end: a length near 2^63 would wrap.
        room = self.end - start
        self.check(lengths <= room, path, lambda at: f"a length of {lengths[at]} where {room[at]} bytes are left")
        self.position = start + lengths
        return start, lengths

    def strings(self, path: str) -> tuple[pa.Buffer, pa.Buffer]:
        """The next length-prefixed bytes of each row: offsets and data in Arrow's layout."""
        start, _ = self.extents(path)
        count = len(start)
        if not count:
            return pa.py_buffer(np.zeros(1, np.int32)), pa.py_buffer(b"")
        # Rows are consecutive in the buffer, so values and the gaps between them form one array of segments; every
        # second one is a value.
        bounds = np.empty(2 * count + 1, np.int32)
        bounds[0:-1:2] = start
        bounds[1::2] = self.position
        bounds[-1] = self.position[-1]
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.data)]
        segments = pa.Array.from_buffers(pa.binary(), 2 * count, buffers)
        _, offsets, data = segments.take(pa.array(np.arange(0, 2 * count, 2))).buffers()
        return offsets, data if data is not None else pa.py_buffer(b"")


def _unzigzag(value: Words) -> Ints:
    sign = value & _ONE
    value >>= _ONE
    decoded: Ints = value.view(np.int64)
    decoded ^= -sign.view(np.int64)
    return decoded
