"""The producer for threads."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Coroutine, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from broker.client import producer
from broker.client.batches import Ack, EncodedBatch, TopicPartition, TransactionalProducer
from broker.client.blocking.background import call, submit
from broker.client.config import ClientConfig
from broker.client.errors import IllegalUse

__all__ = ["BatchProducer"]


class BatchProducer:
    """``broker.client.BatchProducer`` for threads. Futures are those of ``concurrent.futures``."""

    def __init__(self, config: ClientConfig) -> None:
        self._config = config
        self._real: producer.BatchProducer | None = None

    def start(self) -> Self:
        self._real = call(producer.BatchProducer(self._config).start())
        return self

    def stop(self) -> None:
        real, self._real = self._real, None
        if real is not None:
            call(real.stop())

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def _running(self) -> producer.BatchProducer:
        if self._real is None:
            raise IllegalUse("the producer is not running: call start() first")
        return self._real

    def send_batch(self, topic: str, partition: int, batch: EncodedBatch) -> concurrent.futures.Future[Ack]:
        return _threaded(call(_in_list(self._running.send_batch(topic, partition, batch))))

    def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Ack:
        real = self._running
        return call(real.send(topic, key, value, headers, partition=partition, timestamp_ms=timestamp_ms))

    def enqueue(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> concurrent.futures.Future[Ack]:
        queued = self._running.enqueue(topic, key, value, headers, partition=partition, timestamp_ms=timestamp_ms)
        return _threaded(call(_in_list(queued)))

    def partitions(self, topic: str) -> frozenset[int]:
        return call(self._running.partitions(topic))

    def flush(self) -> None:
        call(self._running.flush())

    def begin_transaction(self) -> None:
        call(self._running.begin_transaction())

    def commit_transaction(self) -> None:
        call(self._running.commit_transaction())

    def leave_transaction(self) -> TransactionalProducer | None:
        return call(self._running.leave_transaction())

    def abort_transaction(self) -> None:
        call(self._running.abort_transaction())

    def send_offsets(self, offsets: Mapping[TopicPartition, int], group_id: str, *, note: str = "") -> None:
        call(self._running.send_offsets(offsets, group_id, note=note))


async def _in_list(queued: Coroutine[Any, Any, asyncio.Future[Ack]]) -> list[asyncio.Future[Ack]]:
    """A future in a list.

    A coroutine that returned the future itself would lose it: ``call`` would await only the outer one.
    """
    return [await queued]


def _threaded(futures: list[asyncio.Future[Ack]]) -> concurrent.futures.Future[Ack]:
    async def wait() -> Ack:
        return await futures[0]

    return submit(wait())
