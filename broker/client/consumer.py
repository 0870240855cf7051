"""The consumer: reads undecoded batches from any Kafka, by assignment or as a member of a consumer group."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Protocol

from aiokafka import ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.structs import TopicPartition as LibraryPartition

from broker.client.batches import TopicPartition
from broker.client.config import ClientConfig
from broker.client.errors import IllegalUse, TopicAuthorizationFailed, translating
from broker.client.fetched import FetchedBatches
from broker.client.fetcher import BatchingConsumer
from broker.client.network import ClientMeasures, measured
from broker.client.reach import first_connection
from tidegate.kit.errors import ConfigError, Problem
from tidegate.kit.java_regex import JavaRegex

if TYPE_CHECKING:
    from typing import Self

__all__ = ["BatchConsumer", "RebalanceListener"]

_ASSIGNORS: Final = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


_FIRST_LOOK_S: Final = 0.1
_LONGEST_LOOK_S: Final = 5.0
"""Intervals at which metadata is refreshed while a topic is missing: the first and the later ones."""


class RebalanceListener(Protocol):
    """Is told of a group's rebalances. Nothing is fetched while one of these methods runs."""

    async def on_revoked(self, partitions: set[TopicPartition]) -> None:
        """Called before the group is joined again: the last chance to commit. The set may be empty."""

    async def on_assigned(self, partitions: set[TopicPartition]) -> None:
        """Called with the new assignment, before its first fetch: the moment to seek. The set may be empty."""


class _WholeName:
    """Matches whole topic names; aiokafka calls ``match`` on a subscription's pattern."""

    def __init__(self, pattern: str) -> None:
        self.match = JavaRegex(pattern).fullmatch


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, ours: RebalanceListener) -> None:
        self._ours = ours

    async def on_partitions_revoked(self, revoked: Iterable[Any]) -> None:
        await self._ours.on_revoked({TopicPartition(*tp) for tp in revoked})

    async def on_partitions_assigned(self, assigned: Iterable[Any]) -> None:
        await self._ours.on_assigned({TopicPartition(*tp) for tp in assigned})


