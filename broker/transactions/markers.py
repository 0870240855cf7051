"""Transaction markers: the control records that end a transaction in each of its partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple, Protocol

from broker.coordinator.committed_offset import TopicPartition
from broker.errors import BrokerError, KafkaStorageError, UnknownTopicOrPartition
from broker.log.partition import PartitionLog
from broker.protocol.records import MARKER_SIZE
from broker.storage.durability import Flushed
from broker.storage.partitions import Partitions
from broker.transactions.values import Producer
from tidegate.kit.logs import get_logger

__all__ = ["GroupOffsets", "Marker", "MarkerLog", "Markers"]

logger = get_logger(__name__)


class Marker(NamedTuple):
    """The record that ends a transaction in a partition.

    ``version`` is the ``transaction.version`` of the request that ended it.
    """

    producer: Producer
    commit: bool
    version: int
    coordinator_epoch: int | None = None
    """None means the coordinator of this broker, which has no successor."""


class MarkerLog(Protocol):
    """The coordinator's interface to the partitions."""

    def write(self, marker: Marker, partitions: Iterable[TopicPartition]) -> asyncio.Future[set[TopicPartition]] | None:
        """End a transaction in these partitions; readers see it at once.

        Done when that is durable, with the partitions where it failed and has to be retried; None if everything is
        already durable.
        """
        ...


class GroupOffsets(Protocol):
    """The store of offsets that transactions commit."""

    def end_transaction(self, partition: int, producer_id: int, *, commit: bool) -> None: ...


class Markers:
    """Writes markers into the logs of one broker. ``groups`` have their records in ``offsets_topic``."""

    def __init__(self, partitions: Partitions, groups: GroupOffsets, offsets_topic: str) -> None:
        self._partitions = partitions
        self._groups = groups
        self._offsets_topic = offsets_topic

    def append(self, marker: Marker, topic: str, partition: int) -> PartitionLog:
        """Write one marker to the page cache; its effect is visible at once. Raises BrokerError."""
        log = self._partitions.find(topic, partition)
        log.append_marker(
            *marker.producer,
            commit=marker.commit,
            coordinator_epoch=marker.coordinator_epoch,
            transaction_version=marker.version,
        )
        self._partitions.appended(log, MARKER_SIZE)
        if topic == self._offsets_topic:
            self._groups.end_transaction(partition, marker.producer.id, commit=marker.commit)
        return log

    def durable(self, logs: Iterable[PartitionLog]) -> asyncio.Future[Flushed] | None:
        """See ``Partitions.durable``."""
        return self._partitions.durable(logs)

    def write(self, marker: Marker, partitions: Iterable[TopicPartition]) -> asyncio.Future[set[TopicPartition]] | None:
        failed: set[TopicPartition] = set()
        written: list[PartitionLog] = []
        for where in sorted(partitions):
            try:
                written.append(self.append(marker, *where))
            except UnknownTopicOrPartition:
                continue  # the topic was deleted
            except KafkaStorageError as error:
                logger.warning("a transaction marker could not be written", partition=where, error=error.message)
                failed.add(where)
            except BrokerError as error:
                # A later epoch was here, so this transaction is no longer open in the partition.
                logger.warning("a transaction marker was refused", partition=where, error=error.message)
        durable = self._partitions.durable(written)
        if durable is None and not failed:
            return None
        done: asyncio.Future[set[TopicPartition]] = asyncio.get_running_loop().create_future()

        def flushed(outcome: asyncio.Future[Flushed]) -> None:
            if done.done():
                return
            if outcome.cancelled():
                done.cancel()
                return
            done.set_result(failed | {(log.topic, log.partition) for log in outcome.result()})

        if durable is None:
            done.set_result(failed)
        else:
            durable.add_done_callback(flushed)
        return done
