"""The contract with aiokafka's private parts that broker.client.fetcher uses, and the filter of aborted transactions."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.consumer.fetcher import Fetcher, FetchResult

from broker.client import Admin, BatchConsumer, BatchProducer, ClientConfig, NewTopic
from broker.client.batches import Batch
from broker.client.fetcher import _committed
from broker.protocol.records import BatchHeader, Record, encode_batch, encode_marker

pytestmark = pytest.mark.anyio


def test_the_private_names_are_there() -> None:
    """Private names that an upgrade of aiokafka may remove; fetcher.py has to be adapted then."""
    names = list(inspect.signature(Fetcher._proc_fetch_request).parameters)
    assert names == ["self", "assignment", "node_id", "request"]
    assert list(inspect.signature(Fetcher.fetched_records).parameters) == [
        "self",
        "partitions",
        "timeout",
        "max_records",
    ]
    assert {"_set_error", "_update_preferred_read_replica", "_invalidate_preferred_read_replica_for_node"} <= set(
        vars(Fetcher)
    )
    parameters = inspect.signature(FetchResult.__init__).parameters
    assert list(parameters) == ["self", "tp", "assignment", "partition_records", "backoff"]
    assert "self._partition_records.next_fetch_offset" in inspect.getsource(FetchResult._update_position)
    start = inspect.getsource(AIOKafkaConsumer.start)
    for attribute in (
        "_fetch_min_bytes",
        "_fetch_max_wait_ms",
        "_consumer_timeout",
        "_isolation_level",
        "_client_rack",
    ):
        assert attribute in start


def batch(base: int, producer: int, *, transactional: bool = True) -> Batch:
    data = encode_batch(
        [Record(None, b"v", (), 0, base)],
        base_offset=base,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=0,
        transactional=transactional,
    )
    return Batch(memoryview(data), BatchHeader.parse(data))


def marker(base: int, producer: int, *, commit: bool) -> Batch:
    data = encode_marker(producer, 0, base, commit=commit, coordinator_epoch=0, timestamp_ms=0)
    return Batch(memoryview(data), BatchHeader.parse(data))


def test_aborted_batches_are_left_out_between_first_offset_and_marker() -> None:
    batches = [
        batch(0, 1),
        batch(1, 2),
        batch(2, 3, transactional=False),
        marker(3, 1, commit=False),
        batch(4, 1),
        marker(5, 2, commit=True),
        marker(6, 1, commit=True),
    ]
    kept = [part.header.base_offset for part in _committed(batches, [(1, 0)]) if not part.header.is_control]
    assert kept == [1, 2, 4]


def test_a_transaction_that_aborts_behind_this_fetch_is_left_out_whole() -> None:
    kept = list(_committed([batch(0, 1), batch(1, 1)], [(1, 0)]))
    assert kept == []


async def test_closing_amid_a_fetch_cancels_only_the_fetch(config: ClientConfig, topic: str) -> None:
    async with BatchConsumer(config) as consumer:
        await consumer.assign([(topic, 0)])
        await consumer.seek_to_end()
        fetcher = consumer._running._fetcher
        while not fetcher._pending_tasks:
            await asyncio.sleep(0.01)
        forever = asyncio.create_task(asyncio.Event().wait())
        fetcher._pending_tasks.add(forever)
    assert forever.cancelled()


async def test_seeking_to_the_beginning_is_not_undone_by_an_earlier_question(
    config: ClientConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition that was just assigned is being reset to the end, by auto.offset.reset, when a seek to its beginning
    comes.
    """
    topic = "sought-to-the-beginning"
    async with Admin(config) as admin:
        await admin.create_topics([NewTopic(topic, 1, 1)])
    async with BatchProducer(config) as producer:
        await producer.enqueue(topic, b"k", b"v", partition=0)
        await producer.flush()
    asked, go_on = asyncio.Event(), asyncio.Event()
    real = Fetcher._proc_offset_request

    async def slow(self: Fetcher, node_id: int, topic_data: object) -> object:
        answer = await real(self, node_id, topic_data)
        asked.set()
        await go_on.wait()
        return answer

    monkeypatch.setattr(Fetcher, "_proc_offset_request", slow)
    async with asyncio.timeout(60), BatchConsumer(config) as consumer:
        await consumer.assign([(topic, 0)])
        await asked.wait()
        seeking = asyncio.create_task(consumer.seek_to_beginning((topic, 0)))
        await asyncio.sleep(0)
        go_on.set()
        await seeking
        assert await consumer.position((topic, 0)) == 0
