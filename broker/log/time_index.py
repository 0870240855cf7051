"""The time index of a segment: the largest timestamp so far, and the last offset of the first batch that has it.

An entry is Kafka's: timestamp (i64) and offset relative to the segment's base (u32), big-endian; timestamps ascend strictly.
"""

from __future__ import annotations

import itertools
import struct
from array import array
from bisect import bisect_left
from pathlib import Path
from typing import Final

__all__ = ["TimeIndex"]

_ENTRY: Final = struct.Struct(">qI")


class TimeIndex:
    """Entries in memory; ``save`` adds the new ones to the file. One thread at a time."""

    def __init__(self, path: Path, base_offset: int) -> None:
        self.path = path
        self._base = base_offset
        self._timestamps = array("q")
        self._offsets = array("I")
        self._saved = 0

    def __len__(self) -> int:
        return len(self._timestamps)

    @property
    def last(self) -> tuple[int, int] | None:
        """The last entry as (timestamp, offset)."""
        return (self._timestamps[-1], self._base + self._offsets[-1]) if self._timestamps else None

    def append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry if it is later than the last one, in both parts; otherwise there is nothing to add."""
        if timestamp_ms < 0:
            return
        relative = offset - self._base
        if self._timestamps and (timestamp_ms <= self._timestamps[-1] or relative < self._offsets[-1]):
            return
        self._timestamps.append(timestamp_ms)
        self._offsets.append(relative)

    def offset_before(self, timestamp_ms: int) -> int:
        """An offset up to which every record is older than ``timestamp_ms``; the segment's base where none is known."""
        found = bisect_left(self._timestamps, timestamp_ms) - 1
        return self._base + (self._offsets[found] if found >= 0 else 0)

    def load(self) -> bool:
        """Read the file; False where it is absent or damaged: then rebuild it."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return False
        if len(data) % _ENTRY.size:
            return False
        timestamps, offsets = array("q"), array("I")
        for timestamp, offset in _ENTRY.iter_unpack(data):
            timestamps.append(timestamp)
            offsets.append(offset)
        if any(later <= earlier for earlier, later in itertools.pairwise(timestamps)):
            return False
        self._timestamps, self._offsets = timestamps, offsets
        self._saved = len(timestamps)
        return True

    def peek(self) -> tuple[int, int] | None:
        """The last entry of the file as (timestamp, offset), without the others; None where the file has none or is damaged."""
        try:
            with self.path.open("rb") as file:
                size = file.seek(0, 2)
                if size == 0 or size % _ENTRY.size:
                    return None
                file.seek(size - _ENTRY.size)
                timestamp, offset = _ENTRY.unpack(file.read(_ENTRY.size))
        except FileNotFoundError:
            return None
        return timestamp, self._base + offset

    def clear(self) -> None:
        """Forget all entries; the file goes with the next ``save``."""
        self._timestamps, self._offsets = array("q"), array("I")
        self._saved = 0

    def save(self) -> None:
        """Bring the file up to date; durable only with a later fsync, which recovery does without."""
        count = len(self._timestamps)
        if self._saved == count and self._saved:
            return
        pairs = zip(self._timestamps[self._saved :], self._offsets[self._saved :], strict=True)
        with self.path.open("ab" if self._saved else "wb") as file:
            file.write(b"".join(_ENTRY.pack(*pair) for pair in pairs))
        self._saved = count
