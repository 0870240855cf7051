"""The consumer for threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
from collections.abc import Callable, Coroutine, Iterable, Mapping
from types import TracebackType
from typing import Any, Protocol, Self, TypeVar

from broker.client import consumer
from broker.client.batches import TopicPartition
from broker.client.blocking.background import call, submit
from broker.client.config import ClientConfig
from broker.client.errors import IllegalUse
from broker.client.fetched import FetchedBatches

__all__ = ["BatchConsumer", "ThreadListener"]

T = TypeVar("T")


class ThreadListener(Protocol):
    """Is told of rebalances in the thread that is calling the consumer, like Java's listener during poll."""

    def on_revoked(self, partitions: set[TopicPartition]) -> None: ...

    def on_assigned(self, partitions: set[TopicPartition]) -> None: ...


class BatchConsumer:
    """``broker.client.BatchConsumer`` for one thread at a time."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._real: consumer.BatchConsumer | None = None
        self._work: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()

    def start(self) -> Self:
        self._real = call(consumer.BatchConsumer(self._config).start())
        return self

    def stop(self) -> None:
        real, self._real = self._real, None
        if real is not None:
            self._call(real.stop())

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _running(self) -> consumer.BatchConsumer:
        if self._real is None:
            raise IllegalUse("the consumer is not running: call start() first")
        return self._real

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for the background loop, and run the listener's calls in this thread when the loop asks for them."""
        future = submit(work)
        future.add_done_callback(lambda _: self._work.put(None))
        try:
            while (task := self._work.get()) is not None or not future.done():
                if task is not None:
                    task()
            return future.result()
        except KeyboardInterrupt:
            future.cancel()
            raise

    def assign(self, partitions: Iterable[tuple[str, int]]) -> None:
        self._call(self._running.assign(partitions))

    def subscribe(
        self, topics: Iterable[str] = (), *, pattern: str | None = None, listener: ThreadListener | None = None
    ) -> None:
        handed = None if listener is None else _Handed(listener, self._work)
        self._call(self._running.subscribe(topics, pattern=pattern, listener=handed))

    def unsubscribe(self) -> None:
        self._call(self._running.unsubscribe())

    def assignment(self) -> frozenset[TopicPartition]:
        return self._running.assignment()

    def fetch(self, max_wait_ms: int = 500, max_bytes: int | None = None) -> list[FetchedBatches]:
        return self._call(self._running.fetch(max_wait_ms, max_bytes))

    def seek(self, partition: tuple[str, int], offset: int) -> None:
        self._call(self._running.seek(partition, offset))

    def seek_to_beginning(self, *partitions: tuple[str, int]) -> None:
        self._call(self._running.seek_to_beginning(*partitions))

    def seek_to_end(self, *partitions: tuple[str, int]) -> None:
        self._call(self._running.seek_to_end(*partitions))

    def pause(self, *partitions: tuple[str, int]) -> None:
        self._call(self._running.pause(*partitions))

    def resume(self, *partitions: tuple[str, int]) -> None:
        self._call(self._running.resume(*partitions))

    def position(self, partition: tuple[str, int]) -> int:
        return self._call(self._running.position(partition))

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        self._call(self._running.commit(offsets))

    def committed(self, partition: tuple[str, int]) -> int | None:
        return self._call(self._running.committed(partition))

    def partitions(self, topic: str) -> frozenset[int]:
        return self._call(self._running.partitions(topic))


class _Handed:
    """Passes a listener's calls from the loop to the consumer's thread and waits until they have run."""

    def __init__(self, listener: ThreadListener, work: queue.SimpleQueue[Callable[[], None] | None]) -> None:
        self._listener, self._work = listener, work

    async def on_revoked(self, partitions: set[TopicPartition]) -> None:
        await self._hand(lambda: self._listener.on_revoked(partitions))

    async def on_assigned(self, partitions: set[TopicPartition]) -> None:
        await self._hand(lambda: self._listener.on_assigned(partitions))

    async def _hand(self, step: Callable[[], None]) -> None:
        ended: concurrent.futures.Future[None] = concurrent.futures.Future()

        def run() -> None:
            try:
                step()
            except Exception as error:  # noqa: BLE001 - handed to the loop, which waits for it
                ended.set_exception(error)
            else:
                ended.set_result(None)

        self._work.put(run)
        await asyncio.wrap_future(ended)
