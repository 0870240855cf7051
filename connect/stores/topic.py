"""One compacted topic as a store's log: created if missing, read to its end at the start, followed and written to."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from connect.topics import create_topic
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import logger

if TYPE_CHECKING:
    from broker.client import Admin, BatchConsumer, BatchProducer, ClientConfig, KafkaRecord, NewTopic

__all__ = ["CompactedTopic", "TopicClients"]

log = logger(__name__)

_PAUSE_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class TopicClients:
    """What the stores share; all are started and stopped by their owner."""

    admin: Admin
    producer: BatchProducer
    consumer_config: ClientConfig
    fit: bool


class CompactedTopic:
    """Hands every record, old and new, to ``apply`` in the order of its partition; from one event loop."""

    def __init__(self, clients: TopicClients, topic: NewTopic, apply: Callable[[KafkaRecord], None]) -> None:
        self._clients, self._topic, self._apply = clients, topic, apply
        self._consumer: BatchConsumer | None = None
        self._following: asyncio.Task[None] | None = None
        self._positions: dict[int, int] = {}
        self._moved = asyncio.Condition()

    @property
    def name(self) -> str:
        return self._topic.name

    async def start(self) -> None:
        """Returns when everything that was in the topic has been applied."""
        from broker.client import BatchConsumer, TopicPartition

        await create_topic(self._clients.admin, self._topic, fit=self._clients.fit)
        described = (await self._clients.admin.describe_topics([self.name]))[self.name]
        partitions = [TopicPartition(self.name, entry.partition) for entry in described.partitions]
        self._consumer = await BatchConsumer(self._clients.consumer_config).start()
        await self._consumer.assign(partitions)
        await self._consumer.seek_to_beginning(*partitions)
        firsts = await self._clients.admin.beginning_offsets(partitions)
        self._positions = {partition.partition: first for partition, first in firsts.items()}
        self._following = asyncio.create_task(self._follow(), name=f"follow {self.name}")
        await self.read_to_end()

    async def stop(self) -> None:
        if self._following is not None:
            self._following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._following
        if self._consumer is not None:
            await self._consumer.stop()

    @property
    def failure(self) -> BaseException | None:
        """Why the topic is not followed any more; None while it is."""
        if self._following is None or not self._following.done() or self._following.cancelled():
            return None
        return self._following.exception()

    async def write(self, key: bytes, value: bytes | None) -> None:
        """Returns when the log has it and it has been applied here. Raises what the producer raises."""
        await self._clients.producer.send(self.name, key, value)
        await self.read_to_end()

    async def send(self, key: bytes, value: bytes | None) -> None:
        """Returns when the log has it; it is applied soon after."""
        await self._clients.producer.send(self.name, key, value)

    async def read_to_end(self) -> None:
        """Returns when everything that is in the log now has been applied."""
        from broker.client import TopicPartition

        partitions = [TopicPartition(self.name, partition) for partition in self._positions]
        ends = {tp.partition: end for tp, end in (await self._clients.admin.end_offsets(partitions)).items()}

        def reached() -> bool:
            following = self._following
            if following is not None and following.done():
                following.result()
            return all(self._positions[partition] >= end for partition, end in ends.items())

        async with self._moved:
            await self._moved.wait_for(reached)

    async def _follow(self) -> None:
        assert self._consumer is not None
        while True:
            try:
                fetched = await self._consumer.fetch(max_wait_ms=1000)
            except TidegateError as error:
                if not error.retriable:
                    raise
                log.warning("cannot read an internal topic; trying again", topic=self.name, error=str(error))
                await asyncio.sleep(_PAUSE_S)
                continue
            for part in fetched:
                for record in part.records():
                    self._apply(record)
                self._positions[part.partition] = part.next_offset
            if fetched:
                async with self._moved:
                    self._moved.notify_all()
