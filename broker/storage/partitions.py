"""Writing to partitions and reading from them, with what belongs to it: durability, and telling who waits."""

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
"""One node leads every partition from its creation on, so the epoch never changes; `PartitionLog.leader_epoch` has that of
partitions that another broker led before."""
READ_COMMITTED: Final = 1

_ALL: Final = -1


class TopicNames(Protocol):
    """The side of topics that partitions need."""

    def name_of(self, topic_id: uuid.UUID) -> str | None: ...


class Partitions:
    """The partitions of one broker, for its event loop."""

    def __init__(self, topics: TopicNames, logs: LogDirectory, durability: Durability, arrivals: Arrivals) -> None:
        self._topics = topics
        self._logs = logs
        self._durability = durability
        self._arrivals = arrivals
        self._due: set[PartitionLog] = set()
        """Those with as many unflushed records as ``flush.messages`` allows."""

    def get(self, topic: str, partition: int) -> PartitionLog | None:
        return self._logs.get(topic, partition)

    def find(self, topic: str | uuid.UUID, partition: int, leader_epoch: int = -1) -> PartitionLog:
        """Raises UnknownTopicOrPartition, UnknownTopicId, or UnknownLeaderEpoch where the caller knows a newer one."""
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
        """Append a client's records to the page cache; raises what the log refuses, and what ``acks`` cannot be.

        ``transaction_version`` and ``inspected`` as with ``PartitionLog.append``.
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
        """Account for an append of ``size`` bytes: wake who waits, and see that it is flushed in time."""
        config = partition.config
        self._arrivals.notify(partition, size)
        self._durability.appended(partition, config.flush_ms)
        if partition.log_end_offset - partition.flushed_offset >= config.flush_messages:
            self._due.add(partition)
            self._durability.flushed([partition])

    def durable(self, partitions: Iterable[PartitionLog]) -> asyncio.Future[Flushed] | None:
        """A future for what these partitions hold to be as durable as ``acks=all`` promises; None if it is already."""
        to_flush = [
            partition
            for partition in partitions
            if (partition.config.acks_all_durability == "disk" or partition in self._due)
            and partition.flushed_offset < partition.log_end_offset
        ]
        self._due.difference_update(to_flush)
        return self._durability.flushed(to_flush) if to_flush else None

    def due(self, partitions: Iterable[PartitionLog]) -> asyncio.Future[Flushed] | None:
        """A future for the flush of those of these that ``flush.messages`` asks for by now; None where it asks for none."""
        if not self._due:
            return None
        to_flush = self._due.intersection(partitions)
        self._due -= to_flush
        return self._durability.flushed(to_flush) if to_flush else None

    @staticmethod
    def read(
        partition: PartitionLog, offset: int, max_bytes: int, *, isolation_level: int, first: bool
    ) -> LogSlice | None:
        """Whole batches from ``offset`` on; the ``first`` partition of a fetch gives one however large it is.

        None if there are none. Raises OffsetOutOfRange, KafkaStorageError where the disk fails.
        """
        until = partition.last_stable_offset if isolation_level == READ_COMMITTED else None
        try:
            log_slice = partition.read(offset, max_bytes, minimum_one=first, until=until)
        except OSError as error:
            raise unreadable(partition, error) from error
        return log_slice if log_slice.size else None

    def changed(self, partition: PartitionLog) -> None:
        """Let waiting fetches look again: the partition was deleted or its start has moved."""
        self._arrivals.notify(partition, 0)


def _too_few_replicas(partition: PartitionLog) -> NotEnoughReplicas:
    required = partition.config.min_insync_replicas
    return NotEnoughReplicas(f"min.insync.replicas of {partition.topic} is {required}; this is the only broker.")


def unreadable(partition: PartitionLog, error: OSError) -> KafkaStorageError:
    """What a client is told where the disk does not give what it has."""
    return KafkaStorageError(f"cannot read {partition.topic}-{partition.partition}: {error.strerror or error}")


_LENGTH: Final = struct.Struct(">qi")
"""Base offset and length, which stand before what the length counts."""


def _refuse_epoch(log: PartitionLog, epoch: int) -> None:
    which = f"{log.topic}-{log.partition} is in leader epoch {log.leader_epoch}"
    if epoch > log.leader_epoch:
        raise UnknownLeaderEpoch(f"{which}, not yet in {epoch}.")
    raise FencedLeaderEpoch(f"{which}, not in {epoch} any more.")


INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
