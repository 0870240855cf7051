"""One of a broker's data directories: its partitions, the lock that keeps a second broker out, and the checkpoints."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import re
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from broker.errors import KafkaStorageError, TopicAlreadyExists
from broker.log.checkpoint_files import CheckpointFiles, Points
from broker.log.checkpoints import (
    CLEAN_SHUTDOWN,
    read_topic_id,
    write_clean_shutdown,
    write_leader_epochs,
    write_topic_id,
)
from broker.log.config import LogConfig
from broker.log.files import FileHandle, storage_errors, sync_directory
from broker.log.graves import Graves
from broker.log.open_files import OpenFiles
from broker.log.partition import Mark, PartitionLog
from broker.log.recovery import open_partition
from broker.log.segment import Segment, file_name
from broker.log.upkeep import Upkeep
from broker.steps import Step, run_through
from tidegate.kit.logs import get_logger

__all__ = ["FUTURE", "NO_TOPIC_ID", "Disk", "failures", "no_collection"]

logger = get_logger(__name__)

NO_TOPIC_ID: Final = uuid.UUID(int=0)
"""The topic id of a log whose file is missing: a power cut lost it, or an old Kafka never wrote it."""

_PARTITION: Final = re.compile(r"([a-zA-Z0-9._-]{1,249})-(\d{1,10})")
_DELETED: Final = "-delete"
_STRAY: Final = "-stray"
FUTURE: Final = "-future"
"""The suffix of a directory that a partition is being copied to."""
_BOOT_ID: Final = "/proc/sys/kernel/random/boot_id"
_CLOSED_AT_ONCE: Final = 8
_MARK_BYTES: Final = 256 * 1024
"""How many bytes of batch headers a recovery may have to read per partition, besides unflushed ones."""


class Disk:
    """A directory of ``log.dirs``, usually on a separate disk. ``failure`` says why it could not be opened."""

    def __init__(self, path: Path, defaults: LogConfig, graves: Graves, open_files: OpenFiles) -> None:
        self.path = path
        self.id = uuid.UUID(int=0)
        """The directory's id, once its ``meta.properties`` were read."""
        self.failure: str | None = None
        self.is_cordoned = False
        """Whether the directory accepts no new partitions."""
        self.defaults = defaults
        self.graves = graves
        self.upkeep: Upkeep[PartitionLog] = Upkeep(self.graves.bury, open_files)
        self._checkpoints = CheckpointFiles(self.path)
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        self._leftover: dict[Path, int] = {}
        """Directories of deleted logs that are not renamed yet, with the delay in ms before they may be removed."""
        self._lock_fd = -1

    def open(self) -> None:
        """Lock the directory and open every partition in it, with recovery after a crash.

        Raises KafkaStorageError if another process has the directory or the disk fails.
        """
        names: list[str] = []
        with storage_errors(f"open the data directory {self.path}"):
            self.path.mkdir(parents=True, exist_ok=True)
            same_boot = self._lock()
            clean = (self.path / CLEAN_SHUTDOWN).exists()
            (self.path / CLEAN_SHUTDOWN).unlink(missing_ok=True)
            with os.scandir(self.path) as entries:
                for entry in entries:
                    if entry.name.endswith((_DELETED, FUTURE)):
                        self.graves.bury(Path(entry.path), 0)
                    elif _PARTITION.fullmatch(entry.name) and entry.is_dir():
                        names.append(entry.name)
        points = self._checkpoints.read()
        if not clean and names:
            logger.info("recovering after an unclean stop", partitions=len(names), directory=str(self.path))
        self._open_logs(sorted(names), points, clean=clean, memory_is_lost=not same_boot)
        self._checkpoints.take(self._logs.values())

    def _open_logs(self, names: Sequence[str], points: Points, *, clean: bool, memory_is_lost: bool) -> None:
        for name in names:
            topic, partition = _partition_of(name)
            which = topic, partition
            directory = self.path / name
            opened = self._new(directory, topic, partition, read_topic_id(directory) or NO_TOPIC_ID, self.defaults)
            opened.first_dirty_offset = points.first_dirty.get(which, 0)
            open_partition(
                opened,
                clean=clean,
                recovery_point=points.recovery.get(which, 0),
                log_start_offset=points.start.get(which, 0),
                memory_is_lost=memory_is_lost,
            )
            self._logs[which] = opened

    def _new(self, directory: Path, topic: str, partition: int, topic_id: uuid.UUID, config: LogConfig) -> PartitionLog:
        return PartitionLog(directory, topic, partition, topic_id, config, self.upkeep)

    def _lock(self) -> bool:
        """Take both kinds of lock: Apache Kafka uses ``lockf``; ``flock`` also works within this process.

        Returns whether the machine has been up since the last use of the directory: then no written data was lost.
        """
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
        try:
            boot = Path(_BOOT_ID).read_bytes()
        except OSError:
            return False
        before = os.pread(fd, 100, 0)
        if before != boot:
            os.ftruncate(fd, 0)
            os.pwrite(fd, boot, 0)
        return before == boot

    def prepare(self, topic: str, partition: int, topic_id: uuid.UUID) -> os.stat_result:
        """Make the directory of an empty log, which ``create`` takes. Thread-safe.

        Raises KafkaStorageError if the disk fails, also if there is such a directory.
        """
        unnamed = self._grave(topic, partition)
        with storage_errors(f"create the log of {topic}-{partition}"):
            try:
                os.mkdir(unnamed)  # noqa: PTH102 - a topic may have thousands
                write_topic_id(unnamed, topic_id)
                write_leader_epochs(unnamed, 0)
                records = FileHandle(f"{unnamed}/{file_name(0, '.log')}")
                stat = os.fstat(records.fd)
                os.rename(unnamed, self._directory(topic, partition))  # noqa: PTH104
            except OSError:
                self.graves.bury(Path(unnamed), 0)
                raise
        return stat

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: uuid.UUID,
        config: LogConfig | None = None,
        prepared: os.stat_result | None = None,
    ) -> PartitionLog:
        """Create an empty log, durable with its first flush; in the directory that ``prepare`` made, if it did.

        Raises TopicAlreadyExists if there is one of that name, KafkaStorageError if the disk fails.
        """
        if (topic, partition) in self._logs:
            raise TopicAlreadyExists(f"the log of {topic}-{partition} exists already")
        if prepared is None:
            self.clear_name(topic, partition)
            prepared = self.prepare(topic, partition, topic_id)
        made = self._new(self._directory(topic, partition), topic, partition, topic_id, config or self.defaults)
        made.is_new = True
        self.upkeep.named()
        made.opened(
            [Segment(made.directory, 0, made.config.index_interval_bytes, self.upkeep.open_files, stat=prepared)], 0, []
        )
        self._logs[topic, partition] = made
        self._checkpoints.take([made])
        return made

    def clear_name(self, topic: str, partition: int) -> None:
        """Take away the directory of a deleted log of that name, which may still be there."""
        directory = self._directory(topic, partition)
        if directory in self._leftover:
            self._take_away(directory, self._leftover[directory])

    def _directory(self, topic: str, partition: int) -> Path:
        return self.path / f"{topic}-{partition}"

    def identify(self, partition: PartitionLog, topic_id: uuid.UUID) -> None:
        """Write the topic id of a log that had ``NO_TOPIC_ID``."""
        with storage_errors(f"write the topic id of {partition.topic}-{partition.partition}"):
            write_topic_id(partition.directory, topic_id)
        partition.topic_id = topic_id

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def all(self) -> Iterator[PartitionLog]:
        """A snapshot of all logs: you can create and delete logs while iterating."""
        return iter(list(self._logs.values()))

    def __len__(self) -> int:
        return len(self._logs)

    def drop(self, topic: str, *partitions: int) -> None:
        """Delete logs for clients, at once and permanently. Missing ones are ignored. Readers of their files can finish.

        ``take_away`` removes their directories.
        """
        for partition in partitions:
            log = self._logs.pop((topic, partition), None)
            if log is None:
                continue
            log.retire()
            self.upkeep.failed.discard(log)
            self._checkpoints.drop(log)
            self._leftover[log.directory] = log.config.file_delete_delay_ms

    def take_away(self) -> Generator[Step]:
        """Remove the directories of deleted logs, one with each step; one that the disk refuses is tried next time.

        Their space is freed after ``file.delete.delay.ms``.
        """
        if not self._leftover:
            return
        for directory, delay_ms in list(self._leftover.items()):
            if directory in self._leftover:
                self._take_away(directory, delay_ms)
                yield None
        with contextlib.suppress(OSError):  # after a power cut the next start sees that they belong to no topic
            sync_directory(self.path)

    def _grave(self, topic: str, partition: int) -> str:
        """A name that the next start recognises and removes."""
        return f"{self.path}/{topic[:200]}-{partition}.{uuid.uuid4().hex}{_DELETED}"

    def _take_away(self, directory: Path, delay_ms: int) -> None:
        """Have a directory removed. If the disk refuses the rename, that is retried."""
        self._leftover[directory] = delay_ms
        topic, _, partition = directory.name.rpartition("-")
        grave = Path(self._grave(topic, int(partition)))
        try:
            directory.rename(grave)
        except FileNotFoundError:
            pass
        except OSError as error:
            logger.warning(
                "cannot take away a log that was deleted; trying on", directory=str(directory), error=str(error)
            )
            return
        else:
            self.graves.bury(grave, delay_ms)
        del self._leftover[directory]

    def bury(self, path: Path, log: PartitionLog) -> None:
        """Remove a directory that the log has left."""
        grave = Path(self._grave(log.topic, log.partition))
        path.rename(grave)
        sync_directory(self.path)
        self.graves.bury(grave, log.config.file_delete_delay_ms)

    def set_aside(self, topic: str, partition: int) -> None:
        """Take a log that belongs to no topic out of service.

        Its files stay, under a name that ends in ``-stray`` (as in Kafka).
        """
        stray = self._logs.pop((topic, partition))
        stray.retire()
        self._checkpoints.drop(stray)
        with storage_errors(f"set aside the log of {topic}-{partition}"):
            aside = self.path / f"{topic[:200]}-{partition}.{uuid.uuid4().hex}{_STRAY}"
            stray.directory.rename(aside)
        logger.warning(
            "set aside a log that belongs to no topic", topic=topic, partition=partition, directory=str(aside)
        )

    def repair(self) -> None:
        """Make logs with a failed flush accept records again, as far as the disk permits."""
        for log in list(self.upkeep.failed):
            if log.flusher.repair():
                self.upkeep.failed.discard(log)
                logger.info("takes records again", topic=log.topic, partition=log.partition)

    def reopen_damaged(self) -> None:
        """Truncate the parts that ``repair`` could not read, as a restart would."""
        for log in [log for log in list(self.upkeep.failed) if log.is_damaged and not log.is_retired]:
            point, start = log.flushed_offset, log.log_start_offset
            log.reset()
            try:
                open_partition(log, clean=False, recovery_point=point, log_start_offset=start)
            except KafkaStorageError as error:
                log.flushed_offset = point
                log.flusher.damaged(error.message)
                logger.warning(
                    "cannot recover a log; trying on", topic=log.topic, partition=log.partition, error=error.message
                )
                continue
            self.upkeep.failed.discard(log)
            logger.info("takes records again", topic=log.topic, partition=log.partition)

    # Checkpoints

    @property
    def unmarked_bytes(self) -> int:
        """Bytes that were flushed but are not covered by a written recovery point."""
        return sum(log.recovery_files.unmarked_bytes for log in list(self.upkeep.moved))

    def marks(self) -> list[Mark]:
        """The marks for ``checkpoint`` of logs that grew much since the last one; cheap."""
        marks = (log.recovery_files.mark(at_least_bytes=_MARK_BYTES) for log in list(self.upkeep.moved))
        return [mark for mark in marks if mark is not None]

    def checkpoint(self, marks: Iterable[Mark] | None = None) -> None:
        """Write recovery points and log start offsets. Thread-safe if ``marks`` were made on the logs' thread."""
        failed = failures(mark.write for mark in (self.marks() if marks is None else marks))
        with storage_errors(f"write the checkpoints of {self.path}"):
            self._checkpoints.write(self.upkeep)
        if failed:
            raise failed[0]

    def checkpoint_compacted(self) -> None:
        """Write how far logs are compacted, and high watermarks, which only Apache Kafka reads. Thread-safe."""
        with storage_errors(f"write the checkpoints of {self.path}"):
            self._checkpoints.write_rest(self.all())

    def checkpoint_start_offsets(self) -> None:
        """Make log start offsets durable: an answered DeleteRecords must survive a crash."""
        with storage_errors(f"write the start offsets of {self.path}"):
            self._checkpoints.write_starts(self.all())

    def adopt(self, log: PartitionLog) -> None:
        """Take over a log that was moved here."""
        self._logs[log.topic, log.partition] = log
        log.upkeep = self.upkeep
        self._checkpoints.take([log])
        self.upkeep.moved.add(log)

    def remove_moved(self, log: PartitionLog) -> None:
        """Drop a log that was moved away."""
        self._logs.pop((log.topic, log.partition), None)
        self.upkeep.moved.discard(log)
        self.upkeep.failed.discard(log)
        self._checkpoints.drop(log)

    def close(self) -> None:
        """Flush, checkpoint, mark the stop as clean and release the lock.

        A failure does not stop the other steps, but the stop is not marked as clean. Raises the first
        KafkaStorageError.
        """
        run_through(self.take_away())
        logs = list(self.all())
        failed = failures(log.trim for log in logs)
        with ThreadPoolExecutor(
            _CLOSED_AT_ONCE if len(logs) > 1 else 1
        ) as pool:  # a file system commits several at once
            for part in pool.map(failures, ([log.close] for log in logs)):
                failed += part
        failed += failures((self.checkpoint, self.checkpoint_start_offsets, self.checkpoint_compacted))
        if not failed:
            failed += failures((self._mark_clean,))
        self._logs.clear()
        self.unlock()
        if failed:
            raise failed[0]

    def _mark_clean(self) -> None:
        with storage_errors(f"close the data directory {self.path}"):
            write_clean_shutdown(self.path)

    def unlock(self) -> None:
        """Release the directory for another broker."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


def failures(works: Iterable[Callable[[], object]]) -> list[KafkaStorageError]:
    """Run all of them and return their errors."""
    failed: list[KafkaStorageError] = []
    for work in works:
        try:
            work()
        except KafkaStorageError as error:
            failed.append(error)
    return failed


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Disables the garbage collector.

    Thousands of long-lived objects are created; scanning them repeatedly would double the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield None
    finally:
        if was_enabled:
            gc.enable()


def _partition_of(name: str) -> tuple[str, int]:
    topic, _, number = name.rpartition("-")
    return topic, int(number)
