"""The time index of a segment: the largest timestamp so far, and the last offset of the first batch that has it.

Entries have Kafka's format: timestamp (i64) and offset relative to the segment's base (u32), big-endian. Timestamps
ascend strictly.
"""

from __future__ import annotations

import operator
import os
import struct
import sys
import threading
from array import array
from bisect import bisect_left
from pathlib import Path
from typing import Final

from broker.log.files import write_at

__all__ = ["TimeIndex"]

_ENTRY: Final = struct.Struct(">qI")
_WORDS: Final = 3
"""An entry is three 32-bit words: both halves of the timestamp, and the offset."""


class TimeIndex:
    """Entries in memory; ``save`` appends new ones to the file. Not thread-safe, except for ``save``."""

    __slots__ = ("_base", "_file", "_offsets", "_saved", "_saving", "_timestamps")

    def __init__(self, path: str | os.PathLike[str], base_offset: int) -> None:
        self._file = os.fspath(path)
        self._base = base_offset
        self._timestamps = array("q")
        self._offsets = array("I")
        self._saved = 0
        self._saving = threading.Lock()

    @property
    def path(self) -> Path:
        return Path(self._file)

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def last(self) -> tuple[int, int] | None:
        """The last entry as (timestamp, offset)."""
        return (self._timestamps[-1], self._base + self._offsets[-1]) if self._offsets else None

    def append(self, timestamp_ms: int, offset: int) -> None:
        """Add an entry if both its timestamp and its offset are larger than the last one's."""
        if timestamp_ms < 0:
            return
        relative = offset - self._base
        if self._offsets and (timestamp_ms <= self._timestamps[-1] or relative < self._offsets[-1]):
            return
        self._timestamps.append(timestamp_ms)
        self._offsets.append(relative)

    def offset_before(self, timestamp_ms: int) -> int:
        """An offset up to which every record is older than ``timestamp_ms``; the segment's base if none is known."""
        result = bisect_left(self._timestamps, timestamp_ms) - 1
        return self._base + (self._offsets[result] if result >= 0 else 0)

    def load(self) -> bool:
        """Read the file. False if it is absent or damaged; rebuild it then.

        Trailing zeros, preallocated by an Apache Kafka that was killed, are ignored.
        """
        try:
            with open(self._file, "rb", buffering=0) as file:  # noqa: PTH123 - Path.open costs as much as the read
                data = file.read()
        except FileNotFoundError:
            return False
        if len(data) % _ENTRY.size:
            return False
        filled = data
        if data[-_ENTRY.size :] == bytes(_ENTRY.size):
            kept = -(-len(data.rstrip(b"\0")) // _ENTRY.size) * _ENTRY.size
            filled = data[:kept]
        words = array("I")
        words.frombytes(filled)
        if sys.byteorder == "little":
            words.byteswap()
        halves = array("I", bytes(len(words) // _WORDS * 8))
        low, high = (0, 1) if sys.byteorder == "little" else (1, 0)
        halves[high::2], halves[low::2] = words[0::_WORDS], words[1::_WORDS]
        timestamps = array("q")
        timestamps.frombytes(halves.tobytes())
        offsets = words[2::_WORDS]
        if not (all(map(operator.lt, timestamps, timestamps[1:])) and all(map(operator.le, offsets, offsets[1:]))):
            return False
        if len(filled) < len(data):
            os.truncate(self._file, len(filled))
        self._timestamps, self._offsets = timestamps, offsets
        self._saved = len(timestamps)
        return True

    def peek(self) -> tuple[int, int] | None:
        """The file's last entry as (timestamp, offset), without reading the others; None if it has none or is damaged."""
        try:
            with open(self._file, "rb", buffering=0) as file:  # noqa: PTH123 - as above
                size = file.seek(0, 2)
                if size == 0 or size % _ENTRY.size:
                    return None
                file.seek(size - _ENTRY.size)
                entry = file.read(_ENTRY.size)
        except FileNotFoundError:
            return None
        if entry == bytes(_ENTRY.size):
            return None
        timestamp, offset = _ENTRY.unpack(entry)
        return timestamp, self._base + offset

    def clear(self) -> None:
        """Drop all entries; the next ``save`` empties the file."""
        self._timestamps, self._offsets = array("q"), array("I")
        self._saved = 0

    def drop_from(self, offset: int) -> None:
        """Drop the entries of ``offset`` and above, from the file too."""
        kept = bisect_left(self._offsets, max(offset - self._base, 0))
        del self._timestamps[kept:]
        del self._offsets[kept:]
        if self._saved > kept:
            os.truncate(self._file, kept * _ENTRY.size)
            self._saved = kept

    def save(self) -> None:
        """Write new entries to the file; durable only with a later fsync. Thread-safe."""
        with self._saving:
            count = len(self._offsets)  # offsets are appended last
            if self._saved == count and self._saved:
                return
            pairs = zip(self._timestamps[self._saved : count], self._offsets[self._saved : count], strict=True)
            data = b"".join(_ENTRY.pack(*pair) for pair in pairs)
            write_at(self._file, data, self._saved * _ENTRY.size)
            self._saved = count
