"""Flushes a log to disk, and rewrites the data that a failed flush left in doubt."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from broker.errors import CorruptMessage, KafkaStorageError
from broker.log.files import sync_directory, sync_file
from broker.log.segment import Segment
from broker.log.state import LogState
from broker.log.transaction_index import TransactionIndex

__all__ = ["Flusher", "Savepoint"]


class Savepoint(NamedTuple):
    """An end of a log: its offset, its segment and the position there."""

    offset: int
    segment: Segment
    position: int


class Flusher:
    """``flush`` and ``repair`` are thread-safe; use the rest on the log's thread only."""

    def __init__(self, log: LogState) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._below: int | None = None
        self._directory_synced = False

    def flush(self) -> int:
        """Flush everything appended so far to disk. Returns the offset up to which it is durable. Thread-safe.

        Raises KafkaStorageError. The log then refuses appends and flushes until it is repaired: the content of the disk
        is unknown, and the operating system may report pages as written that it failed to write.
        """
        with self._lock:
            target, segments, below = self._log.log_end_offset, self._log.segments.snapshot(), self._below
            if below is not None:
                target = min(target, below)
            if target <= self._log.flushed_offset or self._log.is_retired:
                return self._log.flushed_offset
            if self._log.failure is not None:
                raise KafkaStorageError(f"{self._log.topic}-{self._log.partition}: {self._log.failure}")
            try:
                self._sync(segments, self._log.flushed_offset)
            except OSError as error:
                if self._log.is_retired:
                    return self._log.flushed_offset
                raise self.failed(f"cannot flush: {error.strerror or error}") from error
            self._log.flushed_offset = target
            self._log.upkeep.moved.add(self._log)
            return target

    def _sync(self, segments: Sequence[Segment], from_offset: int) -> None:
        first = _holding(segments, from_offset)
        if first and segments[first].base_offset == from_offset:
            first -= 1  # it was flushed to its end while active, but the index files written on closing were not
        for segment in segments[first:]:
            closed = segment is not segments[-1]
            try:
                segment.sync(closed=closed)
            except FileNotFoundError:
                # A closed segment may have been deleted or compacted since the list was made.
                if not closed:
                    raise
        if not self._directory_synced:
            self._directory_synced = True
            try:
                if self._log.is_new:
                    sync_file(self._log.directory / "partition.metadata")
                    self._log.upkeep.sync_names(self._log.directory.parent)
                    self._log.is_new = False
                sync_directory(self._log.directory)
            except OSError:
                self._directory_synced = False
                raise

    def directory_changed(self) -> None:
        """A file was created or renamed: the next flush makes that durable."""
        self._directory_synced = False

    @contextmanager
    def only_below(self, offset: int) -> Iterator[None]:
        """Keep flushes in other threads from reporting anything at or after ``offset`` as durable."""
        self._below = offset
        try:
            yield
        finally:
            self._below = None

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Block flushes in other threads."""
        with self._lock:
            yield

    def failed(self, why: str) -> KafkaStorageError:
        """Refuse records until ``repair``."""
        self._log.failure = why
        self._log.upkeep.failed.add(self._log)
        return KafkaStorageError(f"{self._log.topic}-{self._log.partition}: {why}")

    def damaged(self, why: str) -> KafkaStorageError:
        """Refuse records until ``broker.log.recovery`` has read the files again, because the state in memory may be
        wrong.
        """
        self._log.is_damaged = True
        return self.failed(why)

    def repair(self) -> bool:
        """After a failed flush, rewrite the data that may not be on disk, and flush it. Returns whether the log accepts
        records again.

        The operating system considers pages clean that it failed to write, so another flush alone would prove nothing.
        Thread-safe. A log that is no longer completely readable becomes ``is_damaged``; ``broker.log.recovery`` then
        truncates it.
        """
        with self._lock:
            if self._log.failure is None or self._log.is_retired:
                return True
            if self._log.is_damaged:
                return False
            segments, target = self._log.segments.snapshot(), self._log.log_end_offset
            doubtful = segments[_holding(segments, self._log.flushed_offset) :]
            try:
                if segments[-1].has_excess:
                    segments[-1].trim()
                if not all(segment.rewrite(self._log.flushed_offset) for segment in doubtful):
                    self._log.is_damaged = True
                    return False
                for segment in doubtful:
                    ends = range(segment.base_offset, max(segment.next_offset, segment.base_offset + 1))
                    entries = [entry for entry in self._log.aborted if entry.last_offset in ends]
                    TransactionIndex(segment.transaction_index_path).replace(entries)
                    segment.aborts_synced = False
                self._directory_synced = False
                self._sync(segments, self._log.flushed_offset)
            except CorruptMessage:
                self._log.is_damaged = True
                return False
            except OSError as error:
                self._log.failure = f"cannot flush: {error.strerror or error}"
                return False
            self._log.flushed_offset = target
            self._log.upkeep.moved.add(self._log)
            self._log.failure = None
            return True

    @property
    def savepoint(self) -> Savepoint:
        """The current end of the log, for ``take_back``."""
        return Savepoint(self._log.log_end_offset, self._log.active, self._log.active.size)

    def take_back(self, savepoint: Savepoint) -> None:
        """Remove everything appended since the savepoint, which may or may not be on disk. Does not fail.

        Only for logs without idempotent producers. A crash may bring back complete appends.
        """
        with self._lock:
            offset, segment, position = savepoint
            if offset < self._log.log_end_offset:
                self._log.active.cut(position if segment is self._log.active else 0, offset)
                self._log.log_end_offset = offset


def _holding(segments: Sequence[Segment], offset: int) -> int:
    """The index of the segment that contains an offset."""
    return max(bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1, 0)
