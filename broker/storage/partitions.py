"""Writes to and reads from partitions, including durability and the notification of waiting fetches."""

from __future__ import annotations

import asyncio
import struct
import uuid
from collections.abc import Iterable
from typing import Final, Protocol

from broker.errors import (
    FencedLeaderEpoch,
    InvalidRecord,
    InvalidRequiredAcks,
    InvalidTopic,
    KafkaStorageError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    RequestTimedOut,
    UnknownLeaderEpoch,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from broker.log.directory import LogDirectory
from broker.log.inspection import Inspected
from broker.log.partition import Appended, LogSlice, PartitionLog
from broker.storage.arrivals import Arrivals
from broker.storage.durability import Durability, Flushed

__all__ = ["INTERNAL_TOPICS", "LEADER_EPOCH", "READ_COMMITTED", "Partitions", "TopicNames", "unreadable"]

LEADER_EPOCH: Final = 0
"""One node leads every partition from its creation on, so the epoch never changes.

`PartitionLog.leader_epoch` is that of partitions that another broker led before.
"""
READ_COMMITTED: Final = 1

_ALL: Final = -1


class TopicNames(Protocol):
    """The part of topics that partitions need."""

    def name_of(self, topic_id: uuid.UUID) -> str | None: ...


class Partitions:
    """The partitions of one broker, used on its event loop."""

    def __init__(self, topics: TopicNames, logs: LogDirectory, durability: Durability, arrivals: Arrivals) -> None:
        self._topics = topics
        self._logs = logs
        self._durability = durability
        self._arrivals = arrivals
        self._due: set[PartitionLog] = set()
        """Partitions with as many unflushed records as ``flush.messages`` allows."""

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get(topic, partition)

    def find(self, topic: str | uuid.UUID, partition: int, leader_epoch: int = -1) -> PartitionLog:
        """Raises UnknownTopicOrPartition, UnknownTopicId, or UnknownLeaderEpoch if the caller knows a newer epoch."""
        if isinstance(topic, uuid.UUID):
            name = self._topics.name_of(topic)
            if name is None:
                raise UnknownTopicId(f"There is no topic with the id {topic}.")
        else:
            name = topic
        log = self._logs.get(name, partition)
        if log is None:
            if (name, partition) in self._logs.offline:
                raise KafkaStorageError(f"{name}-{partition} is on a disk that failed.")
            if name in self._logs.unmade:
                raise NotLeaderOrFollower(f"{name}-{partition} is just being created.")
            raise UnknownTopicOrPartition(f"There is no partition {partition} of topic {name!r}.")
        if leader_epoch != log.leader_epoch and leader_epoch >= 0:
            _refuse_epoch(log, leader_epoch)
        return log

    def append(
        self,
        partition: PartitionLog,
        records: memoryview | bytes,
        *,
        acks: int,
        transaction_version: int | None = None,
        inspected: Inspected | None = None,
    ) -> Appended:
        """Append a client's records to the page cache. Raises the log's errors, and InvalidRequiredAcks for invalid
        ``acks``.

        ``transaction_version`` and ``inspected`` are those of ``PartitionLog.append``.
        """
        if acks not in (-1, 0, 1):
            raise InvalidRequiredAcks(f"Required acks are {acks}; -1, 0 and 1 are possible.")
        if partition.topic.startswith("__") and partition.topic in INTERNAL_TOPICS:
            raise InvalidTopic(f"Topic {partition.topic} is the broker's own: clients cannot write to it.")
        try:
            if acks == _ALL and partition.config.min_insync_replicas > 1:
                raise _too_few_replicas(partition)
            if len(records) > _LENGTH.size and _LENGTH.unpack_from(records)[1] + _LENGTH.size < len(records):
                raise InvalidRecord("More than one batch came for one partition in one request; one is allowed.")
            appended = partition.append(records, transaction_version=transaction_version, inspected=inspected)
        except (NotEnoughReplicas, KafkaStorageError, RequestTimedOut):
            partition.appender.refused(records)
            raise
        self.appended(partition, len(records))
        return appended

    def appended(self, partition: PartitionLog, size: int) -> None:
        """Account for an append of ``size`` bytes: wake waiting fetches, and schedule the flush."""
        config = partition.config
        self._arrivals.notify(partition, size)
        self._durability.appended(partition, config.flush_ms)
        if partition.log_end_offset - partition.flushed_offset >= config.flush_messages:
            self._due.add(partition)
            self._durability.flushed([partition])

    def durable(self, partitions: Iterable[PartitionLog]) -> asyncio.Future[Flushed] | None:
        """A future that is done when these partitions' records are as durable as ``acks=all`` promises; None if they
        are already.
        """
        to_flush = [
            partition
            for partition in partitions
            if (partition.config.acks_all_durability == "disk" or partition in self._due)
            and partition.flushed_offset < partition.log_end_offset
        ]
        self._due.difference_update(to_flush)
        return self._durability.flushed(to_flush) if to_flush else None

    def due(self, partitions: Iterable[PartitionLog]) -> asyncio.Future[Flushed] | None:
        """A future for the flush of those partitions that ``flush.messages`` requires now; None if it requires none."""
        if not self._due:
            return None
        to_flush = self._due.intersection(partitions)
        self._due -= to_flush
        return self._durability.flushed(to_flush) if to_flush else None

    @staticmethod
    def read(
        partition: PartitionLog, offset: int, max_bytes: int, *, isolation_level: int, first: bool
    ) -> LogSlice | None:
        """Complete batches from ``offset`` on. The ``first`` partition of a fetch returns at least one, however large.

        None if there are none. Raises OffsetOutOfRange, KafkaStorageError if the disk fails.
        """
        until = partition.last_stable_offset if isolation_level == READ_COMMITTED else None
        try:
            log_slice = partition.read(offset, max_bytes, minimum_one=first, until=until)
        except OSError as error:
            raise unreadable(partition, error) from error
        return log_slice if log_slice.size else None

    def changed(self, partition: PartitionLog) -> None:
        """Make waiting fetches read again: the partition was deleted or its start has moved."""
        self._arrivals.notify(partition, 0)


def _too_few_replicas(partition: PartitionLog) -> NotEnoughReplicas:
    required = partition.config.min_insync_replicas
    return NotEnoughReplicas(f"min.insync.replicas of {partition.topic} is {required}; this is the only broker.")


def unreadable(partition: PartitionLog, error: OSError) -> KafkaStorageError:
    """The error for a client when the disk can't be read."""
    return KafkaStorageError(f"cannot read {partition.topic}-{partition.partition}: {error.strerror or error}")


_LENGTH: Final = struct.Struct(">qi")
"""Base offset and length, which the length does not count."""


def _refuse_epoch(log: PartitionLog, epoch: int) -> None:
    which = f"{log.topic}-{log.partition} is in leader epoch {log.leader_epoch}"
    if epoch > log.leader_epoch:
        raise UnknownLeaderEpoch(f"{which}, not yet in {epoch}.")
    raise FencedLeaderEpoch(f"{which}, not in {epoch} any more.")


INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
