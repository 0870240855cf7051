"""The relay: copies the events that pass a channel's filters from their topics into the channel's.

Each copy and the position in its source are one Kafka transaction, so an event is in a channel once, whatever is killed.
Several events servers share the work as members of a consumer group. A producer has the transactional id of its channel
and source: whoever takes a source over fences the one before, and then begins at the position that was committed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from broker.client import BatchConsumer, BatchProducer, ClientConfig, FetchedBatches, KafkaRecord, TopicPartition
from events.catalog import Catalog
from events.channels import ChannelMember, Channels
from events.errors import BusUnavailable, InvalidMetadata, NotThere, UndecodablePayload
from events.filters import Filter
from events.payloads import EventSchema, unframe
from registry.client import AvroSchema
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import logger

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ChannelRelays"]

log = logger(__name__)

_RETRY_S: Final = 1.0
_FETCH_BYTES: Final = 1024 * 1024
_TRANSACTION_MS: Final = "15000"


class ChannelRelays:
    """One relay per channel with members, begun anew when its members change. ``start`` and ``stop``; one event loop."""

    def __init__(self, config: ClientConfig, channels: Channels, catalog: Catalog) -> None:
        self._config, self._channels, self._catalog = config, channels, catalog
        self._running: dict[str, tuple[tuple[ChannelMember, ...], asyncio.Task[None]]] = {}
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="channels")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for _, task in self._running.values():
            task.cancel()
        await asyncio.gather(*(task for _, task in self._running.values()), return_exceptions=True)

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
        wanted: dict[str, list[ChannelMember]] = {}
        for member in await self._channels.members():
            wanted.setdefault(member.channel, []).append(member)
        for channel, (members, task) in list(self._running.items()):
            if tuple(wanted.get(channel, ())) != members:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
                del self._running[channel]
        for channel, found in wanted.items():
            if channel not in self._running:
                relay = _Relay(self._config, channel, found, self._catalog)
                task = asyncio.create_task(relay.run(), name=f"channel {channel}")
                self._running[channel] = (tuple(found), task)


class _Relay:
    """One channel on this server."""

    def __init__(self, config: ClientConfig, channel: str, members: Sequence[ChannelMember], catalog: Catalog) -> None:
        self._channel, self._catalog = channel, catalog
        self._members = {member.event: member for member in members}
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
        self._producers: dict[str, BatchProducer] = {}
        self._started: list[BatchProducer] = []
        self._filters: dict[tuple[str, int], Filter] = {}
        self._avro: dict[int, AvroSchema] = {}
        self._consumer: BatchConsumer | None = None
        self._assignment = 0

    async def run(self) -> None:
        said = False
        while True:
            try:
                await self._relay()
            except TidegateError as error:
                if not said:
                    log.warning("a channel is not filled; trying again", channel=self._channel, error=str(error))
                said = True
            except Exception:
                log.exception("the relay of a channel broke; trying again", channel=self._channel)
            await asyncio.sleep(_RETRY_S)

    async def _relay(self) -> None:
        try:
            async with BatchConsumer(self._reading) as consumer:
                self._consumer = consumer
                await consumer.subscribe(list(self._members), listener=self)
                while True:
                    everything = await consumer.fetch(60_000, _FETCH_BYTES)
                    assignment = self._assignment
                    for fetched in everything:
                        if assignment != self._assignment:
                            break  # a rebalance came in between and set the positions back to what is committed
                        if fetched.topic in self._producers:  # else its position is still to be set
                            await self._copy(self._producers[fetched.topic], fetched)
        finally:
            await self._close_producers()

    async def on_revoked(self, partitions: set[TopicPartition]) -> None:
        """A copy under way may end: its producer is fenced only when another has taken its source over."""

    async def on_assigned(self, partitions: set[TopicPartition]) -> None:
        """Fence whoever had these sources, and begin where that one's last transaction ended."""
        self._assignment += 1
        await self._close_producers()
        consumer = self._consumer
        assert consumer is not None
        for partition in partitions:
            properties = {
                "transactional.id": f"{self._group}.{partition.topic}",
                "transaction.timeout.ms": _TRANSACTION_MS,
                "max.request.size": str(4 * 1024 * 1024),
            }
            producer = BatchProducer(self._config.with_properties(properties))
            self._started.append(producer)
            await producer.start()
            committed = await consumer.committed(partition)
            position = self._members[partition.topic].since if committed is None else committed
            await consumer.seek(partition, position)
            self._producers[partition.topic] = producer

    async def _close_producers(self) -> None:
        self._producers = {}
        producers, self._started = self._started, []
        for producer in producers:
            with contextlib.suppress(TidegateError):
                await producer.stop(1)

    async def _copy(self, producer: BatchProducer, fetched: FetchedBatches) -> None:
        passing = await self._passing(fetched)
        async with producer.transaction():
            for record in passing:
                await producer.enqueue(
                    self._channel,
                    record.key,
                    record.value,
                    record.headers,
                    partition=0,
                    timestamp_ms=record.timestamp_ms,
                )
            await producer.send_offsets({fetched.topic_partition: fetched.next_offset}, self._group)

    async def _passing(self, fetched: FetchedBatches) -> list[KafkaRecord]:
        """The events of a fetch that the member's filter lets through; a record that is no event is left out, said aloud."""
        found: list[tuple[KafkaRecord, EventSchema]] = []
        for record in fetched.records():
            try:
                if record.value is None:
                    raise UndecodablePayload("The record has no value")
                schema = await self._catalog.schema(unframe(record.value)[0])
            except (UndecodablePayload, NotThere) as error:
                log.warning(
                    "a record in an event topic is not an event; its channel goes without it",
                    channel=self._channel,
                    topic=record.topic,
                    offset=record.offset,
                    error=str(error),
                )
                continue
            found.append((record, schema))
        if not found or not self._members[fetched.topic].filter:
            return [record for record, _ in found]
        return await asyncio.to_thread(self._filtered, fetched.topic, found)

    def _filtered(self, topic: str, found: Sequence[tuple[KafkaRecord, EventSchema]]) -> list[KafkaRecord]:
        import pyarrow as pa

        from registry.serde import CorruptRecord, decode_columns

        schemas = {schema.id: schema for _, schema in found}
        for schema in schemas.values():
            if schema.id not in self._avro:
                self._avro[schema.id] = AvroSchema.parse(schema.text)
        values = pa.array([record.value for record, _ in found], pa.binary())
        try:
            runs = decode_columns(values, self._avro.__getitem__)
        except CorruptRecord as error:
            if len(found) > 1:  # one by one, so that the others are not lost with it
                return [record for each in found for record in self._filtered(topic, [each])]
            log.warning(
                "an event cannot be decoded; its channel goes without it", channel=self._channel, error=str(error)
            )
            return []
        passing: list[KafkaRecord] = []
        for run in runs:
            assert run.schema_id is not None
            passes = self._mask(topic, schemas, run.schema_id, run.array)
            passing += [found[run.start + index][0] for index, passed in enumerate(passes) if passed]
        return passing

    def _mask(self, topic: str, schemas: Mapping[int, EventSchema], schema_id: int, rows: pa.StructArray) -> list[bool]:
        made = self._filters.get((topic, schema_id))
        if made is None:
            try:
                made = Filter(self._members[topic].filter, schemas[schema_id].definition)
            except InvalidMetadata as error:
                # The event's definition lost a field since: nothing of this version can be told to pass.
                log.warning(
                    "a filter does not fit its event any more", channel=self._channel, topic=topic, error=str(error)
                )
                return [False] * len(rows)
            self._filters[topic, schema_id] = made
        passes: list[bool] = made.mask(rows).to_pylist()
        return passes
