"""Producing and consuming single records, as the registry and the events service do."""

from __future__ import annotations

import pytest

from broker.client import Ack, BatchConsumer, BatchProducer, ClientConfig, KafkaRecord, TopicPartition
from broker.client.errors import (
    IllegalUse,
    MessageTooLarge,
    NotReachable,
    OffsetOutOfRange,
    UnknownTopicOrPartition,
)

pytestmark = pytest.mark.anyio


async def read_all(consumer: BatchConsumer, count: int) -> list[KafkaRecord]:
    """Fetch until ``count`` records are there; a few empty fetches are given up on."""
    records: list[KafkaRecord] = []
    for _ in range(50):
        for fetched in await consumer.fetch(max_wait_ms=500):
            records += fetched.records()
        if len(records) >= count:
            return records
    raise AssertionError(f"{len(records)} of {count} records came: {records[:3]}")


async def test_a_record_comes_back_as_it_was_sent(config: ClientConfig, topic: str) -> None:
    async with BatchProducer(config) as producer:
        ack = await producer.send(topic, b"k", b"v", [("h", b"1"), ("empty", None)], partition=1, timestamp_ms=1234)
    assert ack == Ack(topic, 1, 0, 1234)
    async with BatchConsumer(config) as consumer:
        await consumer.assign([(topic, 1)])
        await consumer.seek_to_beginning()
        records = await read_all(consumer, 1)
    assert records == [KafkaRecord(topic, 1, 0, 1234, b"k", b"v", (("h", b"1"), ("empty", None)))]


async def test_nulls_and_empty_bytes_stay_apart(config: ClientConfig, topic: str) -> None:
    async with BatchProducer(config) as producer:
        for key, value in ((None, b"v"), (b"k", None), (b"", b""), (None, None)):
            await producer.send(topic, key, value, partition=0)
    async with BatchConsumer(config) as consumer:
        await consumer.assign([(topic, 0)])
        await consumer.seek((topic, 0), 0)
        records = await read_all(consumer, 4)
    assert [(record.key, record.value) for record in records] == [(None, b"v"), (b"k", None), (b"", b""), (None, None)]


async def test_pipelined_records_keep_their_order(config: ClientConfig, topic: str) -> None:
    async with BatchProducer(config.with_properties({"linger.ms": "5", "compression.type": "zstd"})) as producer:
        futures = [await producer.enqueue(topic, None, b"%d" % number, partition=0) for number in range(2000)]
        assert [(await future).offset for future in futures] == list(range(2000))
    async with BatchConsumer(config) as consumer:
        await consumer.assign([(topic, 0)])
        await consumer.seek_to_beginning()
        records = await read_all(consumer, 2000)
    assert [int(record.value or b"-1") for record in records] == list(range(2000))


async def test_equal_keys_go_to_one_partition(config: ClientConfig, topic: str) -> None:
    async with BatchProducer(config) as producer:
        acks = [await producer.send(topic, b"same", b"%d" % number) for number in range(5)]
    assert len({ack.partition for ack in acks}) == 1


async def test_a_seek_into_a_batch_skips_its_first_records(config: ClientConfig, topic: str) -> None:
    async with BatchProducer(config.with_properties({"linger.ms": "50"})) as producer:
        for future in [await producer.enqueue(topic, None, b"%d" % number, partition=0) for number in range(10)]:
            await future
    async with BatchConsumer(config) as consumer:
        await consumer.assign([(topic, 0)])
        await consumer.seek((topic, 0), 7)
        assert [record.offset for record in await read_all(consumer, 3)] == [7, 8, 9]
        assert await consumer.position((topic, 0)) == 10


async def test_a_paused_partition_gives_nothing_until_resumed(config: ClientConfig, topic: str) -> None:
    async with BatchProducer(config) as producer, BatchConsumer(config) as consumer:
        await consumer.assign([(topic, 0), (topic, 1)])
        await consumer.seek_to_beginning()
        await consumer.pause((topic, 0))
        await producer.send(topic, None, b"paused", partition=0)
        await producer.send(topic, None, b"read", partition=1)
        assert [record.value for record in await read_all(consumer, 1)] == [b"read"]
        await consumer.resume((topic, 0))
        assert [record.value for record in await read_all(consumer, 1)] == [b"paused"]


