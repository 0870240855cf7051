"""All logs of a broker, on one disk or several (``log.dirs``, KIP-112). Each partition is on one disk."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from broker.errors import InvalidReplicationFactor, KafkaStorageError, LogDirNotFound
from broker.log.config import LogConfig
from broker.log.disk import NO_TOPIC_ID, Disk, failures, no_collection
from broker.log.graves import Graves
from broker.log.open_files import OpenFiles
from broker.log.partition import Mark, PartitionLog
from broker.steps import Step, run_through
from tidegate.kit.logs import get_logger

__all__ = ["NO_TOPIC_ID", "LogDirectory", "Preparation"]

logger = get_logger(__name__)


class Preparation:
    """The directories of a topic's new logs. The call makes them, in any thread; it does not raise."""

    def __init__(self, topic: str, topic_id: uuid.UUID, disks: Sequence[tuple[int, Disk]]) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.made: list[tuple[int, Disk, os.stat_result]] = []
        self.error: KafkaStorageError | None = None
        self._disks = disks

    def __call__(self) -> None:
        for partition, disk in self._disks:
            try:
                self.made.append((partition, disk, disk.prepare(self.topic, partition, self.topic_id)))
            except KafkaStorageError as error:
                self.error = error
                return


class LogDirectory:
    """Open it before anything else. Close it, so that the next start is quick. Not thread-safe.

    The broker's own log (``own``) is in the directory ``metadata``, or else in the first; that one must be usable. Any
    other may have failed, which takes its partitions offline. ``defaults`` is the configuration of logs until theirs is
    set (``log.config = ...``). ``open_files`` is shared by all disks.
    """

    def __init__(
        self,
        paths: Path | str | Sequence[Path | str],
        defaults: LogConfig | None = None,
        metadata: Path | str | None = None,
        open_files: OpenFiles | None = None,
    ) -> None:
        self.defaults = defaults or LogConfig()
        self.graves = Graves()
        self.open_files = open_files or OpenFiles()
        provided = [paths] if isinstance(paths, Path | str) else paths
        self.disks = [Disk(Path(path), self.defaults, self.graves, self.open_files) for path in provided]
        """The logs of partitions."""
        self._first = self.disks[0] if metadata is None else self._home_of_metadata(Path(metadata))
        self._every = self.disks if self._first in self.disks else [self._first, *self.disks]
        self.offline: set[tuple[str, int]] = set()
        """Partitions on a disk that failed."""
        self.unmade: set[str] = set()
        """Topics whose logs are just being created: a partition without a log is not unknown, but not available yet."""
        self._logs: dict[tuple[str, int], PartitionLog] = {}
        self._internal: dict[str, PartitionLog] = {}

    def _home_of_metadata(self, path: Path) -> Disk:
        log_disk = next((disk for disk in self.disks if disk.path.absolute() == path.absolute()), None)
        return Disk(path, self.defaults, self.graves, self.open_files) if log_disk is None else log_disk

    @property
    def path(self) -> Path:
        """The directory that identifies the owner of the data and has the broker's own log."""
        return self._first.path

    @property
    def online(self) -> list[Disk]:
        """The disks in use."""
        return [disk for disk in self._every if disk.failure is None]

    def open(self) -> None:
        """Lock the directories and open every partition in them, with recovery after a crash.

        Raises KafkaStorageError if another process has locked one, or the first can't be read.
        """
        with no_collection():
            for disk in self._every:
                try:
                    disk.open()
                except KafkaStorageError as error:
                    if disk is self._first or not isinstance(error.__cause__, OSError):
                        raise
                    disk.failure = error.message
                    disk.unlock()
                    logger.warning("a data directory is offline", directory=str(disk.path), reason=error.message)
                    continue
                for log in disk.all():
                    self._take(disk, log)

    def _take(self, disk: Disk, log: PartitionLog) -> None:
        """Add a log.

        A partition found twice was being moved when the broker stopped; both copies are equal up to that point.
        """
        which = log.topic, log.partition
        other = self._logs.get(which)
        if other is not None and other.log_end_offset > log.log_end_offset:
            disk.set_aside(*which)
            return
        if other is not None:
            self.disk_of(other).set_aside(*which)
        self._logs[which] = log

    def disk_of(self, log: PartitionLog) -> Disk:
        """The disk of a log."""
        return next(disk for disk in self._every if disk.get(log.topic, log.partition) is log)

    def disk(self, path: str) -> Disk:
        """Raises LogDirNotFound if ``log.dirs`` does not have it, KafkaStorageError if it failed."""
        log_disk = next((disk for disk in self.disks if str(disk.path.absolute()) == str(Path(path).absolute())), None)
        if log_disk is None:
            raise LogDirNotFound(f"{path} is not among the directories of log.dirs")
        if log_disk.failure is not None:
            raise KafkaStorageError(f"{path} is offline: {log_disk.failure}")
        return log_disk

    def cordon(self, paths: Collection[str]) -> None:
        """Put no new partitions into these directories; ``*`` means all. Existing ones stay (KIP-1066)."""
        for disk in self.disks:
            disk.is_cordoned = "*" in paths or any(disk.path.absolute() == Path(path).absolute() for path in paths)

    def choose_disks(self, count: int) -> list[Disk]:
        """The disks for ``count`` new partitions: each goes to the disk with the fewest.

        Raises InvalidReplicationFactor if all are cordoned.
        """
        taking = [disk for disk in self.disks if disk.failure is None and not disk.is_cordoned]
        if not taking:
            raise InvalidReplicationFactor(
                "No directory takes new partitions: all are in cordoned.log.dirs, or failed."
            )
        return _emptiest(taking, count)

    def internal(self, topic: str, topic_id: uuid.UUID) -> PartitionLog:
        """A log of the broker's own, created if it does not exist and maintained like all others.

        ``get`` does not return it: ``get`` serves names that clients send.
        """
        if topic not in self._internal:
            log = self.get(topic, 0) or self._first.create(topic, 0, topic_id)
            self._logs.pop((topic, 0), None)
            self._internal[topic] = log
        return self._internal[topic]

    def create(self, topic: str, partition: int, topic_id: uuid.UUID, config: LogConfig | None = None) -> PartitionLog:
        """Create an empty log in the emptiest directory. It is durable with its first flush.

        Raises TopicAlreadyExists if there is one of that name, KafkaStorageError if the disk fails.
        """
        home = self._home(None)
        home.clear_name(topic, partition)
        return self._take_new(home, topic, partition, topic_id, home.prepare(topic, partition, topic_id), config)

    def prepare(self, topic: str, topic_id: uuid.UUID, homes: Iterable[tuple[int, uuid.UUID | None]]) -> Preparation:
        """Work for another thread: to make the directories of empty logs. Then ``take`` creates the logs.

        ``homes`` are partitions, each with the id of its directory, or None for the emptiest.
        """
        disks = [(partition, self._home(directory_id)) for partition, directory_id in homes]
        for partition, disk in disks:
            disk.clear_name(topic, partition)
        return Preparation(topic, topic_id, disks)

    def take(self, prepared: Preparation) -> Iterator[PartitionLog]:
        """Create the logs that were prepared. Raises KafkaStorageError at the end if that failed at one of them."""
        topic, topic_id = prepared.topic, prepared.topic_id
        for partition, disk, stat in prepared.made:
            yield self._take_new(disk, topic, partition, topic_id, stat)
        if prepared.error is not None:
            raise prepared.error

    def _home(self, directory_id: uuid.UUID | None) -> Disk:
        named = [disk for disk in self.online if disk.id == directory_id] if directory_id is not None else []
        return named[0] if named else _emptiest([disk for disk in self.disks if disk.failure is None], 1)[0]

    def _take_new(
        self,
        disk: Disk,
        topic: str,
        partition: int,
        topic_id: uuid.UUID,
        stat: os.stat_result,
        config: LogConfig | None = None,
    ) -> PartitionLog:
        made = disk.create(topic, partition, topic_id, config, stat)
        self._logs[topic, partition] = made
        return made

    def identify(self, partition: PartitionLog, topic_id: uuid.UUID) -> None:
        """Write the topic id of a log that had ``NO_TOPIC_ID``."""
        self.disk_of(partition).identify(partition, topic_id)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def unavailable(self, topic: str, partitions: int) -> Collection[int]:
        """Those of a topic's partitions that are offline, or whose logs are still being created."""
        if topic in self.unmade:
            return {number for number in range(partitions) if (topic, number) not in self._logs}
        if self.offline:
            return {number for number in range(partitions) if (topic, number) in self.offline}
        return ()

    def all(self) -> Iterator[PartitionLog]:
        """A snapshot of all logs: you can create and delete logs while iterating."""
        return iter([*self._logs.values(), *self._internal.values()])

    def __len__(self) -> int:
        return len(self._logs)

    def delete(self, topic: str, *partitions: int) -> None:
        """Delete logs at once and permanently. Missing ones are ignored. Readers of their files can finish.

        Their space is freed after ``file.delete.delay.ms``.
        """
        self.drop(topic, *partitions)
        run_through(self.take_away())

    def drop(self, topic: str, *partitions: int) -> None:
        """Delete logs for clients. ``take_away`` removes their directories."""
        for partition in partitions:
            self._logs.pop((topic, partition), None)
            self.offline.discard((topic, partition))
        for disk in self.online:
            disk.drop(topic, *partitions)

    def take_away(self) -> Generator[Step]:
        """Remove the directories of deleted logs, also those that could not be removed before; one with each step."""
        for disk in self.online:
            yield from disk.take_away()

    def set_aside(self, topic: str, partition: int) -> None:
        """Take a log that belongs to no topic out of service.

        Its files stay, under a name that ends in ``-stray`` (as in Kafka).
        """
        self.disk_of(self._logs.pop((topic, partition))).set_aside(topic, partition)

    def enforce_retention(self, now_ms: int) -> int:
        """Delete the segments that no log has to keep any longer. Returns how many."""
        return sum(partition.enforce_retention(now_ms) for partition in self.all())

    def flush(self) -> None:
        """Flush every log to disk. Thread-safe."""
        for partition in self.all():
            partition.flush()

    # Used by LogKeeper; see Disk.

    @property
    def has_failed_logs(self) -> bool:
        """Whether ``repair`` has work to do."""
        return any(disk.upkeep.failed for disk in self.online)

    def repair(self) -> None:
        for disk in self.online:
            disk.repair()

    def reopen_damaged(self) -> None:
        for disk in self.online:
            disk.reopen_damaged()

    @property
    def unmarked_bytes(self) -> int:
        return sum(disk.unmarked_bytes for disk in self.online)

    def marks(self) -> list[list[Mark]]:
        """The marks of each disk."""
        return [disk.marks() for disk in self.online]

    def checkpoint(self, marks: Iterable[list[Mark]] | None = None) -> None:
        of_disk = dict(zip(self.online, self.marks() if marks is None else marks, strict=True))
        self._on_each_disk(lambda disk: disk.checkpoint(of_disk[disk]))

    def checkpoint_compacted(self) -> None:
        self._on_each_disk(Disk.checkpoint_compacted)

    def checkpoint_start_offsets(self) -> None:
        self._on_each_disk(Disk.checkpoint_start_offsets)

    def close(self) -> None:
        """Flush, checkpoint, mark the stop as clean and release the locks."""
        try:
            self._on_each_disk(Disk.close)
        finally:
            self._logs.clear()
            self._internal.clear()

    def _on_each_disk(self, work: Callable[[Disk], None]) -> None:
        """Run ``work`` on every disk, even if one fails. Its KafkaStorageError is raised at the end."""
        failed = failures(partial(work, disk) for disk in self.online)
        if failed:
            raise failed[0]


def _emptiest(disks: Sequence[Disk], count: int) -> list[Disk]:
    if len(disks) == 1:
        return [disks[0]] * count
    have = [len(disk) for disk in disks]
    chosen = []
    for _ in range(count):
        least = have.index(min(have))
        have[least] += 1
        chosen.append(disks[least])
    return chosen
