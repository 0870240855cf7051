"""The offset index of a segment: for every few KiB of records, which offset lies where in the file.

An entry is Kafka's: the offset relative to the segment's base (u32) and the file position (u32), big-endian. The offset is the
last one of the batch that starts at the position, as Kafka's own tools check.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from pathlib import Path
from typing import Final

__all__ = ["ENTRY_SIZE", "OffsetIndex"]

ENTRY_SIZE: Final = 8


class OffsetIndex:
    """Entries in memory; ``save`` adds the new ones to the file. One thread at a time."""

    def __init__(self, path: Path, base_offset: int) -> None:
        self.path = path
        self._base = base_offset
        self._offsets = array("I")
        self._positions = array("I")
        self._saved = 0

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def size(self) -> int:
        """Bytes the entries take in the file."""
        return len(self._offsets) * ENTRY_SIZE

    def append(self, last_offset: int, position: int) -> None:
        self._offsets.append(last_offset - self._base)
        self._positions.append(position)

    def position_for(self, offset: int) -> int:
        """Where to start looking for ``offset``: at a batch that ends at it or before, or at the start of the file."""
        found = bisect_right(self._offsets, offset - self._base) - 1
        return self._positions[found] if found >= 0 else 0

    def position_at(self, position: int) -> int:
        """The start of the last indexed batch that lies at ``position`` or before, or the start of the file."""
        found = bisect_right(self._positions, position) - 1
        return self._positions[found] if found >= 0 else 0

    @property
    def last(self) -> tuple[int, int] | None:
        """The last entry as (offset, position)."""
        return (self._base + self._offsets[-1], self._positions[-1]) if self._positions else None

    def load(self, file_size: int) -> bool:
        """Read the file; False where it is absent or can't belong to a log of ``file_size`` bytes: then rebuild it."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return False
        entries = array("I")
        if len(data) % ENTRY_SIZE:
            return False
        entries.frombytes(data)
        if sys.byteorder == "little":
            entries.byteswap()
        offsets, positions = entries[0::2], entries[1::2]
        if not (_ascending(offsets) and _ascending(positions)) or (positions and positions[-1] >= file_size):
            return False
        self._offsets, self._positions = offsets, positions
        self._saved = len(offsets)
        return True

    def looks_whole(self) -> bool:
        """Whether the file is there with a whole number of entries."""
        try:
            return self.path.stat().st_size % ENTRY_SIZE == 0
        except FileNotFoundError:
            return False

    def clear(self) -> None:
        """Forget all entries; the file goes with the next ``save``."""
        self._offsets, self._positions = array("I"), array("I")
        self._saved = 0

    def save(self) -> None:
        """Bring the file up to date; durable only with a later fsync, which recovery does without."""
        count = len(self._offsets)
        if self._saved == count and self._saved:
            return
        entries = array("I", bytes((count - self._saved) * ENTRY_SIZE))
        entries[0::2] = self._offsets[self._saved :]
        entries[1::2] = self._positions[self._saved :]
        if sys.byteorder == "little":
            entries.byteswap()
        with self.path.open("ab" if self._saved else "wb") as file:
            file.write(entries.tobytes())
        self._saved = count


def _ascending(values: array[int]) -> bool:
    return all(map(int.__lt__, values, values[1:])) if len(values) > 1 else True
