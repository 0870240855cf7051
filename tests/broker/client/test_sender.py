"""The contract with aiokafka's private parts that broker.client.sender uses."""

from __future__ import annotations

import asyncio
import inspect
import sys
from typing import Any

import pyarrow as pa
import pytest
from aiokafka.producer.message_accumulator import BatchBuilder, MessageAccumulator, MessageBatch
from aiokafka.producer.sender import Sender, SendProduceReqHandler
from aiokafka.producer.transaction_manager import TransactionManager
from aiokafka.structs import TopicPartition as LibraryPartition

from broker.client import BatchProducer, ClientConfig
from broker.client.columns import encode_batches
from broker.client.errors import ClientTimeout, OutOfOrderSequence
from broker.client.sender import BatchingProducer, FinishedBatch, SequenceNumbers
from broker.protocol.records import BatchHeader, crc_is_right

pytestmark = pytest.mark.anyio

TP = LibraryPartition("t", 0)


def test_the_private_names_are_there() -> None:
    """Private names that an upgrade of aiokafka may remove; sender.py has to be adapted then."""
    assert {"_set_producer_state", "_build", "size", "record_count", "closed", "append"} <= set(vars(BatchBuilder))
    queues = {
        "add_batch",
        "add_message",
        "fail_all",
        "flush",
        "drain_by_nodes",
        "_pop_batch",
        "reenqueue",
        "_append_batch",
    }
    assert queues <= set(vars(MessageAccumulator))
    assert "self._waiter_future" in inspect.getsource(MessageAccumulator.waiter)
    assert {"increment_sequence_number", "sequence_number", "is_in_transaction"} <= set(vars(TransactionManager))
    assert {"failure", "done"} <= set(vars(MessageBatch))
    assert list(inspect.signature(SendProduceReqHandler.__init__).parameters) == ["self", "sender", "batches"]
    assert list(inspect.signature(Sender._send_produce_req).parameters) == ["self", "node_id", "batches"]
    source = inspect.getsource(Sender._send_produce_req)
    assert "_in_flight.remove(node_id)" in source
    assert "_muted_partitions.remove(tp)" in source
    assert {"do", "handle_response", "_can_retry"} <= set(vars(SendProduceReqHandler))
    assert "_txn_manager.increment_sequence_number" in inspect.getsource(MessageAccumulator._pop_batch)


async def test_sequences_wrap_to_zero_as_kafkas_do() -> None:
    numbers = SequenceNumbers(None, 60_000)
    numbers.increment_sequence_number(TP, 2**31 - 2)
    numbers.increment_sequence_number(TP, 1)
    assert numbers.sequence_number(TP) == 2**31 - 1
    numbers.increment_sequence_number(TP, 3)
    assert numbers.sequence_number(TP) == 2
    numbers.give_back(TP, 3)
    assert numbers.sequence_number(TP) == 2**31 - 1


async def test_sequences_wrap_on_a_real_broker(config: ClientConfig, topic: str) -> None:
    """The broker is brought to the end of the numbers by a first batch that claims to be near it."""
    async with BatchProducer(config) as producer:
        numbers = producer._running._txn_manager
        assert numbers is not None
        numbers.increment_sequence_number(LibraryPartition(topic, 0), 2**31 - 3)
        # A first batch of an unknown producer may have any sequence on a broker that has no state of it.
        offsets = []
        for _ in range(3):
            (batch,) = encode_batches(None, pa.array([b"a", b"b"]))
            offsets.append((await (await producer.send_batch(topic, 0, batch))).offset)
        assert offsets == [0, 2, 4]
        assert numbers.sequence_number(LibraryPartition(topic, 0)) == 3


async def test_a_lost_producer_id_is_replaced(config: ClientConfig, topic: str) -> None:
    async with BatchProducer(config) as producer:
        await producer.send(topic, None, b"a", partition=0)
        numbers = producer._running._txn_manager
        assert numbers is not None
        before = numbers.producer_id
        numbers.increment_sequence_number(LibraryPartition(topic, 0), 7)
        with pytest.raises(OutOfOrderSequence):
            await producer.send(topic, None, b"b", partition=0)
        assert (await producer.send(topic, None, b"c", partition=0)).offset == 1
        assert numbers.producer_id != before


async def test_a_batch_that_failed_with_all_others_is_not_queued_again() -> None:
    """One batch waits for its retry until the other is answered; then the producer is stopped, which fails both."""
    producer = BatchingProducer(
        bootstrap_servers="127.0.0.1:1", delivery_timeout_ms=60_000, max_in_flight=5, enable_idempotence=True
    )
    queues, numbers = producer._message_accumulator, producer._txn_manager
    assert numbers is not None
    numbers.set_pid_and_epoch(7, 0)
    batches = []
    for _ in range(2):
        (encoded,) = encode_batches(None, pa.array([b"v"]))
        batches.append(queues._append_batch(FinishedBatch(encoded, transactional=False), TP))
        assert queues._pop_batch(TP) is batches[-1]
    queues.windows.failed(TP, batches[1])
    queues.reenqueue(batches[1])
    assert not queues._batches
    queues.fail_all(ClientTimeout("the producer was stopped"))
    for _ in range(3):
        await asyncio.sleep(0)
    assert not queues._batches
    assert not queues._pending_batches
    for batch in batches:
        assert isinstance(batch.future.exception(), ClientTimeout)
    await producer.stop()


def test_a_finished_batch_is_stamped() -> None:
    (encoded,) = encode_batches(None, pa.array([b"v", b"w"]))
    builder = FinishedBatch(encoded, transactional=True)
    builder._set_producer_state(11, 3, 2**31 - 1)
    data = b"".join(builder.pieces())
    header = BatchHeader.parse(data)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (11, 3, 2**31 - 1)
    assert header.is_transactional
    assert crc_is_right(memoryview(data), 0, header)
    assert b"".join(builder.pieces()) == data
    assert (builder.record_count(), builder.size(), builder.closed()) == (2, len(data), True)


async def test_sending_a_batch_costs_the_same_calls_for_any_number_of_rows(config: ClientConfig, topic: str) -> None:
    """From the finished batch to the broker's response; the minimum of several attempts, as responses arrive in pieces."""
    async with BatchProducer(config.with_properties({"metadata.max.age.ms": "600000"})) as producer:

        async def calls(rows: int) -> int:
            (batch,) = encode_batches(None, pa.array([b"%05d" % row for row in range(rows)]), max_bytes=1 << 20)
            count = 0

            def profile(frame: Any, event: str, argument: Any) -> None:
                nonlocal count
                count += event == "call"

            sys.setprofile(profile)
            try:
                await (await producer.send_batch(topic, 0, batch))
            finally:
                sys.setprofile(None)
            return count

        await calls(10)
        few = min([await calls(1_000) for _ in range(5)])
        many = min([await calls(10_000) for _ in range(5)])
        assert abs(many - few) < 60, (few, many)
