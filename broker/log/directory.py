"""A data directory: all partitions of a broker, the lock that keeps a second broker out, and the checkpoints."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from broker.errors import KafkaStorageError, TopicAlreadyExists
from broker.log.checkpoints import (
    CLEAN_SHUTDOWN,
    read_offsets,
    read_topic_id,
    write_clean_shutdown,
    write_leader_epochs,
    write_offsets,
    write_topic_id,
)
from broker.log.config import LogConfig
from broker.log.files import storage_errors, sync_directory
from broker.log.partition import PartitionLog
from broker.log.recovery import open_partition
from tidegate.kit.logs import logger

__all__ = ["LogDirectory"]

log = logger(__name__)

_RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
_START_OFFSETS: Final = "log-start-offset-checkpoint"
_HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
_FIRST_DIRTY: Final = "cleaner-offset-checkpoint"
_PARTITION: Final = re.compile(r"([a-zA-Z0-9._-]{1,249})-(\d{1,10})")
_DELETED: Final = "-delete"
_STRAY: Final = "-stray"


class LogDirectory:
    """Open it before anything else; close it for the next start to be quick. Not for several threads at once.

    ``defaults`` is the configuration of logs until theirs is set (``log.config = ...``) once the topics are known.
    """

    def __init__(self, path: Path | str, defaults: LogConfig | None = None) -> None:
        self.path = Path(path)
        self.defaults = defaults or LogConfig()
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        self._lock_fd = -1

    def open(self) -> None:
        """Lock the directory and open every partition in it, recovering what a crash left.

        Raises KafkaStorageError where another process has the directory or the disk fails.
        """
        with storage_errors(f"open the data directory {self.path}"):
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock()
            clean = (self.path / CLEAN_SHUTDOWN).exists()
            (self.path / CLEAN_SHUTDOWN).unlink(missing_ok=True)
            for path in self.path.glob(f"*{_DELETED}"):
                shutil.rmtree(path)
            directories = sorted(
                path for path in self.path.iterdir() if path.is_dir() and _PARTITION.fullmatch(path.name)
            )
        recovery_points = read_offsets(self.path / _RECOVERY_POINTS)
        start_offsets = read_offsets(self.path / _START_OFFSETS)
        first_dirty = read_offsets(self.path / _FIRST_DIRTY)
        if not clean and directories:
            log.info("recovering after an unclean stop", partitions=len(directories), directory=str(self.path))
        for directory in directories:
            topic, partition = _partition_of(directory)
            opened = PartitionLog(directory, topic, partition, read_topic_id(directory), self.defaults)
            opened.first_dirty_offset = first_dirty.get((topic, partition), 0)
            open_partition(
                opened,
                clean=clean,
                recovery_point=recovery_points.get((topic, partition), 0),
                log_start_offset=start_offsets.get((topic, partition), 0),
            )
            self._logs[topic, partition] = opened

    def _lock(self) -> None:
        """Both kinds of lock: ``lockf`` is what Apache Kafka takes, ``flock`` also holds within this process."""
        fd = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            raise KafkaStorageError(
                f"the data directory {self.path} is in use by another broker: stop it first"
            ) from None
        self._lock_fd = fd

    def create(self, topic: str, partition: int, topic_id: uuid.UUID, config: LogConfig | None = None) -> PartitionLog:
        """Make an empty log; after a crash it is there with its topic's id, or not at all. Raises TopicAlreadyExists where there is one of that name, KafkaStorageError where the disk fails."""
        if (topic, partition) in self._logs:
            raise TopicAlreadyExists(f"the log of {topic}-{partition} exists already")
        directory = self.path / f"{topic}-{partition}"
        with storage_errors(f"create the log of {topic}-{partition}"):
            unnamed = self.path / f"{topic[:200]}-{partition}.{uuid.uuid4().hex}{_DELETED}"
            unnamed.mkdir()
            write_topic_id(unnamed, topic_id)
            write_leader_epochs(unnamed, 0)
            unnamed.rename(directory)
            made = PartitionLog(directory, topic, partition, topic_id, config or self.defaults)
            open_partition(made, clean=True, recovery_point=0, log_start_offset=0)
            sync_directory(self.path)
        self._logs[topic, partition] = made
        return made

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def all(self) -> Iterator[PartitionLog]:
        """Every log, as they are now: it is fine to create and delete in the meantime."""
        return iter(list(self._logs.values()))

    def delete(self, topic: str, partition: int) -> None:
        """Remove a log, at once and for good; nothing if there is none. Readers of its files finish undisturbed."""
        gone = self._logs.pop((topic, partition), None)
        if gone is None:
            return
        gone.retire()
        with storage_errors(f"delete the log of {topic}-{partition}"):
            grave = self.path / f"{topic[:200]}-{partition}.{uuid.uuid4().hex}{_DELETED}"
            gone.directory.rename(grave)
            sync_directory(self.path)
            shutil.rmtree(grave)

    def set_aside(self, topic: str, partition: int) -> None:
        """Take a log out of service that no topic claims. Its files stay, under a name that ends in ``-stray`` (as Kafka's do)."""
        stray = self._logs.pop((topic, partition))
        stray.retire()
        with storage_errors(f"set aside the log of {topic}-{partition}"):
            aside = self.path / f"{topic[:200]}-{partition}.{uuid.uuid4().hex}{_STRAY}"
            stray.directory.rename(aside)
        log.warning("set aside a log that belongs to no topic", topic=topic, partition=partition, directory=str(aside))

    def enforce_retention(self, now_ms: int) -> int:
        """Delete what no log has to keep any longer; how many segments went."""
        return sum(partition.enforce_retention(now_ms) for partition in self.all())

    def compact(self, now_ms: int) -> int:
        """Compact every log that has enough to do, in this thread; how many."""
        return sum(partition.compact(now_ms) for partition in self.all())

    def flush(self) -> None:
        """Bring every log to the disk. For any thread."""
        for partition in self.all():
            partition.flush()

    def checkpoint(self) -> None:
        """Write down what a recovery may trust and where logs begin; a flush before it shortens recovery."""
        with storage_errors(f"write the checkpoints of {self.path}"):
            named = {(partition.topic, partition.partition): partition for partition in self.all()}
            write_offsets(self.path / _RECOVERY_POINTS, {name: one.flushed_offset for name, one in named.items()})
            write_offsets(self.path / _HIGH_WATERMARKS, {name: one.log_end_offset for name, one in named.items()})
            compacted = {name: one.first_dirty_offset for name, one in named.items() if one.first_dirty_offset > 0}
            write_offsets(self.path / _FIRST_DIRTY, compacted)
            self.checkpoint_start_offsets()

    def checkpoint_start_offsets(self) -> None:
        """Make log start offsets durable: what DeleteRecords answers must hold after a crash."""
        with storage_errors(f"write the start offsets of {self.path}"):
            starts = {
                (one.topic, one.partition): one.log_start_offset for one in self.all() if one.log_start_offset > 0
            }
            write_offsets(self.path / _START_OFFSETS, starts)

    def close(self) -> None:
        """Flush, checkpoint, mark the stop as clean and let go of the lock."""
        for partition in self.all():
            partition.close()
        self.checkpoint()
        with storage_errors(f"close the data directory {self.path}"):
            write_clean_shutdown(self.path)
        self._logs.clear()
        os.close(self._lock_fd)
        self._lock_fd = -1


def _partition_of(directory: Path) -> tuple[str, int]:
    topic, _, number = directory.name.rpartition("-")
    return topic, int(number)
