"""The relay: fills each channel from the topics of its members.

Copied events and the position in their source are one Kafka transaction, so that an event is in a channel exactly once,
whatever is killed. Several events servers share the work as members of a consumer group. A producer's transactional id
is derived from its channel and source: a server that takes a source over fences the previous one, then starts at the
committed position.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Hashable, Mapping, Sequence
from typing import Any, Final

from broker.client import BatchConsumer, BatchProducer, ClientConfig, FetchedBatches, TopicPartition
from events.channels.captured_changes import ChangeSource
from events.channels.channels import ChannelMember, Channels
from events.channels.relay_sources import EventSource, RelaySource
from events.errors import BusUnavailable
from events.store.catalog import Catalog
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["ChannelRelays"]

logger = get_logger(__name__)

_RETRY_S: Final = 1.0
_FETCH_BYTES: Final = 1024 * 1024
_TRANSACTION_MS: Final = "15000"
_START_S: Final = 10.0


class ChannelRelays:
    """One relay per channel with members, restarted when its members change.

    ``start`` and ``stop``; use it on one event loop.
    """

    def __init__(self, config: ClientConfig, channels: Channels, catalog: Catalog, *, commit_user: str) -> None:
        """``commit_user`` is the id of the user named as the author of all changes."""
        self._config, self._channels, self._catalog, self._commit_user = config, channels, catalog, commit_user
        self._running: dict[str, tuple[Hashable, asyncio.Task[None]]] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="channels")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for channel in list(self._running):
            self._end(channel)
        if self._ending:
            await asyncio.wait(set(self._ending))

    def _end(self, channel: str) -> asyncio.Task[None]:
        """Stop a relay.

        It is cancelled only once, because a second time would interrupt its disconnects from the brokers.
        """
        _, task = self._running.pop(channel)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
        task.cancel()
        return task

    async def _run(self) -> None:
        with self._channels.listening(self._changed.set):
            while True:
                self._changed.clear()
                try:
                    await self._adapt()
                    await self._changed.wait()
                except BusUnavailable:
                    await asyncio.sleep(_RETRY_S)

    async def _adapt(self) -> None:
        by_topic: dict[str, list[RelaySource]] = {}
        plans: dict[str, list[Hashable]] = {}
        for source, channel, plan in await self._sources():
            by_topic.setdefault(channel, []).append(source)
            plans.setdefault(channel, []).append(plan)
        for channel, (plan, _) in list(self._running.items()):
            if tuple(plans.get(channel, ())) != plan:
                await asyncio.wait([self._end(channel)])
        for channel, sources in by_topic.items():
            if channel not in self._running:
                relay = _Relay(self._config, channel, sources)
                task = asyncio.create_task(relay.run(), name=f"channel {channel}")
                self._running[channel] = (tuple(plans[channel]), task)

    async def _sources(self) -> list[tuple[RelaySource, str, Hashable]]:
        """The sources of channels, each with its channel and a key that changes when the relay must be restarted."""
        entities = {entity.event: entity for entity in await self._channels.entities.all()}
        sources: list[tuple[RelaySource, str, Hashable]] = []
        alone = [ChannelMember(name=event, channel=event, event=event) for event in entities]
        for member in [*await self._channels.members(), *alone]:
            entity = entities.get(member.event)
            if entity is not None:
                change = ChangeSource(member, entity, self._catalog, commit_user=self._commit_user)
                sources.append((change, member.channel, repr((member, entity))))
            else:
                sources.append((EventSource(member, self._catalog), member.channel, repr(member)))
        return sources


class _Relay:
    """One channel on this server."""

    def __init__(self, config: ClientConfig, channel: str, sources: Sequence[RelaySource]) -> None:
        self._channel = channel
        self._sources: Mapping[str, RelaySource] = {source.topic: source for source in sources}
        self._group = f"tidegate-events.{channel}"
        self._config = config
        reading = {
            "group.id": self._group,
            "isolation.level": "read_committed",
            "enable.auto.commit": "false",
            "auto.offset.reset": "earliest",
            "fetch.max.wait.ms": "500",
            "session.timeout.ms": "10000",
            "heartbeat.interval.ms": "3000",
        }
        self._reading = config.with_properties(reading)
        self._producers: dict[TopicPartition, BatchProducer] = {}
        self._started: list[BatchProducer] = []
        self._assigned: frozenset[TopicPartition] = frozenset()
        self._assignment = self._prepared = 0

    async def run(self) -> None:
        said = False
        while True:
            try:
                await self._relay()
            except TidegateError as error:
                if not said:
                    logger.warning("a channel is not filled; trying again", channel=self._channel, error=str(error))
                said = True
            except Exception:
                logger.exception("the relay of a channel broke; trying again", channel=self._channel)
            await asyncio.sleep(_RETRY_S)

    async def _relay(self) -> None:
        consumer = BatchConsumer(self._reading)
        try:
            await _to_its_end(consumer.start())
            await consumer.subscribe(list(self._sources), listener=self)
            while True:
                if self._prepared != self._assignment:
                    await self._prepare(consumer, self._assignment)
                for fetched in await consumer.fetch(60_000, _FETCH_BYTES):
                    if self._prepared != self._assignment:
                        break  # a rebalance came in between: the batch was read from a position that is no longer ours
                    await self._copy(self._producers[fetched.topic_partition], fetched)
        finally:
            await consumer.stop()
            await self._close_producers()

    async def on_revoked(self, partitions: set[TopicPartition]) -> None:
        """A running copy may finish: its producer is fenced only when another server has taken its source over."""

    async def on_assigned(self, partitions: set[TopicPartition]) -> None:
        """Only records the assignment.

        Fallible work is done where an error restarts the relay, which it does not during a rebalance.
        """
        self._assigned = frozenset(partitions)
        self._assignment += 1

    async def _prepare(self, consumer: BatchConsumer, assignment: int) -> None:
        """Fence the previous owners of these sources, and start where their last transactions ended."""
        await self._close_producers()
        for partition in self._assigned:
            properties = {
                "transactional.id": f"{self._group}.{partition.topic}-{partition.partition}",
                "transaction.timeout.ms": _TRANSACTION_MS,
                "max.request.size": str(4 * 1024 * 1024),
            }
            producer = BatchProducer(self._config.with_properties(properties))
            self._started.append(producer)
            await _to_its_end(producer.start())
            source = self._sources[partition.topic]
            # A member that was deleted and created again starts at its creation, not at the old member's position.
            since = source.since(partition.partition)
            position, note = await consumer.committed_with_note(partition) or (since, "")
            if position < since:
                position, note = since, ""
            await consumer.seek(partition, position)
            source.resume(partition.partition, note)
            self._producers[partition] = producer
        self._prepared = assignment

    async def _close_producers(self) -> None:
        self._producers = {}
        producers, self._started = self._started, []
        for producer in producers:
            with contextlib.suppress(TidegateError):
                await producer.stop(1)

    async def _copy(self, producer: BatchProducer, fetched: FetchedBatches) -> None:
        copies, note = await self._sources[fetched.topic].copies(fetched)
        async with producer.transaction():
            for copy in copies:
                await producer.enqueue(
                    self._channel, copy.key, copy.value, copy.headers, partition=0, timestamp_ms=copy.timestamp_ms
                )
            await producer.send_offsets({fetched.topic_partition: fetched.next_offset}, self._group, note=note)


async def _to_its_end(starting: Coroutine[Any, Any, object]) -> None:
    """Wait for a client's start, and only then for the cancellation: otherwise aiokafka leaves a connection open."""
    task = asyncio.ensure_future(starting)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task], timeout=_START_S)
        if task.done() and not task.cancelled():
            task.exception()  # mark as retrieved
        raise