async def test_positions_are_committed_and_read_back(config: ClientConfig, topic: str) -> None:
    grouped = config.with_properties({"group.id": f"g-{topic}"})
    async with BatchConsumer(grouped) as consumer:
        await consumer.assign([(topic, 0)])
        assert await consumer.committed((topic, 0)) is None
        await consumer.commit({TopicPartition(topic, 0): 5})
        assert await consumer.committed((topic, 0)) == 5


async def test_max_bytes_leaves_the_rest_for_the_next_fetch(config: ClientConfig, topic: str) -> None:
    async with BatchProducer(config) as producer:
        for partition in (0, 1):
            await producer.send(topic, None, b"x" * 5000, partition=partition)
    async with BatchConsumer(config) as consumer:
        await consumer.assign([(topic, 0), (topic, 1)])
        await consumer.seek_to_beginning()
        seen: set[int] = set()
        while len(seen) < 2:
            fetched = await consumer.fetch(max_wait_ms=2000, max_bytes=1)
            assert len(fetched) <= 1
            seen |= {part.partition for part in fetched}


async def test_a_fetch_waits_and_then_gives_nothing(config: ClientConfig, topic: str) -> None:
    async with BatchConsumer(config) as consumer:
        await consumer.assign([(topic, 0)])
        await consumer.seek_to_end()
        assert await consumer.fetch(max_wait_ms=50) == []


async def test_a_record_over_the_limit_is_refused_and_the_next_goes_on(config: ClientConfig, topic: str) -> None:
    async with BatchProducer(config) as producer:
        with pytest.raises(MessageTooLarge, match=r"max\.request\.size=1048576"):
            await producer.send(topic, None, b"x" * 2_000_000, partition=0)
        assert (await producer.send(topic, None, b"x", partition=0)).offset == 0


async def test_a_refused_record_does_not_stop_later_records(config: ClientConfig, topic: str) -> None:
    """Sequences of a refused batch are given back: without that every later batch would be out of order."""
    async with BatchProducer(config.with_properties({"max.request.size": "9000000"})) as producer:
        assert (await producer.send(topic, None, b"first", partition=0)).offset == 0
        with pytest.raises(MessageTooLarge):
            await producer.send(topic, None, b"x" * 5_000_000, partition=0)
        assert (await producer.send(topic, None, b"second", partition=0)).offset == 1


async def test_an_unknown_partition_is_named(config: ClientConfig, topic: str) -> None:
    async with BatchProducer(config) as producer:
        with pytest.raises(UnknownTopicOrPartition, match=f"{topic} has no partition 9"):
            await producer.send(topic, None, b"v", partition=9)


async def test_an_offset_out_of_range_is_raised_where_no_reset_is_wanted(config: ClientConfig, topic: str) -> None:
    async with BatchConsumer(config.with_properties({"auto.offset.reset": "none"})) as consumer:
        await consumer.assign([(topic, 0)])
        await consumer.seek((topic, 0), 99)
        with pytest.raises(OffsetOutOfRange, match=f"{topic}-0 at offset 99"):
            await consumer.fetch(max_wait_ms=60_000)


async def test_a_stopped_producer_says_so(config: ClientConfig) -> None:
    producer = BatchProducer(config)
    with pytest.raises(IllegalUse, match="not running"):
        await producer.send("any", None, b"v")


async def test_an_address_without_a_broker_is_named() -> None:
    with pytest.raises(NotReachable, match=r"no broker can be reached at 127\.0\.0\.1:1: .*Connect call failed"):
        await BatchProducer(ClientConfig("127.0.0.1:1")).start()
    with pytest.raises(NotReachable, match=r"no broker can be reached at 127\.0\.0\.1:1: .*Connect call failed"):
        await BatchConsumer(ClientConfig("127.0.0.1:1")).start()
