"""The consumer of a sink task: an async client on the clients' loop, its news told to the task's thread through a queue."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from connect.api import TopicPartition
from connect.clients import ClientLoop

if TYPE_CHECKING:
    from broker.client import BatchConsumer, ClientConfig, FetchedBatches

__all__ = ["KafkaSinkConsumer"]


class KafkaSinkConsumer:
    """A SinkConsumer over any Kafka. Made and used by the task's thread."""

    def __init__(self, loop: ClientLoop, config: ClientConfig, topics: Sequence[str], pattern: str | None) -> None:
        self.events: queue.Queue[tuple[str, Any, Future[None] | None]] = queue.Queue()
        self._loop, self._consumer = loop, loop.run(self._started(config, topics, pattern))

    async def _started(self, config: ClientConfig, topics: Sequence[str], pattern: str | None) -> BatchConsumer:
        from broker.client import BatchConsumer

        consumer = await BatchConsumer(config).start()
        await consumer.subscribe(topics, pattern=pattern, listener=_Listener(self.events))
        return consumer

    def start_fetch(self, max_wait_ms: int, max_bytes: int) -> Future[list[FetchedBatches]]:
        fetching = self._loop.submit(self._consumer.fetch(max_wait_ms, max_bytes))
        fetching.add_done_callback(lambda done: self.events.put(("fetched", done, None)))
        return fetching

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._loop.run(self._consumer.seek(partition, offset))

    def pause(self, *partitions: TopicPartition) -> None:
        if partitions:
            self._loop.run(self._consumer.pause(*partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        if partitions:
            self._loop.run(self._consumer.resume(*partitions))

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        from broker.client import TopicPartition as ClientPartition

        self._loop.run(self._consumer.commit({ClientPartition(*partition): at for partition, at in offsets.items()}))

    def committed(self, partition: TopicPartition) -> int | None:
        return self._loop.run(self._consumer.committed(partition))

    def stop(self) -> None:
        """Leave the group. What it still wants to tell about revoked partitions is waved through."""
        stopping = self._loop.submit(self._consumer.stop())
        stopping.add_done_callback(lambda _: self.events.put(("stopped", None, None)))
        while not stopping.done():
            _, _, done = self.events.get()
            if done is not None:
                done.set_result(None)
        stopping.result()


class _Listener:
    """Hands a rebalance to the task's thread and waits until that has dealt with it."""

    def __init__(self, events: queue.Queue[tuple[str, Any, Future[None] | None]]) -> None:
        self._events = events

    async def on_revoked(self, partitions: set[Any]) -> None:
        await self._told("revoked", partitions)

    async def on_assigned(self, partitions: set[Any]) -> None:
        await self._told("assigned", partitions)

    async def _told(self, what: str, partitions: set[Any]) -> None:
        done: Future[None] = Future()
        self._events.put((what, frozenset(TopicPartition(*partition) for partition in partitions), done))
        await asyncio.wrap_future(done)
