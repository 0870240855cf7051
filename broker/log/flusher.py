"""To the disk: flushing a log, and writing again what a failed flush left in doubt."""

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
    """An end of a log: its offset, and where that is in which segment."""

    offset: int
    segment: Segment
    position: int


class Flusher:
    """``flush`` and ``repair`` are for any thread, the rest is for the log's."""

    def __init__(self, log: LogState) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._below: int | None = None
        self._directory_synced = False

    def flush(self) -> int:
        """Bring everything appended so far to the disk itself; the offset up to which it is there. For any thread.

        Raises KafkaStorageError. After that the log refuses appends and flushes until it is repaired: what the disk holds is
        not known, and the operating system may call pages written that it failed to write.
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
            first -= 1  # flushed to its end while it was the active one: the indexes it was closed with are not
        for segment in segments[first:]:
            closed = segment is not segments[-1]
            try:
                segment.sync(closed=closed)
            except FileNotFoundError:
                # A closed one may have been deleted or compacted since the list was taken.
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
        """A file got its name: the next flush makes that durable."""
        self._directory_synced = False

    @contextmanager
    def only_below(self, offset: int) -> Iterator[None]:
        """Keep flushes in other threads from calling what comes from ``offset`` on durable."""
        self._below = offset
        try:
            yield
        finally:
            self._below = None

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep other threads from flushing."""
        with self._lock:
            yield

    def failed(self, why: str) -> KafkaStorageError:
        """Take no records until ``repair``."""
        self._log.failure = why
        self._log.upkeep.failed.add(self._log)
        return KafkaStorageError(f"{self._log.topic}-{self._log.partition}: {why}")

    def damaged(self, why: str) -> KafkaStorageError:
        """Take no records until ``broker.log.recovery`` has read the files again: what is known of them may not be so."""
        self._log.is_damaged = True
        return self.failed(why)

    def repair(self) -> bool:
        """After a failed flush: write again what may not be on the disk, and flush it; whether the log takes records again.

        The operating system takes pages that it could not write for written, so another flush alone would prove nothing. For any
        thread. A log that cannot be read whole any more becomes ``is_damaged``; ``broker.log.recovery`` then cuts it off.
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
        """Where the log ends now, for ``take_back``."""
        return Savepoint(self._log.log_end_offset, self._log.active, self._log.active.size)

    def take_back(self, savepoint: Savepoint) -> None:
        """Forget what was appended since, of which the disk is not known to have anything. Does not fail.

        For a log without idempotent producers. A crash may bring back whole appends.
        """
        with self._lock:
            offset, segment, position = savepoint
            if offset < self._log.log_end_offset:
                self._log.active.cut(position if segment is self._log.active else 0, offset)
                self._log.log_end_offset = offset


def _holding(segments: Sequence[Segment], offset: int) -> int:
    """Which of the segments holds an offset."""
    return max(bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1, 0)
