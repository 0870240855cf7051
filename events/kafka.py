"""The event log on any Kafka, through ``broker.client``: publish, read, follow, and make topics."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from typing import Final

from broker.client import (
    Ack,
    Admin,
    BatchConsumer,
    BatchProducer,
    ClientConfig,
    EncodedBatch,
    FetchedBatches,
    TopicPartition,
)
from broker.client.errors import MessageTooLarge
from events.errors import BusUnavailable, EventsError, EventTooLarge
from events.log import LogBounds, LogRecord, LogSlice, LogTransaction
from events.registration import Topics
from events.transactions import Transactions
from tidegate.kit.errors import TidegateError

__all__ = ["KafkaLog"]

_FETCH_WAIT_MS: Final = 500
_READ_WAIT_MS: Final = 5000
_FROM_BATCHES: Final = 16
"""So many events at once are sent as batches of their own; fewer share a batch with those of other requests."""
_BATCH_BYTES: Final = 500_000


class KafkaLog:
    """An EventLog and a TopicStore over one cluster. Producer and admin stay connected from ``start`` to ``stop``.

    Readers see committed records only. Following a topic takes a connection of its own; reading history is done by one
    reader, one piece at a time.
    """

    def __init__(self, config: ClientConfig, *, publish_timeout_s: float = 30) -> None:
        producing = {"acks": "all", "enable.idempotence": "true", "max.request.size": str(4 * 1024 * 1024)}
        reading = {
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.auto.commit": "false",
            "fetch.max.wait.ms": str(_FETCH_WAIT_MS),
        }
        given = ClientConfig(config.bootstrap_servers, {"client.id": "tidegate-events", **config.properties})
        self._reading = given.with_properties(reading)
        self._history_config = self._reading.with_properties({"max.partition.fetch.bytes": str(256 * 1024)})
        self._compression = config.properties.get("compression.type", "none")
        self._admin = Admin(given)
        self._producer = BatchProducer(given.with_properties(producing))
        self._topics = Topics(self._admin, self._producer)
        self._transactions = Transactions(given.with_properties({"max.request.size": str(4 * 1024 * 1024)}))
        self._late: dict[str, set[asyncio.Future[Ack]]] = {}
        self._publish_timeout_s = publish_timeout_s
        self._history: BatchConsumer | None = None
        self._history_turn = asyncio.Lock()

    async def start(self) -> None:
        """Connect; raises BusUnavailable when no broker answers."""
        with _border("connecting to the log"):
            await self._admin.start()
            try:
                await self._producer.start()
            except BaseException:
                await self._admin.stop()
                raise

    async def stop(self) -> None:
        """Send what is accepted, then disconnect."""
        await self._producer.stop()
        if self._history is not None:
            await self._history.stop()
        await self._admin.stop()

    async def append(self, topic: str, records: Sequence[tuple[bytes, bytes | None, int]]) -> list[int | TidegateError]:
        if len(records) >= _FROM_BATCHES:
            return await self._append_batches(topic, records)
        loop = asyncio.get_running_loop()
        until = loop.time() + self._publish_timeout_s
        sent: list[asyncio.Future[Ack] | TidegateError] = []
        try:
            for record in records:
                sent.append(await self._enqueue(topic, record, until))  # noqa: PERF401 - what was sent counts if one raises
            waiting = [answer for answer in sent if isinstance(answer, asyncio.Future)]
            if waiting:
                await asyncio.wait(waiting, timeout=max(0.0, until - loop.time()))
        finally:
            self._leave(topic, [sent_ for sent_ in sent if isinstance(sent_, asyncio.Future) and not sent_.done()])
        return [self._answer(topic, answer) for answer in sent]

    async def _append_batches(
        self, topic: str, records: Sequence[tuple[bytes, bytes | None, int]]
    ) -> list[int | TidegateError]:
        """As ``append``, but made into finished batches, which costs by the batch and not by the record."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._publish_timeout_s
        sent: list[tuple[int, asyncio.Future[Ack] | TidegateError]] = []
        try:
            for batch in _encoded(records, self._compression):
                sent.append((batch.count, await self._send(topic, batch, until)))  # noqa: PERF401 - as in append
            waiting = [answer for _, answer in sent if isinstance(answer, asyncio.Future)]
            if waiting:
                await asyncio.wait(waiting, timeout=max(0.0, until - loop.time()))
        finally:
            self._leave(topic, [each for _, each in sent if isinstance(each, asyncio.Future) and not each.done()])
        found: list[int | TidegateError] = []
        for count, each in sent:
            answer = self._answer(topic, each)
            if answer == -1:
                answer = BusUnavailable(f"The log has events for {topic} and no longer knows at which offsets")
            found += range(answer, answer + count) if isinstance(answer, int) else [answer] * count
        return found

    async def _send(self, topic: str, batch: EncodedBatch, until: float) -> asyncio.Future[Ack] | TidegateError:
        try:
            async with asyncio.timeout_at(until):
                return await self._producer.send_batch(topic, 0, batch)
        except TidegateError as error:
            return error
        except TimeoutError:
            return BusUnavailable(f"The log took no event for {topic} within {self._publish_timeout_s:g} s")

    def _leave(self, topic: str, late: Sequence[asyncio.Future[Ack]]) -> None:
        """Nobody waits for these any more; their outcome is taken so that a late failure is not reported as unseen."""
        for future in late:
            held = self._late.setdefault(topic, set())
            held.add(future)
            future.add_done_callback(held.discard)
            future.add_done_callback(lambda done: done.cancelled() or done.exception())

    async def settled(self, topic: str) -> None:
        late = self._late.get(topic)
        if late:
            await asyncio.wait(late, timeout=self._publish_timeout_s)
            if late:
                raise BusUnavailable(f"The log has not yet answered for earlier events of {topic}")

    def transaction(self) -> contextlib.AbstractAsyncContextManager[LogTransaction]:
        return self._transactions.open()

    async def _enqueue(
        self, topic: str, record: tuple[bytes, bytes | None, int], until: float
    ) -> asyncio.Future[Ack] | TidegateError:
        key, value, timestamp_ms = record
        try:
            async with asyncio.timeout_at(until):
                return await self._producer.enqueue(topic, key, value, partition=0, timestamp_ms=timestamp_ms)
        except TidegateError as error:
            return error
        except TimeoutError:
            return BusUnavailable(f"The log took no event for {topic} within {self._publish_timeout_s:g} s")

    def _answer(self, topic: str, answer: asyncio.Future[Ack] | TidegateError) -> int | TidegateError:
        if isinstance(answer, asyncio.Future):
            if not answer.done():
                return BusUnavailable(
                    f"The log did not acknowledge the event for {topic} within {self._publish_timeout_s:g} s; "
                    "it may still be published"
                )
            error = answer.exception()
            if error is None:
                return answer.result().offset
            if not isinstance(error, TidegateError):
                raise error
            answer = error
        if isinstance(answer, MessageTooLarge):
            return EventTooLarge(str(answer))
        if isinstance(answer, EventsError) or not answer.retriable:
            return answer
        return BusUnavailable(f"Publishing to {topic}: {answer}")

    async def bounds(self, topic: str) -> LogBounds:
        partition = TopicPartition(topic, 0)
        with _border(f"offsets of {topic}"):
            described, start, end, readable = await asyncio.gather(
                self._admin.describe_topics([topic]),
                self._admin.beginning_offsets([partition]),
                self._admin.end_offsets([partition]),
                self._admin.end_offsets([partition], committed=True),
            )
        stable = min(readable[partition], end[partition])
        return LogBounds(start[partition], end[partition], stable, str(described[topic].topic_id))

    async def ends(self, topic: str, count: int) -> list[int]:
        with _border(f"offsets of {topic}"):
            found = await self._admin.end_offsets([TopicPartition(topic, number) for number in range(count)])
        return [found[TopicPartition(topic, number)] for number in range(count)]

    async def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        partition = TopicPartition(topic, 0)
        with _border(f"offset of {topic} at {timestamp_ms}"):
            found = (await self._admin.offsets_for_times({partition: timestamp_ms}))[partition]
        return None if found is None else found.offset

    async def read(self, topic: str, offset: int, max_bytes: int) -> LogSlice:
        partition = TopicPartition(topic, 0)
        async with self._history_turn:
            with _border(f"reading {topic} at {offset}"):
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
        with _border(f"following {topic}"):
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

    async def kept(self, topic: str) -> int | None:
        return await self._topics.kept(topic)


def _encoded(records: Sequence[tuple[bytes, bytes | None, int]], compression: str) -> list[EncodedBatch]:
    import pyarrow as pa

    from broker.client.columns import encode_batches

    keys, values, times = zip(*records, strict=True)
    columns = pa.array(keys, pa.binary()), pa.array(values, pa.binary()), pa.array(times, pa.int64())
    return encode_batches(*columns, compression=compression, max_bytes=_BATCH_BYTES)


def _slice(fetched: Sequence[FetchedBatches], offset: int) -> LogSlice:
    records = [
        LogRecord(record.offset, record.key, record.value, record.timestamp_ms)
        for entry in fetched
        for record in entry.records()
    ]
    return LogSlice(records, fetched[-1].next_offset if fetched else offset)


@contextlib.contextmanager
def _border(about: str) -> Iterator[None]:
    """What the client raises and time may heal leaves as BusUnavailable."""
    try:
        yield
    except BusUnavailable:
        raise
    except TidegateError as error:
        if not error.retriable:
            raise
        raise BusUnavailable(f"{about}: {error}") from error
