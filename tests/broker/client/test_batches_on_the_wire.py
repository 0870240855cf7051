"""Finished batches through real brokers: every codec, read by Java; restarts and crashes; transactions."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from broker.client import Admin, BatchConsumer, BatchProducer, ClientConfig, EncodedBatch, NewTopic, TopicPartition
from broker.client.columns import HEADERS_TYPE, encode_batches
from broker.client.errors import ClientTimeout, IllegalUse, MessageTooLarge, ProducerFenced
from tests.servers.kafka import KafkaBroker
from tests.servers.tidegate_broker import TidegateBroker

pytestmark = pytest.mark.anyio


async def values_of(config: ClientConfig, topic: str, count: int, partition: int = 0) -> list[Any]:
    """The first ``count`` values of a partition, and a look whether more come."""
    values: list[Any] = []
    async with BatchConsumer(config) as consumer:
        await consumer.assign([(topic, partition)])
        await consumer.seek_to_beginning()
        while len(values) < count:
            for fetched in await consumer.fetch(5000):
                values += fetched.columns().values.to_pylist()
    return values


async def test_java_reads_every_codec(config: ClientConfig, topic: str, kafka_tools: Callable[..., str]) -> None:
    headers = pa.array([[{"key": "h", "value": b"1"}], []], HEADERS_TYPE)
    keys, values, times = pa.array([b"k1", None]), pa.array([b"value" * 2000, b"second"]), pa.array([11, 12])
    codecs = ("none", "gzip", "snappy", "lz4", "zstd")
    async with BatchProducer(config) as producer:
        for number, codec in enumerate(codecs):
            (batch,) = encode_batches(keys, values, times, headers, compression=codec)
            assert (await (await producer.send_batch(topic, 0, batch))).offset == 2 * number
    printed = await asyncio.to_thread(
        kafka_tools,
        "kafka-console-consumer", "--bootstrap-server", config.bootstrap_servers, "--topic", topic, "--partition", "0",
        "--from-beginning", "--max-messages", "10", "--formatter-property", "print.key=true",
        "--formatter-property", "print.headers=true", "--formatter-property", "print.timestamp=true",
    )  # fmt: skip
    assert printed.splitlines() == [
        f"CreateTime:11\th:1\tk1\t{'value' * 2000}",
        "CreateTime:12\tNO_HEADERS\tnull\tsecond",
    ] * len(codecs)


async def test_a_batch_too_large_is_refused_alone(config: ClientConfig, topic: str) -> None:
    async with BatchProducer(config) as producer:
        (large,) = encode_batches(None, pa.array([b"x" * 3_000_000]), max_bytes=5_000_000)
        (small,) = encode_batches(None, pa.array([b"y"]))
        refused = await producer.send_batch(topic, 0, large)
        accepted = await producer.send_batch(topic, 0, small)
        with pytest.raises(MessageTooLarge, match=f"{topic}-0"):
            await refused
        assert (await accepted).offset == 0


def numbered(first: int, count: int) -> EncodedBatch:
    (batch,) = encode_batches(None, pa.array([b"%d" % number for number in range(first, first + count)]))
    return batch


async def test_records_acknowledged_before_a_crash_are_there_once_in_order(
    crashing: KafkaBroker | TidegateBroker,
) -> None:
    """The broker is killed (SIGKILL) during production and restarted, twice; the producer is not informed."""
    config = ClientConfig(crashing.bootstrap_servers, {"retry.backoff.ms": "20"})
    async with Admin(config) as admin:
        await admin.create_topics([NewTopic("numbers", partitions=2)])
    async with BatchProducer(config) as producer:
        futures = []
        for number in range(60):
            for partition in (0, 1):
                futures.append(await producer.send_batch("numbers", partition, numbered(number * 100, 100)))
            if number in (20, 40):
                crashing.kill()
                restart = asyncio.create_task(asyncio.to_thread(crashing.start))
                futures.append(await producer.send_batch("numbers", 0, numbered(0, 1)))
                await restart
        acks = await asyncio.gather(*futures)
    offsets = [ack.offset for ack in acks if ack.partition == 1]
    expected = [100 * number for number in range(60)]
    if isinstance(crashing, KafkaBroker):
        # Its snapshots know the last batch of a producer only: of one before it, sent again, it may say that it is there (-1).
        offsets = [known if offset == -1 else offset for offset, known in zip(offsets, expected, strict=True)]
    assert offsets == expected
    assert await values_of(config, "numbers", 6000, partition=1) == [b"%d" % number for number in range(6000)]
    async with Admin(config) as admin:
        assert await admin.end_offsets([TopicPartition("numbers", 0)]) == {("numbers", 0): 6002}


async def test_a_consumer_goes_on_after_a_crash(crashing: KafkaBroker | TidegateBroker) -> None:
    config = ClientConfig(
        crashing.bootstrap_servers, {"retry.backoff.ms": "20", "group.id": "g", "auto.offset.reset": "earliest"}
    )
    async with Admin(config) as admin:
        await admin.create_topics([NewTopic("numbers")])
    values: list[Any] = []
    async with BatchProducer(config) as producer, BatchConsumer(config) as consumer:
        await consumer.subscribe(["numbers"])
        for first in (0, 10, 20):
            await (await producer.send_batch("numbers", 0, numbered(first, 10)))
            async with asyncio.timeout(60):
                while len(values) < first + 10:
                    for fetched in await consumer.fetch(500):
                        values += [record.value for record in fetched.records()]
            if first == 10:
                await consumer.commit()
                crashing.kill()
                await asyncio.to_thread(crashing.start)
    assert values == [b"%d" % number for number in range(30)]
    async with Admin(config) as admin:
        assert await admin.group_offsets("g") == {("numbers", 0): 20}


async def acknowledged(producer: BatchProducer, first: int) -> int:
    """The offset of five numbers, sent again where the broker takes longer than the producer waits."""
    while True:
        try:
            return (await (await producer.send_batch("numbers", 0, numbered(first, 5)))).offset
        except ClientTimeout:
            pass


async def test_a_batch_is_given_up_in_time_and_the_next_goes_on(crashing: KafkaBroker | TidegateBroker) -> None:
    config = ClientConfig(
        crashing.bootstrap_servers,
        {"delivery.timeout.ms": "800", "request.timeout.ms": "500", "retry.backoff.ms": "20"},
    )
    async with Admin(ClientConfig(crashing.bootstrap_servers)) as admin:
        await admin.create_topics([NewTopic("numbers")])
    async with BatchProducer(config) as producer:
        await acknowledged(producer, 0)
        crashing.kill()
        late = [await producer.send_batch("numbers", 0, numbered(100, 5))]
        late.append(await producer.enqueue("numbers", None, b"x", partition=0))
        for future in late:
            with pytest.raises(ClientTimeout, match=r"numbers-0: not acknowledged in delivery\.timeout\.ms=800"):
                await future
        await asyncio.to_thread(crashing.start)
        end = await acknowledged(producer, 5) + 5
    values = await values_of(config, "numbers", end)
    assert values[:5] == [b"0", b"1", b"2", b"3", b"4"] and values[end - 5 : end] == [b"5", b"6", b"7", b"8", b"9"]
    assert not {b"100", b"x"} & set(values), "what was given up"


async def test_a_transaction_with_a_refused_batch_cannot_be_committed(
    transactional: ClientConfig, name: Callable[[], str]
) -> None:
    topic = await fresh(transactional, name())
    config = transactional.with_properties({"transactional.id": f"tx-{topic}", "isolation.level": "read_committed"})
    async with BatchProducer(config) as producer:
        with pytest.raises(MessageTooLarge, match=topic):
            async with producer.transaction():
                await producer.send_batch(topic, 0, numbered(0, 3))
                (large,) = encode_batches(None, pa.array([b"x" * 3_000_000]), max_bytes=5_000_000)
                await producer.send_batch(topic, 0, large)
        async with producer.transaction():
            await producer.send_batch(topic, 0, numbered(7, 2))
    assert await values_of(config, topic, 2) == [b"7", b"8"]


@pytest.fixture
def transactional(bootstrap_servers: str) -> ClientConfig:
    return ClientConfig(bootstrap_servers)


async def fresh(config: ClientConfig, name: str) -> str:
    async with Admin(config) as admin:
        await admin.create_topics([NewTopic(name)])
    return name


async def test_transactions_commit_and_abort(transactional: ClientConfig, name: Callable[[], str]) -> None:
    topic = await fresh(transactional, name())
    config = transactional.with_properties({"transactional.id": f"tx-{topic}", "isolation.level": "read_committed"})
    async with BatchProducer(config) as producer:
        async with producer.transaction():
            await (await producer.send_batch(topic, 0, numbered(0, 3)))
        with pytest.raises(RuntimeError, match="changed my mind"):
            async with producer.transaction():
                await (await producer.send_batch(topic, 0, numbered(100, 3)))
                raise RuntimeError("changed my mind")
        async with producer.transaction():
            await producer.send(topic, None, b"3", partition=0)
            await producer.send_offsets({TopicPartition(topic, 0): 42}, f"g-{topic}")
        with pytest.raises(IllegalUse, match="only within a transaction"):
            await producer.send_batch(topic, 0, numbered(0, 1))
        with pytest.raises(IllegalUse, match="only within a transaction"):
            await producer.send(topic, b"k", b"v")
    assert await values_of(config, topic, 4) == [b"0", b"1", b"2", b"3"]
    uncommitted = config.with_properties({"isolation.level": "read_uncommitted"})
    assert await values_of(uncommitted, topic, 7) == [b"0", b"1", b"2", b"100", b"101", b"102", b"3"]
    async with Admin(config) as admin:
        assert await admin.group_offsets(f"g-{topic}") == {(topic, 0): 42}


async def test_an_open_transaction_is_not_read(transactional: ClientConfig, name: Callable[[], str]) -> None:
    topic = await fresh(transactional, name())
    config = transactional.with_properties({"transactional.id": f"tx-{topic}", "isolation.level": "read_committed"})
    async with BatchProducer(config) as producer, BatchConsumer(config) as consumer:
        await consumer.assign([(topic, 0)])
        await consumer.seek_to_beginning()
        await producer.begin_transaction()
        await (await producer.send_batch(topic, 0, numbered(0, 3)))
        assert await consumer.fetch(300) == []
        await producer.commit_transaction()
        fetched = await consumer.fetch(60_000)
        assert [record.value for part in fetched for record in part.records()] == [b"0", b"1", b"2"]


async def test_only_what_is_open_is_aborted(transactional: ClientConfig, name: Callable[[], str]) -> None:
    topic = await fresh(transactional, name())
    async with BatchProducer(transactional.with_properties({"transactional.id": f"tx-{topic}"})) as producer:
        with pytest.raises(IllegalUse, match="no open transaction"):
            await producer.abort_transaction()
        await producer.begin_transaction()
        await (await producer.send_batch(topic, 0, numbered(0, 1)))
        await producer.commit_transaction()
        with pytest.raises(IllegalUse, match="no open transaction"):
            await producer.abort_transaction()


async def test_a_second_producer_fences_the_first(transactional: ClientConfig, name: Callable[[], str]) -> None:
    topic = await fresh(transactional, name())
    config = transactional.with_properties({"transactional.id": f"tx-{topic}", "delivery.timeout.ms": "5000"})
    async with BatchProducer(config) as first:
        await first.begin_transaction()
        await (await first.send_batch(topic, 0, numbered(0, 1)))
        async with BatchProducer(config) as second, second.transaction():
            await (await second.send_batch(topic, 0, numbered(1, 1)))
        with pytest.raises(ProducerFenced):
            await (await first.send_batch(topic, 0, numbered(2, 1)))
        with pytest.raises(ProducerFenced):
            await first.abort_transaction()
        await first.abort_transaction()  # the producer has come to its end, and the transaction is aborted


async def test_batches_that_a_fenced_producer_has_queued_fail_without_a_word_from_asyncio(
    transactional: ClientConfig, name: Callable[[], str]
) -> None:
    topics = [await fresh(transactional, name()) for _ in range(2)]
    config = transactional.with_properties({"transactional.id": f"tx-{topics[0]}", "delivery.timeout.ms": "5000"})
    complaints: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
    async with BatchProducer(config) as first:
        await first.begin_transaction()
        await (await first.send_batch(topics[0], 0, numbered(0, 1)))
        async with BatchProducer(config):
            pass

        async def send(topic: str) -> None:
            with pytest.raises(ProducerFenced):
                await (await first.send_batch(topic, 0, numbered(1, 1)))

        await asyncio.gather(*(send(topic) for topic in topics * 3))
    gc.collect()
    assert complaints == []
