"""The event log on any Kafka, through ``broker.client``: publishes, reads, follows, and creates topics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Final

from broker.client import Admin, BatchConsumer, BatchProducer, ClientConfig, FetchedBatches, TopicPartition
from events.errors import BusUnavailable
from events.store.appending import Appender, Record
from events.store.log import LogBounds, LogRecord, LogSlice, LogTransaction
from events.store.registration import Topics
from events.store.transactions import Transactions
from tidegate.kit.errors import TidegateError

__all__ = ["KafkaLog"]

_FETCH_WAIT_MS: Final = 500
_READ_WAIT_MS: Final = 5000


class KafkaLog:
    """An EventLog and a TopicStore over one cluster. Producer and admin stay connected from ``start`` to ``stop``.

    Readers see only committed records. Following a topic takes a separate connection; older events are read by one
    shared reader, one request at a time.
    """

    def __init__(self, config: ClientConfig, *, publish_timeout_s: float = 30) -> None:
        producing = {"acks": "all", "enable.idempotence": "true", "max.request.size": str(4 * 1024 * 1024)}
        reading = {
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": "false",
            "fetch.max.wait.ms": str(_FETCH_WAIT_MS),
        }
        client_config = ClientConfig(config.bootstrap_servers, {"client.id": "tidegate-events", **config.properties})
        self._reading = client_config.with_properties(reading)
        self._history_config = self._reading.with_properties({"max.partition.fetch.bytes": str(256 * 1024)})
        self._admin = Admin(client_config)
        self._producer = BatchProducer(client_config.with_properties(producing))
        compression = config.properties.get("compression.type", "none")
        self._appender = Appender(self._producer, compression=compression, timeout_s=publish_timeout_s)
        self._topics = Topics(self._admin, self._producer)
        self._transactions = Transactions(client_config.with_properties({"max.request.size": str(4 * 1024 * 1024)}))
        self._history: BatchConsumer | None = None
        self._history_turn = asyncio.Lock()

    async def start(self) -> None:
        """Connect. Raises BusUnavailable if no broker answers."""
        with _translating("connecting to the log"):
            await self._admin.start()
            try:
                await self._producer.start()
            except BaseException:
                await self._admin.stop()
                raise

    async def stop(self) -> None:
        """Send pending records, then disconnect."""
        self._appender.refuse_waiting()
        await self._producer.stop()
        await self._appender.stop()
        if self._history is not None:
            await self._history.stop()
        await self._admin.stop()

    async def append(
        self, topic: str, records: Sequence[Record], *, timeout_s: float | None = None
    ) -> list[int | TidegateError]:
        return await self._appender.append(topic, records, timeout_s)

    async def settled(self, topic: str) -> None:
        await self._appender.settled(topic)

    async def flushed(self, topic: str) -> None:
        await self._appender.flushed(topic)

    def transaction(self) -> contextlib.AbstractAsyncContextManager[LogTransaction]:
        return self._transactions.open()

    async def bounds(self, topic: str) -> LogBounds:
        partition = TopicPartition(topic, 0)
        with _translating(f"offsets of {topic}"):
            described, start, end, readable = await asyncio.gather(
                self._admin.describe_topics([topic]),
                self._admin.beginning_offsets([partition]),
                self._admin.end_offsets([partition]),
                self._admin.end_offsets([partition], committed=True),
            )
        stable = min(readable[partition], end[partition])
        return LogBounds(start[partition], end[partition], stable, str(described[topic].topic_id))

    async def readable(self, topic: str) -> int:
        partition = TopicPartition(topic, 0)
        with _translating(f"offsets of {topic}"):
            return (await self._admin.end_offsets([partition], committed=True))[partition]

    async def ends(self, topic: str, count: int) -> list[int]:
        with _translating(f"offsets of {topic}"):
            offsets = await self._admin.end_offsets([TopicPartition(topic, number) for number in range(count)])
        return [offsets[TopicPartition(topic, number)] for number in range(count)]

    async def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        partition = TopicPartition(topic, 0)
        with _translating(f"offset of {topic} at {timestamp_ms}"):
            position = (await self._admin.offsets_for_times({partition: timestamp_ms}))[partition]
        return None if position is None else position.offset

    async def read(self, topic: str, offset: int, max_bytes: int) -> LogSlice:
        partition = TopicPartition(topic, 0)
        async with self._history_turn:
            with _translating(f"reading {topic} at {offset}"):
                consumer = await self._history_reader()
                await consumer.assign([partition])
                await consumer.seek(partition, offset)
                fetched = await consumer.fetch(_READ_WAIT_MS, max_bytes)
        return _slice(fetched, offset)

    async def _history_reader(self) -> BatchConsumer:
        if self._history is None:
            self._history = await BatchConsumer(self._history_config).start()
        return self._history

    async def follow(self, topic: str, offset: int) -> AsyncGenerator[LogSlice, None]:
        partition = TopicPartition(topic, 0)
        with _translating(f"following {topic}"):
            async with BatchConsumer(self._reading) as consumer:
                await consumer.assign([partition])
                await consumer.seek(partition, offset)
                while True:
                    for fetched in await consumer.fetch(60_000):
                        yield _slice([fetched], offset)

    async def partitions(self, topic: str) -> int | None:
        return await self._topics.partitions(topic)

    async def create(self, topic: str, retention_ms: int) -> None:
        await self._topics.create(topic, retention_ms)

    async def create_compacted(self, topic: str) -> None:
        await self._topics.create_compacted(topic)

    async def keep(self, topic: str, retention_ms: int) -> None:
        await self._topics.keep(topic, retention_ms)

    async def retention_ms(self, topic: str) -> int | None:
        return await self._topics.retention_ms(topic)


def _slice(fetched: Sequence[FetchedBatches], offset: int) -> LogSlice:
    records = [
        LogRecord(record.offset, record.key, record.value, record.timestamp_ms)
        for entry in fetched
        for record in entry.records()
    ]
    return LogSlice(records, fetched[-1].next_offset if fetched else offset)


@contextlib.contextmanager
def _translating(about: str) -> Iterator[None]:
    """Translates retriable errors of the client into BusUnavailable."""
    try:
        yield
    except BusUnavailable:
        raise
    except TidegateError as error:
        if not error.retriable:
            raise
        raise BusUnavailable(f"{about}: {error}") from error
