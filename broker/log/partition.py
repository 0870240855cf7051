"""One partition's log: assembles the appender, flusher and reader, and deletes old records.

Not thread-safe, except for ``flush``. Times are ms since the epoch. Work is per batch: records are decoded only if
their keys or single timestamps matter.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, Final

from broker.errors import OffsetOutOfRange
from broker.log.appender import Appended, Appender
from broker.log.config import LogConfig
from broker.log.files import storage_errors
from broker.log.flusher import Flusher, Savepoint
from broker.log.reader import Reader
from broker.log.recovery_files import UNSYNCED_INDEX_BYTES, Mark, RecoveryFiles
from broker.log.retention import SegmentFacts, expired_segments
from broker.log.segment import Segment
from broker.log.segments import LogSlice
from broker.log.state import LogState
from broker.log.upkeep import Upkeep

__all__ = [
    "PRODUCER_ID_EXPIRATION_MS",
    "UNSYNCED_INDEX_BYTES",
    "Appended",
    "LogSlice",
    "Mark",
    "PartitionLog",
    "Savepoint",
]

PRODUCER_ID_EXPIRATION_MS: Final = 24 * 60 * 60 * 1000


class PartitionLog(LogState):
    """A log that ``broker.log.directory`` opened or created; ``broker.log.recovery`` fills it.

    ``append``, ``flush``, ``read`` and similar attributes are the parts' bound methods, which saves a call per request.
    ``producers`` and ``segments`` are for this package.
    """

    def __init__(
        self,
        directory: Path,
        topic: str,
        partition: int,
        topic_id: uuid.UUID,
        config: LogConfig,
        upkeep: Upkeep[Any] | None = None,
    ) -> None:
        super().__init__(directory, topic, partition, topic_id, config, upkeep)
        self.flusher = Flusher(self)
        self.recovery_files = RecoveryFiles(self, self.flusher)
        self.appender = Appender(self, self.flusher, self.recovery_files)
        self.reader = Reader(self)
        self.append = self.appender.append
        self.append_records = self.appender.append_records
        self.append_marker = self.appender.append_marker
        self.flush = self.flusher.flush
        self.read = self.reader.read
        self.iter_batches = self.reader.iter_batches
        self.iter_records = self.reader.iter_records

    def __repr__(self) -> str:
        return f"<PartitionLog {self.topic}-{self.partition} {self.log_start_offset}..{self.log_end_offset}>"

    def delete_records(self, before: int) -> int:
        """Make ``before`` the start of the log (-1: its end). Returns the new start. ``enforce_retention`` deletes
        whole segments below it.

        Raises OffsetOutOfRange beyond the end. The caller must checkpoint the new start through the directory before it
        answers.
        """
        target = self.log_end_offset if before == -1 else before
        if not 0 <= target <= self.log_end_offset:
            raise OffsetOutOfRange(
                f"cannot delete {self.topic}-{self.partition} up to {before}: its end is {self.log_end_offset}"
            )
        self.log_start_offset = max(self.log_start_offset, target)
        return self.log_start_offset

    def enforce_retention(self, now_ms: int, producers_kept_ms: int = PRODUCER_ID_EXPIRATION_MS) -> int:
        """Delete segments that are too old or too many, and forget idle producers.

        Returns how many segments were deleted.
        """
        self.producers.expire(now_ms - producers_kept_ms)
        facts = [self._facts(segment, now_ms) for segment in self.segments]
        count = expired_segments(facts, self.config, log_start_offset=self.log_start_offset, now_ms=now_ms)
        if count == 0:
            return 0
        with storage_errors(f"delete old segments of {self.topic}-{self.partition}"):
            if count == len(self.segments):
                self.appender.roll(now_ms)
            self._drop(count)
        return count

    def bury(self, path: Path) -> None:
        """Schedule the removal of an unused file, after ``file.delete.delay.ms``."""
        self.upkeep.bury(path, self.config.file_delete_delay_ms)

    def _facts(self, segment: Segment, now_ms: int) -> SegmentFacts:
        newest = segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms
        if segment is self.active and segment.size == 0:
            newest = now_ms
        return SegmentFacts(segment.next_offset, segment.size, newest)

    def _drop(self, count: int) -> None:
        try:
            self.segments.drop(count, self.bury)
        finally:
            self.log_start_offset = max(self.log_start_offset, self.segments[0].base_offset)
            self.aborted = [entry for entry in self.aborted if entry.last_offset >= self.log_start_offset]

    def opened(self, segments: list[Segment], next_offset: int, snapshots: list[int] | None = None) -> None:
        """Called when recovery is done, with the segments (at least one), the end offset, and the ascending offsets of
        ``snapshots``.
        """
        self.segments.replace(segments)
        self.log_end_offset = next_offset
        self.appender.begin(segments[-1].modified_ms)
        if snapshots is not None:
            self.recovery_files.use_snapshots(snapshots)

    def reset(self) -> None:
        """Forget everything but the names, so that ``broker.log.recovery`` can fill the log from its files again."""
        self.segments.close_files()
        self.producers.clear()
        self.aborted = []
        self.failure, self.is_damaged = None, False

    def restart_at(self, offset: int) -> None:
        """Drop everything and begin at ``offset``, beyond the end. Raises KafkaStorageError."""
        with storage_errors(f"begin {self.topic}-{self.partition} at offset {offset}"):
            old = list(self.segments)
            self.reset()
            fresh = Segment(self.directory, offset, self.config.index_interval_bytes, self.upkeep.open_files)
            self.opened([fresh], offset, [])
            for segment in old:
                segment.delete()
        self.log_start_offset = self.flushed_offset = offset
        self.first_dirty_offset = min(self.first_dirty_offset, offset)

    def retire(self) -> None:
        """The files are about to go: from now on appends raise UnknownTopicOrPartition, and a running flush is ignored."""
        self.is_retired = True
        self.segments.close_files()

    def trim(self) -> None:
        """Truncate what the active segment's file has beyond its batches. The last step before ``close``."""
        if self.config.preallocate or self.active.has_excess:
            with storage_errors(f"close {self.topic}-{self.partition}"):
                self.active.trim()

    def close(self) -> None:
        """Write everything to disk, with the snapshot that a clean start reads. The log is unusable afterwards.

        Runs in any thread, if nothing else uses the log any more.
        """
        with storage_errors(f"close {self.topic}-{self.partition}"):
            self.flush()
            self.active.close_indexes()
            self.recovery_files.sync_indexes()
            if self.log_end_offset:
                self.recovery_files.save_snapshot(self.log_end_offset, self.producers.snapshot(), durable=False)
