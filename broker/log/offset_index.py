"""The offset index of a segment: maps an offset to a file position for every few KiB of records.

Entries have Kafka's format: the offset relative to the segment's base (u32) and the file position (u32), big-endian.
The offset is the last one of the batch that starts at the position; Kafka's own tools check that.
"""

from __future__ import annotations

import operator
import os
import sys
import threading
from array import array
from bisect import bisect_left, bisect_right
from pathlib import Path
from typing import Final

from broker.log.files import write_at

__all__ = ["ENTRY_SIZE", "OffsetIndex"]

ENTRY_SIZE: Final = 8


class OffsetIndex:
    """Entries in memory; ``save`` appends new ones to the file. Not thread-safe, except for ``save``."""

    __slots__ = ("_base", "_file", "_offsets", "_positions", "_saved", "_saving")

    def __init__(self, path: str | os.PathLike[str], base_offset: int) -> None:
        self._file = os.fspath(path)
        self._base = base_offset
        self._offsets = array("I")
        self._positions = array("I")
        self._saved = 0
        self._saving = threading.Lock()

    @property
    def path(self) -> Path:
        return Path(self._file)

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def size(self) -> int:
        """Size of the entries in the file, in bytes."""
        return len(self._positions) * ENTRY_SIZE

    @property
    def unsaved(self) -> int:
        """The number of entries that are not in the file."""
        return len(self._positions) - self._saved

    def append(self, last_offset: int, position: int) -> None:
        self._offsets.append(last_offset - self._base)
        self._positions.append(position)

    def position_for(self, offset: int) -> int:
        """The position to start the search for ``offset``: a batch that ends at it or before, or the start of the file."""
        result = bisect_right(self._offsets, offset - self._base) - 1
        return self._positions[result] if result >= 0 else 0

    def entry_at(self, position: int) -> tuple[int, int] | None:
        """The last entry, as (offset, position), of a batch at or before ``position``; None without one."""
        result = bisect_right(self._positions, position) - 1
        return (self._base + self._offsets[result], self._positions[result]) if result >= 0 else None

    def offset_behind(self, position: int) -> int | None:
        """The offset of the first entry of a batch at or after ``position``; None without one."""
        result = bisect_left(self._positions, position)
        return self._base + self._offsets[result] if result < len(self._positions) else None

    @property
    def last(self) -> tuple[int, int] | None:
        """The last entry as (offset, position)."""
        return (self._base + self._offsets[-1], self._positions[-1]) if self._positions else None

    def load(self, file_size: int) -> bool:
        """Read the file. False if it is absent or can't belong to a log of ``file_size`` bytes; rebuild it then.

        Trailing zeros, preallocated by an Apache Kafka that was killed, are ignored.
        """
        try:
            with open(self._file, "rb", buffering=0) as file:  # noqa: PTH123 - Path.open costs as much as the read
                data = file.read()
        except FileNotFoundError:
            return False
        if len(data) % ENTRY_SIZE:
            return False
        filled = data
        if data[-ENTRY_SIZE:] == bytes(ENTRY_SIZE):
            kept = -(-len(data.rstrip(b"\0")) // ENTRY_SIZE) * ENTRY_SIZE
            filled = data[:kept]
        entries = array("I")
        entries.frombytes(filled)
        if sys.byteorder == "little":
            entries.byteswap()
        offsets, positions = entries[0::2], entries[1::2]
        if positions and not (_ascending(offsets) and _ascending(positions) and positions[-1] < file_size):
            return False
        if len(filled) < len(data):
            os.truncate(self._file, len(filled))
        self._offsets, self._positions = offsets, positions
        self._saved = len(offsets)
        return True

    def looks_whole(self) -> bool:
        """Whether the file exists with a whole number of entries."""
        try:
            return os.stat(self._file).st_size % ENTRY_SIZE == 0  # noqa: PTH116 - as above
        except FileNotFoundError:
            return False

    def clear(self) -> None:
        """Drop all entries; the next ``save`` empties the file."""
        self._offsets, self._positions = array("I"), array("I")
        self._saved = 0

    def drop_from(self, offset: int) -> None:
        """Drop the entries of ``offset`` and above, from the file too."""
        kept = bisect_left(self._offsets, max(offset - self._base, 0))
        del self._offsets[kept:]
        del self._positions[kept:]
        if self._saved > kept:
            os.truncate(self._file, kept * ENTRY_SIZE)
            self._saved = kept

    def save(self) -> None:
        """Write new entries to the file; durable only with a later fsync. Thread-safe."""
        with self._saving:
            count = len(self._positions)  # positions are appended after offsets, so there are at least as many offsets
            if self._saved == count and self._saved:
                return
            entries = array("I", bytes((count - self._saved) * ENTRY_SIZE))
            entries[0::2] = self._offsets[self._saved : count]
            entries[1::2] = self._positions[self._saved : count]
            if sys.byteorder == "little":
                entries.byteswap()
            write_at(self._file, entries.tobytes(), self._saved * ENTRY_SIZE)
            self._saved = count


def _ascending(values: array[int]) -> bool:
    return all(map(operator.lt, values, values[1:]))
