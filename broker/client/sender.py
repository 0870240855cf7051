"""Finished batches through aiokafka's producer. This file has all hooks into its private parts but those of
``produce_requests``.

aiokafka's accumulator takes a ``BatchBuilder``, asks it for its size and count, and stamps producer id, epoch and
sequence when it drains it; ``pieces`` are the bytes sent. tests/broker/client/test_sender.py tests these names: if an
upgrade of aiokafka breaks it, change this file.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.producer.message_accumulator import BatchBuilder, MessageAccumulator, MessageBatch
from aiokafka.producer.sender import Sender, SendProduceReqHandler
from aiokafka.producer.transaction_manager import TransactionManager
from aiokafka.structs import TopicPartition

from broker.client.batches import EncodedBatch, Piece
from broker.client.errors import ClientTimeout
from broker.client.produce_requests import PiecewiseClient, PiecewiseRequest
from broker.client.windows import Windows
from broker.errors import (
    DuplicateSequence,
    InvalidProducerEpoch,
    OutOfOrderSequence,
    ProducerFenced,
    UnknownProducerId,
    error_for,
)

__all__ = ["BatchingProducer", "FinishedBatch", "SequenceNumbers"]

_SEQUENCE_MODULUS: Final = 1 << 31
_LOST: Final = (OutOfOrderSequence.code, UnknownProducerId.code)


class FinishedBatch(BatchBuilder):  # type: ignore[misc]
    """An EncodedBatch with the interface of aiokafka's builder; closed from the start, so that no record is added."""

    def __init__(self, batch: EncodedBatch, *, transactional: bool) -> None:
        self._batch, self._transactional = batch, transactional
        self._state = (-1, -1, -1)
        self._pieces: Sequence[Piece] = ()

    def append(self, **_: Any) -> None:
        return None

    def close(self) -> None:
        pass

    def closed(self) -> bool:
        return True

    def size(self) -> int:
        return len(self._batch)

    def record_count(self) -> int:
        return self._batch.count

    def _set_producer_state(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        self._state, self._pieces = (producer_id, producer_epoch, base_sequence), ()

    def pieces(self) -> Sequence[Piece]:
        """The bytes of the first attempt and of every retry."""
        if not self._pieces:
            self._pieces = self._batch.pieces(*self._state, transactional=self._transactional)
        return self._pieces


class SequenceNumbers(TransactionManager):  # type: ignore[misc]
    """aiokafka's state of producer id, sequences and transaction, with four fixes.

    Sequences wrap to 0 after 2^31 - 1, as in Kafka (aiokafka 0.14 wraps to -2^31). A permanently refused batch gives
    its sequences back; otherwise all later batches would be out of order. A producer id that the broker lost is
    replaced. A transaction's error that nobody waits for is no complaint of asyncio's.
    """

    def increment_sequence_number(self, tp: TopicPartition, increment: int) -> None:
        self._sequence_numbers[tp] = (self._sequence_numbers[tp] + increment) % _SEQUENCE_MODULUS

    def identity(self) -> tuple[int, int]:
        """The producer id and epoch that the sequence numbers belong to."""
        return self.producer_id, self.producer_epoch

    def error_transaction(self, exc: BaseException) -> None:
        super().error_transaction(exc)
        self._transaction_waiter.exception()  # mark as retrieved: the next call raises it, if there is one

    def fatal_error(self, exc: BaseException) -> None:
        super().fatal_error(exc)
        self._transaction_waiter.exception()

    def give_back(self, tp: TopicPartition, count: int) -> None:
        """Move a partition's next sequence number back by ``count``."""
        self._sequence_numbers[tp] = (self._sequence_numbers[tp] - count) % _SEQUENCE_MODULUS

    def forget_producer_id(self) -> None:
        """Have the sender obtain a new id before its next batch, and count from 0 again."""
        fresh = TransactionManager(self.transactional_id, self.transaction_timeout_ms)
        self._pid_and_epoch, self._pid_waiter = fresh._pid_and_epoch, fresh._pid_waiter
        self._sequence_numbers.clear()


class _Accumulator(MessageAccumulator):  # type: ignore[misc]
    """aiokafka's queues with several batches of a partition in flight, and with a time limit: every batch succeeds or
    fails within delivery.timeout.ms, whatever the cluster does.

    aiokafka 0.14 retries a batch of an idempotent producer forever. A batch that it drops before sending keeps its
    sequence numbers, so that all later ones are out of order.
    """

    delivery_timeout_s: float
    windows: Windows[TopicPartition, MessageBatch]

    def drain_by_nodes(
        self, ignore_nodes: set[int], muted_partitions: set[TopicPartition] | frozenset[TopicPartition] = frozenset()
    ) -> Any:
        closed = {
            tp
            for tp, queue in self._batches.items()
            if not self.windows.admits(tp, queue[0], pipelined=_finished(queue[0]))
        }
        return super().drain_by_nodes(ignore_nodes, closed.union(muted_partitions))

    def fail_all(self, exception: BaseException) -> None:
        """Fail every batch. Nobody may wait for the room that a queued one takes, which fails with it."""
        super().fail_all(exception)
        for batch in chain(self._pending_batches, *self._batches.values()):
            if batch._drain_waiter.done():
                batch._drain_waiter.exception()  # mark as retrieved

    def _pop_batch(self, tp: TopicPartition) -> MessageBatch:
        """Take the first batch of a queue to send it; assigns sequence numbers unless it has valid ones."""
        batch = self._batches[tp].popleft()
        sequences: SequenceNumbers | None = self._txn_manager
        if sequences is not None and self.windows.needs_numbers(tp, batch):
            number = sequences.sequence_number(tp)
            sequences.increment_sequence_number(tp, batch.record_count)
            batch.set_producer_state(sequences.producer_id, sequences.producer_epoch, number)
        if not batch.retry_count:
            batch.future.add_done_callback(lambda _: self._ended(batch))
        batch.drain_ready()
        if not self._batches[tp]:
            del self._batches[tp]
        self._pending_batches.add(batch)
        self.windows.left(tp, batch, batch.record_count, pipelined=_finished(batch))
        return batch

    def _ended(self, batch: MessageBatch) -> None:
        self._pending_batches.discard(batch)
        written = not batch.future.cancelled() and batch.future.exception() is None
        self._queue_again(self.windows.ended(batch.tp, batch, written=written))

    def reenqueue(self, batch: MessageBatch) -> None:
        """Queue a batch for a retry, once all batches in flight with it are answered."""
        if not batch.future.done():
            self._queue_again(self.windows.back(batch.tp, batch))

    def _queue_again(self, batches: Sequence[MessageBatch]) -> None:
        for batch in reversed(batches):
            if batch.future.done():
                continue  # failed together with others while it waited
            super().reenqueue(batch)
            if self.is_late(batch):
                self._give_up_waiting(batch)
        self.wake()

    def wake(self) -> None:
        """Make the sender check its queues again."""
        if not self._waiter_future.done():
            self._waiter_future.set_result(None)

    def _append_batch(self, builder: BatchBuilder, tp: TopicPartition) -> MessageBatch:
        batch = super()._append_batch(builder, tp)
        timer = self._loop.call_later(self.delivery_timeout_s, self._give_up_waiting, batch)
        batch.future.add_done_callback(lambda _: timer.cancel())
        return batch

    def _give_up_waiting(self, batch: MessageBatch) -> None:
        """Fail a batch that is still queued.

        A batch in flight fails with its answer, or when its answer does not come.
        """
        queue = self._batches.get(batch.tp, ())
        if batch not in queue:
            return
        queue.remove(batch)
        if not queue:
            del self._batches[batch.tp]
        if batch.retry_count:
            self.lose_track()
            self._pending_batches.add(batch)  # aiokafka removes every batch that was sent once from here
        batch.drain_ready()  # callers that wait for its slot in the queue must not get its error
        batch.failure(exception=self.late(batch))

    def is_late(self, batch: MessageBatch) -> bool:
        return bool(time.monotonic() - batch._ctime > self.delivery_timeout_s)

    def late(self, batch: MessageBatch) -> ClientTimeout:
        limit = round(self.delivery_timeout_s * 1000)
        return ClientTimeout(f"{batch.tp.topic}-{batch.tp.partition}: not acknowledged in delivery.timeout.ms={limit}")

    def lose_track(self) -> None:
        """It is unknown whether a batch was written, so its sequence numbers can be neither reused nor skipped."""
        sequences: SequenceNumbers | None = self._txn_manager
        if sequences is not None and sequences.transactional_id is None:
            sequences.forget_producer_id()


class _ProduceHandler(SendProduceReqHandler):  # type: ignore[misc]
    """Handles permanent refusals itself, with the broker's message; aiokafka handles the rest."""

    def __init__(self, sender: Sender, batches: Mapping[TopicPartition, MessageBatch]) -> None:
        super().__init__(sender, dict(batches))  # a copy: the sender unmutes from its mapping
        self.written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the request is written to the socket.

        Not a method of this class: the reference cycle would keep batches alive after their answers.
        """
        self._client = PiecewiseClient(sender.client, self.written)
        self._windows = sender._message_accumulator.windows

    def create_request(self) -> PiecewiseRequest:
        topics: dict[str, list[tuple[int, Sequence[Piece]]]] = {}
        for tp, batch in self._batches.items():
            builder = batch._builder
            pieces = builder.pieces() if isinstance(builder, FinishedBatch) else [builder._build()]
            topics.setdefault(tp.topic, []).append((tp.partition, pieces))
        sender = self._sender
        name = None if sender._txn_manager is None else sender._txn_manager.transactional_id
        return PiecewiseRequest(name, sender._acks, sender._request_timeout_ms, list(topics.items()))

    def handle_response(self, response: Any) -> None:
        for topic, partitions in response.topics:
            for answer in partitions:
                partition, code = answer[0], answer[1]
                if code in (0, DuplicateSequence.code):
                    self._prove(TopicPartition(topic, partition))
                    continue
                message = answer[6] if len(answer) > 6 else None
                error = error_for(code)
                error = error_for(code, f"{topic}-{partition}: {message or error.message}")
                if not error.retriable:
                    self._judge(TopicPartition(topic, partition), code, error)
        super().handle_response(response)

    def _prove(self, tp: TopicPartition) -> None:
        """Batches before one that was retried first are in the log too; the broker no longer knows their offsets."""
        batch = self._batches.get(tp)
        for before in () if batch is None else self._windows.proven(tp, batch):
            before.done(-1, -1)

    def _judge(self, tp: TopicPartition, code: int, error: Exception) -> None:
        batch = self._batches.get(tp)
        if batch is not None and code == OutOfOrderSequence.code and self._windows.explains(tp, batch):
            del self._batches[tp]
            self._windows.failed(tp, batch, out_of_order=True)
            self._to_reenqueue.append(batch)
        else:
            self._refuse(tp, code, error)

    def _refuse(self, tp: TopicPartition, code: int, error: Exception) -> None:
        batch = self._batches.pop(tp, None)
        if batch is None:
            return
        sequences: SequenceNumbers | None = self._sender._txn_manager
        if sequences is not None:
            if code in _LOST and sequences.transactional_id is None:
                sequences.forget_producer_id()
            else:
                self._windows.refused(tp, batch)
        fenced = isinstance(error, InvalidProducerEpoch) and sequences is not None and sequences.transactional_id
        batch.failure(exception=ProducerFenced(str(error)) if fenced else error)

    def _can_retry(self, error: Any, batch: MessageBatch) -> bool:
        accumulator: _Accumulator = self._sender._message_accumulator
        if error.retriable and not accumulator.is_late(batch):
            self._windows.failed(batch.tp, batch)
            return True
        accumulator.lose_track()
        if error.retriable:
            batch.failure(exception=accumulator.late(batch))
        return False


class _Sender(Sender):  # type: ignore[misc]
    """aiokafka's sender with several requests in flight per broker."""

    def __init__(self, *arguments: Any, max_in_flight: int, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._most = max_in_flight
        self._on_their_way: Counter[int] = Counter()
        self._being_written: set[int] = set()
        self._answers: set[asyncio.Task[None]] = set()

    async def _send_produce_req(self, node_id: int, batches: Mapping[TopicPartition, MessageBatch]) -> None:
        """Returns when the request is written, or answered if nothing may follow it earlier.

        Until then no other request goes to this broker, which keeps the order.
        """
        handler = _ProduceHandler(self, batches)
        if self._most == 1 or not any(_finished(batch) for batch in batches.values()):
            await handler.do(node_id)
            self._in_flight.discard(node_id)
            self._muted_partitions.difference_update(batches)
            return
        answer = asyncio.create_task(handler.do(node_id))
        self._on_their_way[node_id] += 1
        self._being_written.add(node_id)
        self._answers.add(answer)
        answer.add_done_callback(lambda task: self._answered(node_id, task))
        await asyncio.wait((answer, handler.written), return_when=asyncio.FIRST_COMPLETED)
        self._being_written.discard(node_id)
        self._muted_partitions.difference_update(batches)  # from here on the windows decide what may be sent
        self._open(node_id)

    def _answered(self, node_id: int, task: asyncio.Task[None]) -> None:
        self._answers.discard(task)
        self._on_their_way[node_id] -= 1
        self._fail_all(task)
        self._open(node_id)
        self._message_accumulator.wake()

    def _open(self, node_id: int) -> None:
        if node_id not in self._being_written and self._on_their_way[node_id] < self._most:
            self._in_flight.discard(node_id)

    async def close(self) -> None:
        await super().close()
        if self._answers:
            await asyncio.wait(self._answers)


def _finished(batch: MessageBatch) -> bool:
    """Whether other batches may be in flight with it. Single records wait for the answer and share the next batch."""
    return isinstance(batch._builder, FinishedBatch)


class BatchingProducer(AIOKafkaProducer):  # type: ignore[misc]
    """aiokafka's producer with our sequence numbers, queues and sender."""

    def __init__(self, *, delivery_timeout_ms: int, max_in_flight: int, **arguments: Any) -> None:
        super().__init__(**arguments)
        theirs: TransactionManager | None = self._txn_manager
        ours = theirs and SequenceNumbers(theirs.transactional_id, theirs.transaction_timeout_ms)
        self._txn_manager: SequenceNumbers | None = ours
        their_queues: MessageAccumulator = self._message_accumulator
        self._message_accumulator: _Accumulator = _Accumulator(
            self._metadata,
            their_queues._batch_size,
            their_queues._compression_type,
            float("inf"),
            txn_manager=ours,
            linger_ms=their_queues._linger_time * 1000,
        )
        self._message_accumulator.delivery_timeout_s = delivery_timeout_ms / 1000
        self._message_accumulator.windows = Windows(max_in_flight, ours)
        their_sender: Sender = self._sender
        self._sender: _Sender = _Sender(
            self.client,
            acks=their_sender._acks,
            txn_manager=ours,
            message_accumulator=self._message_accumulator,
            retry_backoff_ms=arguments.get("retry_backoff_ms", 100),
            request_timeout_ms=self._request_timeout_ms,
            max_in_flight=1 if ours is None else max_in_flight,
        )
