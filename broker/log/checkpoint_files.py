"""The checkpoint files of a data directory: facts about each log that are stored outside of its directory."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from broker.log.checkpoints import read_offsets, write_lines, write_offsets
from broker.log.partition import PartitionLog
from broker.log.upkeep import Upkeep

__all__ = ["CheckpointFiles", "Points"]

_RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
_START_OFFSETS: Final = "log-start-offset-checkpoint"
_HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
_FIRST_DIRTY: Final = "cleaner-offset-checkpoint"

_Offsets = Mapping[tuple[str, int], int]


class Points(NamedTuple):
    """By topic and partition: the recovery point, the log start offset, and the offset up to which it is compacted."""

    recovery: _Offsets
    start: _Offsets
    first_dirty: _Offsets


class CheckpointFiles:
    """Writes the files from any thread.

    Lines are cached per log: with 10,000 logs only changed lines are formatted again.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lines: dict[PartitionLog, str] = {}
        self._of_lines = threading.Lock()
        """Protects ``_lines``. Not held during a file write, so that the event loop does not wait for the disk."""
        self._lock = threading.Lock()
        """Held during a file write."""

    def read(self) -> Points:
        """Raises KafkaStorageError if a file is damaged."""
        return Points(
            *(read_offsets(self._directory / name) for name in (_RECOVERY_POINTS, _START_OFFSETS, _FIRST_DIRTY))
        )

    def take(self, logs: Iterable[PartitionLog]) -> None:
        """Include these logs in the next write."""
        with self._of_lines:
            self._lines.update((log, _line(log)) for log in logs)

    def drop(self, log: PartitionLog) -> None:
        """Drop this log from the next write on."""
        with self._of_lines:
            self._lines.pop(log, None)

    def write(self, upkeep: Upkeep[PartitionLog]) -> None:
        """Write the recovery points, looking only at logs in ``moved``. Raises OSError."""
        with self._lock:
            moved: list[PartitionLog] = []
            while upkeep.moved:
                moved.append(upkeep.moved.pop())
            with self._of_lines:
                written = {log: log.flushed_offset for log in moved if log in self._lines}
                self._lines.update((log, _line(log, offset)) for log, offset in written.items())
                lines = list(self._lines.values())
            try:
                write_lines(self._directory / _RECOVERY_POINTS, lines)
            except OSError:
                upkeep.moved.update(moved)
                raise
            for log, offset in written.items():
                log.checkpointed_offset = offset

    def write_starts(self, logs: Iterable[PartitionLog]) -> None:
        """Raises OSError."""
        starts = {(log.topic, log.partition): log.log_start_offset for log in logs if log.log_start_offset > 0}
        with self._lock:
            write_offsets(self._directory / _START_OFFSETS, starts)

    def write_rest(self, logs: Iterable[PartitionLog]) -> None:
        """Raises OSError."""
        ends, compacted = [], {}
        for log in logs:
            ends.append(f"{log.topic} {log.partition} {log.log_end_offset}")
            if log.first_dirty_offset > 0:
                compacted[log.topic, log.partition] = log.first_dirty_offset
        with self._lock:
            write_lines(self._directory / _HIGH_WATERMARKS, ends)
            write_offsets(self._directory / _FIRST_DIRTY, compacted)


def _line(log: PartitionLog, offset: int | None = None) -> str:
    return f"{log.topic} {log.partition} {log.flushed_offset if offset is None else offset}"