class BatchConsumer:
    """Reads from any Kafka. Use it from one event loop, one fetch at a time. As a context manager it starts and stops
    itself.

    ``fetch`` advances the position when it returns a batch. Only ``commit`` commits it, or a timer with
    enable.auto.commit.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._settings = config.consumer()
        self._assignors = _assignors(self._settings.partition_assignment_strategy)
        self._consumer: BatchingConsumer | None = None
        self._measures: ClientMeasures | None = None
        self._awaiting: asyncio.Task[None] | None = None
        self._subscribed = frozenset[str]()

    async def start(self) -> Self:
        """Connect. Raises NotReachable."""
        settings = self._settings
        arguments = self._config.library_arguments(settings)
        consumer = BatchingConsumer(
            **arguments,
            group_id=settings.group_id,
            group_instance_id=settings.group_instance_id,
            auto_offset_reset=settings.auto_offset_reset,
            isolation_level=settings.isolation_level,
            fetch_min_bytes=settings.fetch_min_bytes,
            fetch_max_bytes=settings.fetch_max_bytes,
            fetch_max_wait_ms=settings.fetch_max_wait_ms,
            max_partition_fetch_bytes=settings.max_partition_fetch_bytes,
            check_crcs=settings.check_crcs,
            enable_auto_commit=settings.enable_auto_commit and settings.group_id is not None,
            auto_commit_interval_ms=settings.auto_commit_interval_ms,
            session_timeout_ms=settings.session_timeout_ms,
            rebalance_timeout_ms=settings.max_poll_interval_ms,
            heartbeat_interval_ms=settings.heartbeat_interval_ms,
            max_poll_interval_ms=settings.max_poll_interval_ms,
            partition_assignment_strategy=self._assignors,
            client_rack=settings.client_rack,
        )
        self._measures = measured(consumer._client, "consumer", creates_topics=settings.allow_auto_create_topics)
        try:
            await first_connection(consumer.start(), arguments["bootstrap_servers"])
        except BaseException:
            await consumer.stop()
            raise
        self._consumer = consumer
        return self

    async def stop(self) -> None:
        """Leave the group and disconnect. Cancelled, it disconnects only: the group misses it after session.timeout.ms."""
        self._stop_awaiting()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def _running(self) -> BatchingConsumer:
        if self._consumer is None:
            raise IllegalUse("the consumer is not running: call start() first")
        return self._consumer

    async def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        """Read exactly these partitions, without a group's rebalances. group.id is then used only to store offsets."""
        with translating("assigning partitions"):
            self._running.assign([LibraryPartition(*tp) for tp in partitions])

    async def subscribe(
        self, topics: Iterable[str] = (), *, pattern: str | None = None, listener: RebalanceListener | None = None
    ) -> None:
        """Join the group and read this member's share of ``topics``, or of all topics whose whole name matches
        ``pattern``, a Java regular expression.

        A topic that does not exist yet is read soon after it is created.
        """
        theirs = _Listener(listener) if listener is not None else None
        with translating("subscribing"):
            if pattern is not None:
                # Same as the library's subscribe, which accepts only Python's pattern syntax.
                self._running._subscription.subscribe_pattern(pattern=_WholeName(pattern), listener=theirs)
                self._running._client.set_topics([])
            else:
                names = list(topics)
                self._running.subscribe(names, listener=theirs)
                self._stop_awaiting()
                self._subscribed = frozenset(names)
                self._awaiting = asyncio.create_task(self._await_topics(self._subscribed), name="await topics")

    async def _await_topics(self, names: frozenset[str]) -> None:
        """Refresh metadata while topics are missing, as Java's clients do, instead of once every metadata.max.age.ms. A topic may be
        deleted later and made again.
        """
        client = self._running._client
        pause_s = _FIRST_LOOK_S
        await client.force_metadata_update()
        while True:
            if names <= client.cluster.topics(exclude_internal_topics=False):
                pause_s = _FIRST_LOOK_S
                await asyncio.sleep(_LONGEST_LOOK_S)
                continue
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, _LONGEST_LOOK_S)
            await client.force_metadata_update()

    @property
    def missing_topics(self) -> frozenset[str]:
        """Subscribed topics that did not exist when metadata was read last. May be asked from any thread."""
        consumer, subscribed = self._consumer, self._subscribed
        if consumer is None or not subscribed:
            return frozenset()
        cluster = consumer._client.cluster
        return subscribed.difference(cluster.topics(exclude_internal_topics=False), cluster.unauthorized_topics)

    def _stop_awaiting(self) -> None:
        if self._awaiting is not None:
            self._awaiting.cancel()
            self._awaiting = None
        self._subscribed = frozenset()

    async def unsubscribe(self) -> None:
        """Leave the group, or drop the assigned partitions."""
        self._stop_awaiting()
        self._running.unsubscribe()

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are being read."""
        return frozenset(TopicPartition(*tp) for tp in self._running.assignment())

    async def fetch(self, max_wait_ms: int = 500, max_bytes: int | None = None) -> list[FetchedBatches]:
        """Return fetched batches, at most one entry per partition and answer. Waits if there are none; returns [] after
        ``max_wait_ms``.

        Adds no more entries once ``max_bytes`` are reached; the next call returns the rest. Raises the error of a
        partition (CorruptMessage, OffsetOutOfRange with auto.offset.reset=none, TopicAuthorizationFailed) without
        moving its position. As with Java's client, a subscribed topic that this
        client may not read raises TopicAuthorizationFailed too.
        """
        consumer = self._running
        if refused := self._subscribed & consumer._client.cluster.unauthorized_topics:
            raise TopicAuthorizationFailed(f"Not authorized to access topics: {', '.join(sorted(refused))}")
        fetched: list[FetchedBatches] = []
        size, deadline = 0, time.monotonic() + max_wait_ms / 1000
        with translating("fetching"), _counted(consumer._subscription.fetch_context()):
            while True:
                timeout = 0 if fetched else max(0.0, deadline - time.monotonic())
                got = await consumer._fetcher.fetched_records([], timeout, max_records=1)
                entries = [entry for part in got.values() for entry in part]
                if not entries:
                    return fetched
                fetched += entries
                got_bytes = sum(entry.size for entry in entries)
                size += got_bytes
                if self._measures is not None:
                    records = sum(batch.header.record_count for entry in entries for batch in entry.batches)
                    self._measures.handed_out(records, got_bytes)
                if max_bytes is not None and size >= max_bytes:
                    return fetched

    async def seek(self, partition: tuple[str, int], offset: int) -> None:
        with translating(f"seeking in {partition}"):
            self._running.seek(LibraryPartition(*partition), offset)

    async def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        """Go to the oldest record of these partitions, or of all assigned ones."""
        with translating("seeking to the beginning"):
            await self._running.seek_to_beginning(*(LibraryPartition(*tp) for tp in partitions))

    async def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        """Go to the end of these partitions, or of all assigned ones."""
        with translating("seeking to the end"):
            await self._running.seek_to_end(*(LibraryPartition(*tp) for tp in partitions))

    async def pause(self, *partitions: tuple[str, int]) -> None:
        """Fetch nothing from these partitions until ``resume``; positions stay."""
        with translating("pausing"):
            self._running.pause(*(LibraryPartition(*tp) for tp in partitions))

    async def resume(self, *partitions: tuple[str, int]) -> None:
        with translating("resuming"):
            self._running.resume(*(LibraryPartition(*tp) for tp in partitions))

    async def position(self, partition: tuple[str, int]) -> int:
        """The offset of the next record that fetch will return."""
        with translating(f"position of {partition}"):
            return int(await self._running.position(LibraryPartition(*partition)))

    async def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit these offsets, or the current positions. Raises for example IllegalGeneration after a rebalance."""
        library_offsets = None if offsets is None else {LibraryPartition(*tp): offset for tp, offset in offsets.items()}
        with translating(f"committing offsets of group {self._settings.group_id}"):
            await self._running.commit(library_offsets)

    async def committed(self, partition: tuple[str, int]) -> int | None:
        """The group's committed offset, read from the broker; None if there is none."""
        with translating(f"committed offset of {partition}"):
            result = await self._running.committed(LibraryPartition(*partition))
        return None if result is None else int(result)

    async def committed_with_note(self, partition: tuple[str, int]) -> tuple[int, str] | None:
        """The group's committed offset and its metadata string; None if there is none."""
        library_partition = LibraryPartition(*partition)
        with translating(f"committed offset of {partition}"):
            result = (await self._running._coordinator.fetch_committed_offsets([library_partition])).get(
                library_partition
            )
        return None if result is None or result.offset < 0 else (int(result.offset), result.metadata or "")

    async def partitions(self, topic: str) -> frozenset[int]:
        """The partitions of a topic.

        Waits for metadata up to request.timeout.ms, then raises UnknownTopicOrPartition.
        """
        with translating(f"metadata of topic {topic}"):
            return frozenset(await asyncio.shield(self._running._client._wait_on_metadata(topic)))


@contextmanager
def _counted(context: AbstractContextManager[None]) -> Iterator[None]:
    """aiokafka's count of running fetches, by which it detects idle consumers.

    Keeps the count right if a fetch raises.
    """
    context.__enter__()
    try:
        yield
    finally:
        context.__exit__(None, None, None)


def _assignors(names: Iterable[str]) -> tuple[Any, ...]:
    result = []
    for name in names:
        short = name.rpartition(".")[2].removesuffix("Assignor").lower()
        if short not in _ASSIGNORS:
            allowed = ", ".join(_ASSIGNORS)
            where = "partition.assignment.strategy"
            raise ConfigError([Problem(where, f"Invalid value {name} for configuration {where}: must be of {allowed}")])
        result.append(_ASSIGNORS[short])
    return tuple(result)
