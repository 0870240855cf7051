"""All logs of a broker, on one disk or several (``log.dirs``, KIP-112): each partition is whole on one of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from broker.errors import KafkaStorageError, LogDirNotFound, TopicAlreadyExists
from broker.log.config import LogConfig
from broker.log.disk import NO_TOPIC_ID, Disk, no_collection
from broker.log.graves import Graves
from broker.log.partition import Mark, PartitionLog
from tidegate.kit.logs import logger

__all__ = ["NO_TOPIC_ID", "LogDirectory"]

log = logger(__name__)


class LogDirectory:
    """Open it before anything else; close it for the next start to be quick. Not for several threads at once.

    The first path has the metadata log, too, and must be usable; of the others one may have failed, which takes its
    partitions offline. ``defaults`` is the configuration of logs until theirs is set (``log.config = ...``).
    """

    def __init__(self, paths: Path | str | Sequence[Path | str], defaults: LogConfig | None = None) -> None:
        self.defaults = defaults or LogConfig()
        self.graves = Graves()
        given = [paths] if isinstance(paths, Path | str) else paths
        self.disks = [Disk(Path(path), self.defaults, self.graves) for path in given]
        self.offline: set[tuple[str, int]] = set()
        """Partitions that are on a disk that failed."""
        self._logs: dict[tuple[str, int], PartitionLog] = {}

    @property
    def path(self) -> Path:
        """The first directory."""
        return self.disks[0].path

    @property
    def online(self) -> list[Disk]:
        """The disks that are in use."""
        return [disk for disk in self.disks if disk.failure is None]

    def open(self) -> None:
        """Lock the directories and open every partition in them, recovering what a crash left.

        Raises KafkaStorageError where another process has one, or the first cannot be read.
        """
        with no_collection():
            for disk in self.disks:
                try:
                    disk.open()
                except KafkaStorageError as error:
                    if disk is self.disks[0] or not isinstance(error.__cause__, OSError):
                        raise
                    disk.failure = error.message
                    disk.unlock()
                    log.warning("a data directory is offline", directory=str(disk.path), reason=error.message)
                    continue
                for one in disk.all():
                    self._take(disk, one)

    def _take(self, disk: Disk, one: PartitionLog) -> None:
        """A partition that is there twice was moved when the broker ended, and is the same in both places up to that."""
        which = one.topic, one.partition
        other = self._logs.get(which)
        if other is not None and other.log_end_offset > one.log_end_offset:
            disk.set_aside(*which)
            return
        if other is not None:
            self.disk_of(other).set_aside(*which)
        self._logs[which] = one

    def disk_of(self, one: PartitionLog) -> Disk:
        """Where a log is."""
        return next(disk for disk in self.disks if disk.get(one.topic, one.partition) is one)

    def disk(self, path: str) -> Disk:
        """Raises LogDirNotFound where ``log.dirs`` does not have it, KafkaStorageError where it failed."""
        found = next((disk for disk in self.disks if str(disk.path.absolute()) == str(Path(path).absolute())), None)
        if found is None:
            raise LogDirNotFound(f"{path} is not among the directories of log.dirs")
        if found.failure is not None:
            raise KafkaStorageError(f"{path} is offline: {found.failure}")
        return found

    def place(self, count: int) -> list[Disk]:
        """Where ``count`` new partitions should go: each to the disk with the fewest."""
        online = self.online
        have = [len(disk) for disk in online]
        chosen = []
        for _ in range(count):
            least = have.index(min(have))
            have[least] += 1
            chosen.append(online[least])
        return chosen

    def create(
        self,
        topic: str,
        partition: int,
        topic_id: uuid.UUID,
        config: LogConfig | None = None,
        directory_id: uuid.UUID | None = None,
    ) -> PartitionLog:
        """Make an empty log, durable with its first flush, in that directory or the emptiest.

        Raises TopicAlreadyExists where there is one of that name, KafkaStorageError where the disk fails.
        """
        if (topic, partition) in self._logs:
            raise TopicAlreadyExists(f"the log of {topic}-{partition} exists already")
        named = [disk for disk in self.online if disk.id == directory_id] if directory_id is not None else []
        made = (named or self.place(1))[0].create(topic, partition, topic_id, config)
        self._logs[topic, partition] = made
        return made

    def identify(self, partition: PartitionLog, topic_id: uuid.UUID) -> None:
        """Write down whose log it is that had ``NO_TOPIC_ID``."""
        self.disk_of(partition).identify(partition, topic_id)

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get((topic, partition))

    def all(self) -> Iterator[PartitionLog]:
        """Every log, as they are now: it is fine to create and delete in the meantime."""
        return iter(list(self._logs.values()))

    def __len__(self) -> int:
        return len(self._logs)

    def delete(self, topic: str, *partitions: int) -> None:
        """Take logs away at once and for good; what does not exist is passed over. Readers of their files finish undisturbed.

        Their space is given back after ``file.delete.delay.ms``.
        """
        for partition in partitions:
            self._logs.pop((topic, partition), None)
            self.offline.discard((topic, partition))
        for disk in self.online:
            disk.delete(topic, *partitions)

    def set_aside(self, topic: str, partition: int) -> None:
        """Take a log out of service that no topic claims. Its files stay, under a name that ends in ``-stray`` (as Kafka's do)."""
        self.disk_of(self._logs.pop((topic, partition))).set_aside(topic, partition)

    def enforce_retention(self, now_ms: int) -> int:
        """Delete what no log has to keep any longer; how many segments went."""
        return sum(partition.enforce_retention(now_ms) for partition in self.all())

    def flush(self) -> None:
        """Bring every log to the disk. For any thread."""
        for partition in self.all():
            partition.flush()

    # What LogKeeper does; see Disk.

    @property
    def has_failed_logs(self) -> bool:
        """Whether ``repair`` has something to do."""
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
        """Those of each disk."""
        return [disk.marks() for disk in self.online]

    def checkpoint(self, marks: Iterable[list[Mark]] | None = None) -> None:
        for disk, of_disk in zip(self.online, self.marks() if marks is None else marks, strict=True):
            disk.checkpoint(of_disk)

    def checkpoint_compacted(self) -> None:
        for disk in self.online:
            disk.checkpoint_compacted()

    def checkpoint_start_offsets(self) -> None:
        for disk in self.online:
            disk.checkpoint_start_offsets()

    def close(self) -> None:
        """Flush, checkpoint, mark the stop as clean and let go of the locks."""
        for disk in self.online:
            disk.close()
        self._logs.clear()
