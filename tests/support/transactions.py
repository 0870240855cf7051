"""A transaction coordinator whose clock the test advances, with partitions that are lists."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field

from broker.coordinator.committed_offset import TopicPartition
from broker.errors import BrokerError
from broker.transactions import (
    Marker,
    Producer,
    TransactionConfig,
    TransactionCoordinator,
)
from tests.support.groups import ListLog, ManualClock
from tidegate.kit.config import parse

__all__ = ["Coordinator", "ListMarkers", "ListPartition"]


@dataclass(slots=True)
class ListPartition:
    """A partition's contents: records and markers in order, and which producers have a transaction open."""

    entries: list[tuple[Producer, object]] = field(default_factory=list)
    """For each entry its producer, and its record, or True or False for a marker."""
    epochs: dict[int, int] = field(default_factory=dict)
    open: set[int] = field(default_factory=set)

    def append(self, producer: Producer, record: object) -> bool:
        """Whether the record was accepted; it is not from a producer that is fenced here."""
        if producer.epoch < self.epochs.get(producer.id, -1):
            return False
        self.entries.append((producer, record))
        self.epochs[producer.id] = producer.epoch
        self.open.add(producer.id)
        return True

    def in_transaction(self, producer: Producer) -> bool:
        return producer.id in self.open and self.epochs[producer.id] == producer.epoch

    def end(self, producer: Producer, *, commit: bool) -> None:
        assert producer.epoch >= self.epochs.get(producer.id, -1), "a marker came too late"
        self.entries.append((producer, commit))
        self.epochs[producer.id] = producer.epoch
        self.open.discard(producer.id)

    def committed(self) -> list[object]:
        """The records of committed transactions, in the order of their markers."""
        pending: dict[int, list[object]] = {}
        records: list[object] = []
        for producer, entry in self.entries:
            if isinstance(entry, bool):
                records += pending.pop(producer.id, []) if entry else []
                pending.pop(producer.id, None)
            else:
                pending.setdefault(producer.id, []).append(entry)
        return records


class ListMarkers:
    """Markers into lists. ``held`` keeps them from becoming durable until ``release``; ``broken`` partitions fail."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.partitions: dict[TopicPartition, ListPartition] = {}
        self.held = False
        self.broken: set[TopicPartition] = set()
        self._waiting: list[tuple[asyncio.Future[set[TopicPartition]], set[TopicPartition]]] = []

    def partition(self, where: TopicPartition) -> ListPartition:
        return self.partitions.setdefault(where, ListPartition())

    def write(self, marker: Marker, partitions: Iterable[TopicPartition]) -> asyncio.Future[set[TopicPartition]] | None:
        failed = set(partitions) & self.broken
        for where in set(partitions) - failed:
            self.partition(where).end(marker.producer, commit=marker.commit)
        if not self.held and not failed:
            return None
        future: asyncio.Future[set[TopicPartition]] = self._clock.create_future()
        self._waiting.append((future, failed))
        if not self.held:
            self.release()
        return future

    def release(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future, failed in waiting:
            future.set_result(failed)
        self._clock.settle()


class Coordinator:
    """One coordinator with its clock, log and partitions."""

    def __init__(self, **settings: str) -> None:
        self.config = parse(TransactionConfig, {name.replace("_", "."): value for name, value in settings.items()})
        self.clock = ManualClock()
        self.log = ListLog(self.clock)
        self.markers = ListMarkers(self.clock)
        self.next_producer_id = 0
        self.version = 2
        self.coordinator = self.reload()

    def reload(self) -> TransactionCoordinator:
        """Another coordinator on the same log, as after a restart."""
        coordinator = TransactionCoordinator(
            self.log,
            self.markers,
            self.config,
            new_producer_id=self._new_producer_id,
            transaction_version=lambda: self.version,
            clock=self.clock,
        )
        coordinator.start()
        return coordinator

    def restart(self) -> None:
        self.coordinator.stop()
        self.coordinator = self.reload()

    def _new_producer_id(self) -> int:
        self.next_producer_id += 1
        return self.next_producer_id - 1

    def init(
        self, name: str = "x", timeout_ms: int = 60_000, expected: Producer | None = None
    ) -> asyncio.Future[Producer]:
        return self.coordinator.init_producer_id(name, timeout_ms=timeout_ms, expected=expected)

    def add(
        self, producer: Producer, *partitions: TopicPartition, name: str = "x", version: int = 2
    ) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self.clock.create_future()

        def then(error: BrokerError | None) -> None:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)
                future.exception()

        self.coordinator.add_partitions(name, producer, partitions, then, version=version)
        return future

    def end(self, producer: Producer, *, commit: bool, name: str = "x", version: int = 2) -> asyncio.Future[Producer]:
        return self.coordinator.end(name, producer, commit=commit, version=version)
