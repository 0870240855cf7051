"""A compacted topic as a store's log: created if missing, read to its end at the start, followed and written to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from connect.stores.topics import create_topic
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from broker.client import (
        Ack,
        Admin,
        BatchConsumer,
        BatchProducer,
        ClientConfig,
        KafkaRecord,
        NewTopic,
        TopicDescription,
    )

__all__ = ["CompactedTopic", "Entry", "StoreLog", "TopicClients"]

logger = get_logger(__name__)

_PAUSE_S: Final = 0.5
_RETRY_S: Final = 2.0

Entry = tuple[bytes, bytes | None]
"""Key and value of a record."""
Apply = Callable[["KafkaRecord"], None]


@dataclass(frozen=True, slots=True)
class TopicClients:
    """The clients shared by the stores; their owner starts and stops all of them."""

    admin: Admin
    producer: BatchProducer
    consumer_config: ClientConfig
    fit: bool


class StoreLog(Protocol):
    """The storage of a store's records. Use it on one event loop."""

    @property
    def name(self) -> str: ...

    @property
    def failure(self) -> BaseException | None:
        """Why records are no longer followed; None while they are."""
        ...

    async def start(self, apply: Apply) -> None:
        """Pass every record, old and new, to ``apply``, in partition order. Returns when the old ones were passed."""

    async def stop(self) -> None: ...

    async def write(self, *entries: Entry) -> None:
        """Returns when the records are stored, in this order, and have been applied."""

    async def read_to_end(self) -> None:
        """Returns when everything currently stored has been applied."""


class CompactedTopic:
    """A StoreLog shared by workers."""

    def __init__(self, clients: TopicClients, topic: NewTopic) -> None:
        self._clients, self._topic = clients, topic
        self._apply: Apply = lambda _: None
        self._consumer: BatchConsumer | None = None
        self._following: asyncio.Task[None] | None = None
        self._positions: dict[int, int] = {}
        self._moved = asyncio.Condition()
        self._asking = asyncio.Lock()
        self._next_reading: asyncio.Task[None] | None = None

    @property
    def name(self) -> str:
        return self._topic.name

    async def start(self, apply: Apply) -> None:
        """Returns when everything that was in the topic has been applied."""
        self._apply = apply
        from broker.client import BatchConsumer, TopicPartition

        described = await self._found_or_created()
        partitions = [TopicPartition(self.name, entry.partition) for entry in described.partitions]
        self._consumer = await BatchConsumer(self._clients.consumer_config).start()
        await self._consumer.assign(partitions)
        await self._consumer.seek_to_beginning(*partitions)
        firsts = await self._clients.admin.beginning_offsets(partitions)
        self._positions = {partition.partition: first for partition, first in firsts.items()}
        self._following = asyncio.create_task(self._follow(), name=f"follow {self.name}")
        await self.read_to_end()

    async def _found_or_created(self) -> TopicDescription:
        """Waits, with a log message, as long as the log can't say; a cluster that makes thousands of partitions can't."""
        while True:
            try:
                await create_topic(self._clients.admin, self._topic, fit=self._clients.fit)
                return (await self._clients.admin.describe_topics([self.name]))[self.name]
            except TidegateError as error:
                if not error.retriable:
                    raise
                logger.warning(
                    "a topic of the worker's own is not ready; trying again", topic=self.name, error=str(error)
                )
                await asyncio.sleep(_RETRY_S)

    async def stop(self) -> None:
        for task in (self._next_reading, self._following):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError, TidegateError):
                    await task
        if self._consumer is not None:
            await self._consumer.stop()

    @property
    def failure(self) -> BaseException | None:
        """Why the topic is no longer followed; None while it is."""
        if self._following is None or not self._following.done() or self._following.cancelled():
            return None
        return self._following.exception()

    async def write(self, *entries: Entry) -> None:
        """Returns when the log has the records, in this order, and they have been applied here.

        Raises the producer's errors; earlier records may be in the log then.
        """
        await self.applied(await self.send(*entries))

    async def send(self, *entries: Entry) -> Sequence[Ack]:
        """Returns when the log has the records; they are applied soon after."""
        # Queued one after another, so that records in one partition keep their order.
        sent = [await self._clients.producer.enqueue(self.name, key, value) for key, value in entries]
        return await asyncio.gather(*sent)

    async def applied(self, acks: Sequence[Ack]) -> None:
        """Returns when these records have been applied here. Raises the reason if the topic is no longer followed."""
        await self._read_up_to({ack.partition: ack.offset + 1 for ack in acks if ack.offset >= 0})

    async def read_to_end(self) -> None:
        """Returns when everything currently in the log has been applied."""
        # Callers that arrive during a query share the next one: hundreds of connectors that start at once cause two
        # queries, not hundreds.
        if self._next_reading is None:
            self._next_reading = asyncio.create_task(self._read_to_end())
        await asyncio.shield(self._next_reading)

    async def _read_to_end(self) -> None:
        from broker.client import TopicPartition

        async with self._asking:
            self._next_reading = None
            partitions = [TopicPartition(self.name, partition) for partition in self._positions]
            ends = {tp.partition: end for tp, end in (await self._clients.admin.end_offsets(partitions)).items()}
        await self._read_up_to(ends)

    async def _read_up_to(self, ends: dict[int, int]) -> None:
        def reached() -> bool:
            following = self._following
            if following is not None and following.done():
                following.result()
            return all(self._positions[partition] >= end for partition, end in ends.items())

        async with self._moved:
            await self._moved.wait_for(reached)

    async def _follow(self) -> None:
        assert self._consumer is not None
        try:
            while True:
                try:
                    fetched = await self._consumer.fetch(max_wait_ms=1000)
                except TidegateError as error:
                    if not error.retriable:
                        raise
                    logger.warning("cannot read an internal topic; trying again", topic=self.name, error=str(error))
                    await asyncio.sleep(_PAUSE_S)
                    continue
                for part in fetched:
                    for record in part.records():
                        self._apply(record)
                    self._positions[part.partition] = part.next_offset
                if fetched:
                    await self._wake_waiting()
        finally:
            asyncio.get_running_loop().create_task(self._wake_waiting())

    async def _wake_waiting(self) -> None:
        async with self._moved:
            self._moved.notify_all()
