"""The producer: sends finished batches and single records to any Kafka; by default idempotent and with acks=all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from aiokafka.producer.transaction_manager import TransactionState
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import OffsetAndMetadata
from aiokafka.structs import TopicPartition as LibraryPartition

from broker.client.batches import Ack, EncodedBatch, TopicPartition, TransactionalProducer
from broker.client.config import ClientConfig
from broker.client.errors import ClientTimeout, IllegalUse, translated, translating
from broker.client.network import ClientMeasures, measured
from broker.client.reach import first_connection
from broker.client.sender import BatchingProducer, FinishedBatch
from broker.client.windows import MOST_IN_FLIGHT
from broker.errors import ClusterAuthorizationFailed, MessageTooLarge, UnknownTopicOrPartition
from tidegate.kit.errors import TidegateError

if TYPE_CHECKING:
    from typing import Self

__all__ = ["BatchProducer", "Transaction"]


_CAN_BE_ABORTED: Final = (TransactionState.IN_TRANSACTION, TransactionState.ABORTABLE_ERROR)


class BatchProducer:
    """Sends to any Kafka. Use it from one event loop. As a context manager it starts and stops itself.

    Order: batches and records for one partition arrive in the order of the calls, each exactly once, if the producer is
    idempotent (the default). It retries, across broker restarts too, until the broker answers or delivery.timeout.ms
    have passed. Up to max.in.flight.requests.per.connection finished batches are in flight at once. Single records wait
    for the previous answer and share the next batch. A permanent refusal (a record too large) or a ClientTimeout is
    raised for that batch alone; later batches continue.
    """

    def __init__(self, config: ClientConfig) -> None:
        self._settings = config.producer()
        self._config = config
        self._producer: BatchingProducer | None = None
        self._measures: ClientMeasures | None = None
        self._failure: BaseException | None = None

    async def start(self) -> Self:
        """Connect, and with idempotence obtain a producer id. Raises NotReachable."""
        settings = self._settings
        arguments = self._config.library_arguments(settings)
        if settings.idempotent:
            arguments["enable_idempotence"] = True
        if settings.transactional_id is not None:
            arguments["transactional_id"] = settings.transactional_id
            arguments["transaction_timeout_ms"] = settings.transaction_timeout_ms
        producer = BatchingProducer(
            **arguments,
            delivery_timeout_ms=settings.delivery_timeout_ms,
            max_in_flight=min(settings.max_in_flight, MOST_IN_FLIGHT),
            acks=settings.acks if settings.acks == "all" else int(settings.acks),
            compression_type=None if settings.compression_type == "none" else settings.compression_type,
            linger_ms=settings.linger_ms,
            max_batch_size=settings.batch_size,
            max_request_size=settings.max_request_size,
        )
        self._measures = measured(producer.client, "producer")
        try:
            await first_connection(producer.start(), arguments["bootstrap_servers"])
        except ClusterAuthorizationFailed as error:
            await producer.stop()
            raise ClusterAuthorizationFailed(
                "the user may not write to any topic, so it gets no producer: it needs a right to write to the topic"
            ) from error
        except BaseException:
            await producer.stop()
            raise
        self._producer = producer
        return self

    async def stop(self, timeout_s: float | None = None) -> None:
        """Send everything queued, then disconnect. Batches not acknowledged in time fail with ClientTimeout.

        The time limit is delivery.timeout.ms unless ``timeout_s`` is passed.
        """
        producer, self._producer = self._producer, None
        if producer is None:
            return
        patience_s = self._settings.delivery_timeout_ms / 1000 if timeout_s is None else timeout_s
        try:
            async with asyncio.timeout(patience_s):
                await producer.flush()
        except TimeoutError:
            late = ClientTimeout(f"not acknowledged when the producer was stopped, within {patience_s:g} s")
            producer._message_accumulator.fail_all(late)
        await producer.stop()

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def _running(self) -> BatchingProducer:
        if self._producer is None:
            raise IllegalUse("the producer is not running: call start() first")
        return self._producer

    async def send_batch(self, topic: str, partition: int, batch: EncodedBatch) -> asyncio.Future[Ack]:
        """Queue a finished batch. Returns when there is room for the next one, which is the back-pressure.

        The future is done when the broker has answered. Raises UnknownTopicOrPartition if the topic or partition still
        does not exist after request.timeout.ms.
        """
        producer = self._running
        self._check_transaction(topic)
        await self._check_partition(topic, partition)
        builder = FinishedBatch(batch, transactional=self._settings.transactional_id is not None)
        with translating(f"{topic}-{partition}"):
            future = await producer._message_accumulator.add_batch(
                builder, LibraryPartition(topic, partition), self._settings.delivery_timeout_ms / 1000
            )
        return self._acked(future, topic, partition, batch.count)

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Ack:
        """Send one record and wait until it is acknowledged."""
        return await (await self.enqueue(topic, key, value, headers, partition=partition, timestamp_ms=timestamp_ms))

    async def enqueue(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes | None]] = (),
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> asyncio.Future[Ack]:
        """Add one record to its partition's batch. Waits only for room; the broker's answer completes the future.

        Without ``partition`` the key's murmur2 hash selects it, as in Java's client; without a key it is random.
        """
        producer = self._running
        self._check_transaction(topic)
        header_list = list(headers)
        size = DefaultRecordBatchBuilder.estimate_size_in_bytes(key, value, header_list)
        if size > self._settings.max_request_size:
            raise MessageTooLarge(
                f"a record for {topic} has {size} bytes, more than max.request.size={self._settings.max_request_size}"
            )
        if partition is None:
            partitions = sorted(await self.partitions(topic))
            partition = producer._partitioner(key, partitions, partitions)
        else:
            await self._check_partition(topic, partition)
        with translating(f"{topic}-{partition}"):
            future = await producer._message_accumulator.add_message(
                LibraryPartition(topic, partition),
                key,
                value,
                self._settings.delivery_timeout_ms / 1000,
                timestamp_ms=timestamp_ms,
                headers=header_list,
            )
        return self._acked(future, topic, partition, 1)

    async def partitions(self, topic: str) -> frozenset[int]:
        """The partitions of a topic, according to cached metadata."""
        producer = self._running
        known = producer._metadata.partitions_for_topic(topic)
        if known is None:
            with translating(f"metadata of topic {topic}"):
                known = await producer.client._wait_on_metadata(topic)
        return frozenset(known)

    def _check_transaction(self, topic: str) -> None:
        sequences = self._running._txn_manager
        if sequences is not None and sequences.transactional_id is not None and not sequences.is_in_transaction():
            raise IllegalUse(f"a transactional producer sends to {topic} only within a transaction")

    async def _check_partition(self, topic: str, partition: int) -> None:
        if partition not in await self.partitions(topic):
            with translating(f"metadata of topic {topic}"):
                await self._running.client.force_metadata_update()
            if partition not in await self.partitions(topic):
                raise UnknownTopicOrPartition(f"topic {topic} has no partition {partition}")

    def _acked(self, future: asyncio.Future[Any], topic: str, partition: int, records: int) -> asyncio.Future[Ack]:
        """A future with our Ack and our errors. The first error of a transaction is kept for its commit."""
        ours: asyncio.Future[Ack] = future.get_loop().create_future()

        def done(theirs: asyncio.Future[Any]) -> None:
            error = None if theirs.cancelled() else theirs.exception()
            if self._measures is not None:
                self._measures.answered_records(records, refused=error is not None)
            if error is not None:
                error = translated(error, f"{topic}-{partition}")
                self._failure = self._failure or error
            if ours.done():
                return
            if theirs.cancelled():
                ours.cancel()
            elif error is not None:
                ours.set_exception(error)
                if self._settings.transactional_id is not None:
                    ours.exception()  # mark as retrieved: commit raises it
            else:
                metadata = theirs.result()
                offset, timestamp = (-1, -1) if metadata is None else (metadata.offset, metadata.timestamp)
                ours.set_result(Ack(topic, partition, offset, -1 if timestamp is None else timestamp))

        future.add_done_callback(done)
        return ours

    async def flush(self) -> None:
        """Return when everything queued so far has been acknowledged or has failed."""
        await self._running.flush()

    def transaction(self) -> Transaction:
        """``async with producer.transaction():`` commits at its end, and aborts when the block raises."""
        return Transaction(self)

    async def begin_transaction(self) -> None:
        self._failure = None
        with translating("beginning a transaction"):
            await self._running.begin_transaction()

    async def commit_transaction(self) -> None:
        """Returns once the coordinator has committed. Raises the first send error, after which only abort is possible.

        After a ClientTimeout abort is not possible either, because it is unknown what was written. Stop the producer
        and start a new one with the same transactional.id, which aborts the rest.
        """
        await self.flush()
        if self._failure is not None:
            raise self._failure
        with translating("committing a transaction"):
            await self._running.commit_transaction()

    async def leave_transaction(self) -> TransactionalProducer | None:
        """Leave the transaction open, for somebody else to commit; None where nothing was sent in it.

        Returns when everything is acknowledged, and raises the first error of what was sent. Stop the producer after it;
        another producer with the same transactional.id would abort what is open.
        """
        await self.flush()
        if self._failure is not None:
            raise self._failure
        sequences = self._running._txn_manager
        if sequences is None or sequences.transactional_id is None or not sequences.is_in_transaction():
            raise IllegalUse("there is no open transaction to leave")
        if not sequences._txn_partitions:
            return None
        return TransactionalProducer(sequences.transactional_id, sequences.producer_id, sequences.producer_epoch)

    async def abort_transaction(self) -> None:
        """After an error that ends this producer, such as ProducerFenced, nothing is done: its transaction is the coordinator's.

        Raises IllegalUse where no transaction is open, or it is being committed.
        """
        sequences = self._running._txn_manager
        if sequences is not None and sequences.is_fatal_error():
            return
        if sequences is not None and sequences.state not in _CAN_BE_ABORTED:
            raise IllegalUse("there is no open transaction to abort")
        with translating("aborting a transaction"):
            await self._running.abort_transaction()

    async def send_offsets(self, offsets: Mapping[TopicPartition, int], group_id: str, *, note: str = "") -> None:
        """Commit these offsets of a group as part of the open transaction, with ``note`` as their metadata string."""
        library_offsets = {LibraryPartition(*tp): OffsetAndMetadata(offset, note) for tp, offset in offsets.items()}
        with translating(f"offsets of group {group_id} in a transaction"):
            await self._running.send_offsets_to_transaction(library_offsets, group_id)


class Transaction:
    """One transaction as a context manager."""

    def __init__(self, producer: BatchProducer) -> None:
        self._producer = producer

    async def __aenter__(self) -> BatchProducer:
        await self._producer.begin_transaction()
        return self._producer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            await self._producer.abort_transaction()
            return
        try:
            await self._producer.commit_transaction()
        except TidegateError:
            with suppress(IllegalUse):  # it is being committed: the coordinator knows its outcome
                await self._producer.abort_transaction()
            raise
