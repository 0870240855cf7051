"""The segments of one log in offset order, and lookups across them. The last one is active."""

from __future__ import annotations

import contextlib
import os
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.log.files import FileHandle
from broker.log.segment import Segment
from broker.log.time_search import Stretch, TimeSearch

__all__ = ["LogSlice", "Segments"]


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Bytes of batches for ``os.sendfile`` or ``read``. The last batch may be incomplete, as Kafka's clients expect.

    The first batch may begin before the requested offset. The file stays readable while the slice exists.
    """

    handle: FileHandle | None
    """None without bytes."""
    position: int
    size: int

    @property
    def fd(self) -> int:
        return -1 if self.handle is None else self.handle.fd

    def read(self) -> bytes:
        return os.pread(self.fd, self.size, self.position) if self.size else b""


class Segments(Sequence[Segment]):
    """One thread changes it. Others may take ``snapshot``, because a list of segments is replaced, never changed."""

    def __init__(self) -> None:
        self._all: list[Segment] = []
        self._bases: list[int] = []
        self._kept_in_memory: Segment | None = None

    def __len__(self) -> int:
        return len(self._all)

    def __getitem__(self, index: int) -> Segment:  # type: ignore[override]
        return self._all[index]

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._all)

    @property
    def active(self) -> Segment:
        """The segment that appends go to."""
        return self._all[-1]

    def snapshot(self) -> list[Segment]:
        """The current segments. Thread-safe."""
        return self._all

    def replace(self, segments: list[Segment]) -> None:
        self._bases = [segment.base_offset for segment in segments]
        self._all = segments
        if self._kept_in_memory not in segments:
            self._kept_in_memory = None

    def start(self, fresh: Segment) -> None:
        """Make ``fresh`` the active segment.

        The previous one's indexes are written and dropped from memory. Raises OSError.
        """
        if self._all:
            self.active.trim()
            self.active.close_indexes()
            self.active.unload()
        self.replace([*self._all, fresh])

    def drop(self, count: int, bury: Callable[[Path], None] | None = None) -> None:
        """Delete the oldest segments (see ``Segment.delete``).

        Raises OSError; all segments from the first failure on stay.
        """
        deleted = 0
        try:
            for segment in self._all[:count]:
                segment.delete(bury)
                deleted += 1
        finally:
            self.replace(self._all[deleted:])

    def close_files(self) -> None:
        """Close the files, so that their space is free once they are removed. A reader that has a slice can finish it."""
        for segment in self._all:
            segment.release()

    def exchange(self, old: Sequence[Segment], new: list[Segment]) -> None:
        """Replace the adjacent ``old`` segments by ``new``. The caller takes care of the files."""
        at = self._all.index(old[0])
        self.replace([*self._all[:at], *new, *self._all[at + len(old) :]])

    def read(self, offset: int, limit: int, max_bytes: int, *, minimum_one: bool) -> LogSlice:
        """Batches from the one that contains ``offset`` on, below ``limit``; see ``PartitionLog.read``."""
        for index in range(max(bisect_right(self._bases, offset) - 1, 0), len(self._all) if offset < limit else 0):
            segment = self._with_indexes(index)
            if segment.base_offset >= limit:
                break
            result = segment.find(offset)
            if result is None:
                continue
            position, base_offset, whole = result
            size = _stop(segment, base_offset, limit) - position
            if size > max_bytes:
                size = max_bytes if whole <= max_bytes else (min(whole, size) if minimum_one else 0)
            return LogSlice(segment.handle, position, size) if size > 0 else _NOTHING
        return _NOTHING

    def end_of(self, log_slice: LogSlice) -> int | None:
        """An offset not far after the last in a slice that was just read; None if it extends about to the end."""
        for index in range(len(self._all) - 1, -1, -1):
            if self._all[index].is_open_as(log_slice.handle):
                behind = self._with_indexes(index).index.offset_behind(log_slice.position + log_slice.size)
                if behind is None and index + 1 < len(self._all):
                    behind = self._all[index + 1].base_offset
                return behind
        return None

    def _with_indexes(self, index: int) -> Segment:
        """The segment with its indexes in memory. Of the closed segments only the last one read keeps them there."""
        segment, kept = self._all[index], self._kept_in_memory
        if segment is not self._all[-1] and segment is not kept:
            if kept is not None:
                # A read must not fail because the disk is full: the indexes then stay in memory.
                with contextlib.suppress(OSError):
                    kept.unload()
                kept.release()
            self._kept_in_memory = segment
        segment.ensure_loaded()
        return segment

    def since(self, timestamp_ms: int, from_offset: int) -> Iterator[Stretch]:
        """Where a record at or after a time and ``from_offset`` may be: usually in the first of these."""
        first = True
        for index, segment in enumerate(self._all):
            if segment.next_offset <= from_offset or segment.max_timestamp < timestamp_ms:
                continue
            if first:
                yield self._with_indexes(index).stretch_since(timestamp_ms, from_offset)
                first = False
            else:
                yield segment.stretch()

    def offset_before(self, timestamp_ms: int, from_offset: int) -> int | None:
        """An offset not long before that record, from the indexes alone."""
        for index, segment in enumerate(self._all):
            if segment.next_offset > from_offset and segment.max_timestamp >= timestamp_ms:
                return max(self._with_indexes(index).time_index.offset_before(timestamp_ms), from_offset)
        return None

    def newest(self, from_offset: int) -> TimeSearch:
        """The search for the largest timestamp of the records from ``from_offset`` on."""
        cut: Stretch | None = None
        known: int | None = None
        for index, segment in enumerate(self._all):
            if segment.next_offset <= from_offset or not segment.size:
                continue
            if segment.base_offset < from_offset:
                cut = self._with_indexes(index).stretch_from(from_offset)
            elif known is None or segment.max_timestamp > known:
                known = segment.max_timestamp
        behind = from_offset if cut is None else self._base_of_next(from_offset)
        stretches = () if known is None else self.since(known, behind)
        return TimeSearch(stretches, from_offset, None, cut, known)

    def _base_of_next(self, offset: int) -> int:
        """The base offset of the segment after the one that contains an offset."""
        return self._all[bisect_right(self._bases, offset)].base_offset if offset < self._bases[-1] else sys.maxsize


_NOTHING: Final = LogSlice(None, 0, 0)


def _stop(segment: Segment, base_offset: int, limit: int) -> int:
    """The file position where readers stop that begin at the batch of ``base_offset`` and are limited to offsets below
    ``limit``.
    """
    if base_offset >= limit:
        return 0
    stop = segment.find(limit) if limit < segment.next_offset else None
    return segment.size if stop is None else stop[0]
