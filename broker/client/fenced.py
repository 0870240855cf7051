"""Exclusive writing to one partition: the broker refuses every writer but the one that claimed it last."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from aiokafka.client import ConnectionGroup, CoordinationType
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import InitProducerIdRequest
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import TopicPartition as LibraryPartition

from broker.client.batches import EncodedBatch, TopicPartition
from broker.client.cluster import Cluster, check
from broker.client.config import ClientConfig
from broker.client.errors import ClientTimeout, IllegalUse, translated, translating
from broker.errors import (
    CoordinatorNotAvailable,
    LeaderNotAvailable,
    MessageTooLarge,
    TransactionalIdAuthorizationFailed,
)
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from typing import Self

__all__ = ["FencedWriter"]

logger = get_logger(__name__)
T = TypeVar("T")

_TRANSACTION_TIMEOUT_MS: Final = 60_000  # no transaction is ever begun
_UNLIMITED: Final = 1 << 30


class FencedWriter:
    """Appends to one partition, from one event loop, one batch at a time; as a context manager it starts and stops
    itself.

    All writers with the same ``writer_id`` share one producer id (to Kafka it is a ``transactional.id``, but no
    transaction is ever begun, so readers of any isolation level see records at once). ``claim`` raises its epoch. From
    the first batch written after it the log refuses writers with an older epoch, however late their batches arrive: a
    writer that was paused or cut off can't write any more, whether or not it knows that it was replaced.

    A user of a secured cluster needs WRITE on the transactional id. Without it, or if the cluster has no transaction
    coordinator, the writer logs a warning and continues unfenced, as an ordinary idempotent producer.
    """

    def __init__(self, config: ClientConfig, partition: TopicPartition, writer_id: str) -> None:
        self._settings = config.producer()
        self._cluster = Cluster(config)
        self._partition = LibraryPartition(*partition)
        self._writer_id = writer_id
        self._producer: tuple[int, int] | None = None
        self._sequence = 0
        self._unfenced_told = False

    async def start(self) -> Self:
        """Connect. Raises NotReachable."""
        await self._cluster.start()
        return self

    async def stop(self) -> None:
        await self._cluster.stop()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def claim(self) -> None:
        """Become the only writer.

        The log refuses the previous one after this one's first write. Raises ClientTimeout.
        """
        self._producer = None
        began, allowed_s = time.monotonic(), self._settings.delivery_timeout_ms / 1000
        try:
            self._producer = await self._until(began + allowed_s / 2, self._fenced_id, "claiming")
        except (TransactionalIdAuthorizationFailed, CoordinatorNotAvailable) as error:
            if not self._unfenced_told:
                logger.warning(
                    "this writer cannot be fenced: two that believe to be the only one could both write",
                    topic=self._partition.topic,
                    transactional_id=self._writer_id,
                    reason=str(error),
                )
                self._unfenced_told = True
            self._producer = await self._until(began + allowed_s, self._plain_id, "claiming")
        self._sequence = 0

    async def write(
        self, records: Sequence[tuple[bytes | None, bytes | None]], *, timestamp_ms: int | None = None
    ) -> int:
        """Append (key, value) pairs as one batch. Returns the offset of the first once all in-sync replicas have it.

        Retries for delivery.timeout.ms, then raises ClientTimeout: it is unknown whether the batch was written, and the
        writer is unusable until ``claim`` is called again. ProducerFenced and InvalidProducerEpoch mean that another
        writer claimed the partition and nothing was written. MessageTooLarge means that nothing was written; the writer
        stays usable.
        """
        if self._producer is None:
            raise IllegalUse(f"{self._where}: claim the partition before writing to it")
        size = sum(len(key or b"") + len(value or b"") for key, value in records)
        if size > self._settings.max_request_size:
            raise MessageTooLarge(
                f"{size} bytes for {self._where} are more than max.request.size={self._settings.max_request_size}"
            )
        data = _encode(records, timestamp_ms).stamp(*self._producer, self._sequence, transactional=False)
        deadline = time.monotonic() + self._settings.delivery_timeout_ms / 1000
        try:
            offset = await self._until(deadline, lambda: self._send(data), "writing to")
        except MessageTooLarge:
            raise
        except BaseException:
            self._producer = None  # its sequence number can be neither reused nor skipped
            raise
        self._sequence = (self._sequence + len(records)) & 0x7FFFFFFF
        return offset

    @property
    def _where(self) -> str:
        return f"{self._partition.topic}-{self._partition.partition}"

    async def _until(self, deadline: float, attempt: Callable[[], Awaitable[T]], doing: str) -> T:
        """Repeat ``attempt`` until it succeeds or fails permanently.

        Raises ClientTimeout or the last error at the deadline.
        """
        pause = self._settings.retry_backoff_ms / 1000
        while True:
            try:
                async with asyncio.timeout(max(0.001, deadline - time.monotonic())):
                    return await attempt()
            except TimeoutError:
                limit = self._settings.delivery_timeout_ms
                raise ClientTimeout(f"{doing} {self._where}: no answer in delivery.timeout.ms={limit}") from None
            except TidegateError as error:
                if not error.retriable:
                    raise
                if time.monotonic() + pause > deadline:
                    if isinstance(error, CoordinatorNotAvailable):
                        raise
                    raise ClientTimeout(f"{doing} {self._where}: {error}") from error
            await asyncio.sleep(pause)
            pause = min(2 * pause, 0.5)

    async def _fenced_id(self) -> tuple[int, int]:
        client = self._cluster._running
        with translating(f"claiming {self._where}"):
            node = await client.coordinator_lookup(CoordinationType.TRANSACTION, self._writer_id)
            request = InitProducerIdRequest(self._writer_id, _TRANSACTION_TIMEOUT_MS)
            answer = await client.send(node, request, group=ConnectionGroup.COORDINATION)
        check(answer.error_code, f"claiming {self._where}")
        return answer.producer_id, answer.producer_epoch

    async def _plain_id(self) -> tuple[int, int]:
        answer = await self._cluster.ask(InitProducerIdRequest(None, _TRANSACTION_TIMEOUT_MS), about=self._where)
        check(answer.error_code, f"claiming {self._where}")
        return answer.producer_id, answer.producer_epoch

    async def _send(self, data: bytes) -> int:
        client = self._cluster._running
        try:
            await client._wait_on_metadata(self._partition.topic)
            leader = client.cluster.leader_for_partition(self._partition)
            if leader is None or leader < 0:
                raise LeaderNotAvailable(f"{self._where} has no leader at the moment")
            topics = [(self._partition.topic, [(self._partition.partition, data)])]
            answer = await client.send(leader, ProduceRequest(None, -1, self._settings.request_timeout_ms, topics))
            _, code, offset, *_ = answer.topics[0][1][0]
            check(code, self._where)
        except Exception as error:
            theirs = translated(error, self._where)
            if getattr(theirs, "retriable", False):
                await client.force_metadata_update()
            raise theirs from error
        return int(offset)


def _encode(records: Sequence[tuple[bytes | None, bytes | None]], timestamp_ms: int | None) -> EncodedBatch:
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, _UNLIMITED)
    for number, (key, value) in enumerate(records):
        builder.append(number, timestamp_ms, key, value, [])
    return EncodedBatch(bytearray(builder.build()), len(records))
