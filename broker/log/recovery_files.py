"""The files that a recovery starts from: producer snapshots and the indexes up to them."""

from __future__ import annotations

import threading
from bisect import bisect_right, insort
from typing import Final, NamedTuple

from broker.log.files import storage_errors, sync_file, write_atomically
from broker.log.flusher import Flusher
from broker.log.offset_index import OffsetIndex
from broker.log.segment import file_name
from broker.log.state import LogState
from broker.log.time_index import TimeIndex

__all__ = ["UNSYNCED_INDEX_BYTES", "Mark", "RecoveryFiles"]

UNSYNCED_INDEX_BYTES: Final = 1024 * 1024
"""After this many bytes of records an fsync of the indexes is worthwhile.

Recovery after a power cut distrusts their last entries.
"""
_SNAPSHOTS_KEPT: Final = 2


class Mark(NamedTuple):
    """The starting point of a recovery: the producers at an offset, and the indexes up to it.

    ``write`` is thread-safe.
    """

    log: LogState
    files: RecoveryFiles
    offset: int
    snapshot: bytes
    indexes: tuple[TimeIndex, OffsetIndex]
    to_disk: bool
    """Whether to fsync the index files. After a power cut, missing entries are rebuilt from the batches."""

    def write(self) -> None:
        """Write all of it to disk, after the records. Raises KafkaStorageError."""
        log = self.log
        self.files.flush()
        with storage_errors(f"write the recovery files of {log.topic}-{log.partition}"):
            try:
                self.files.save_snapshot(self.offset, self.snapshot, durable=self.to_disk)
                for index in self.indexes:
                    index.save()
                    if self.to_disk:
                        sync_file(index.path)
            except FileNotFoundError:
                # Deleted in between, or moved away with its topic.
                if not log.is_retired:
                    raise


class RecoveryFiles:
    """Snapshots and index files of one log. ``save_snapshot`` is thread-safe."""

    def __init__(self, log: LogState, flusher: Flusher) -> None:
        self._log = log
        self._flusher = flusher
        self._snapshots: list[int] = []
        self._lock = threading.Lock()
        self._marked_at = 0
        self._indexes_synced_at = 0

    def use_snapshots(self, snapshots: list[int]) -> None:
        """Set the snapshots that recovery has seen, ascending."""
        self._snapshots = snapshots

    def flush(self) -> None:
        """Flush the records, which must be on disk before the files about them."""
        self._flusher.flush()

    def mark(self, *, at_least_bytes: int) -> Mark | None:
        """The current starting point of a recovery; None if fewer bytes were written since the last mark."""
        written, active = self._log.written_bytes, self._log.active
        if written - self._marked_at < at_least_bytes or self._log.is_retired:
            return None
        self._marked_at = written
        to_disk = written - self._indexes_synced_at >= UNSYNCED_INDEX_BYTES
        if to_disk:
            self._indexes_synced_at = written
        return Mark(
            self._log,
            self,
            self._log.log_end_offset,
            self._log.producers.snapshot(),
            (active.time_index, active.index),
            to_disk,
        )

    def recovered(self) -> None:
        """Make the next ``mark`` flush the indexes, because they were rebuilt."""
        self._marked_at = self._indexes_synced_at = -UNSYNCED_INDEX_BYTES

    @property
    def unmarked_bytes(self) -> int:
        """Bytes written since the last ``mark``."""
        return self._log.written_bytes - self._marked_at

    def save_indexes(self) -> None:
        """Write the active segment's index entries, which are only in memory until then, to its files."""
        with storage_errors(f"write the indexes of {self._log.topic}-{self._log.partition}"):
            self._log.active.index.save()
            self._log.active.time_index.save()

    def sync_indexes(self) -> None:
        """Flush the active segment's index files if there are new records since the last time. Raises OSError."""
        if self._log.written_bytes > self._indexes_synced_at:
            for index in (self._log.active.time_index, self._log.active.index):
                sync_file(index.path)

    def save_snapshot(self, offset: int, snapshot: bytes, *, durable: bool) -> None:
        """Write the producers' state at ``offset``, and delete older snapshots that no recovery needs.

        Raises OSError.
        """
        if self._snapshots and self._snapshots[-1] >= offset:
            return
        write_atomically(self._log.directory / file_name(offset, ".snapshot"), snapshot, durable=durable)
        with self._lock:
            insort(self._snapshots, offset)
            base = max(bisect_right(self._snapshots, self._log.checkpointed_offset) - 1, 0)
            unneeded = max(min(base, len(self._snapshots) - _SNAPSHOTS_KEPT), 0)
            gone, self._snapshots = self._snapshots[:unneeded], self._snapshots[unneeded:]
        for old in gone:
            (self._log.directory / file_name(old, ".snapshot")).unlink(missing_ok=True)
