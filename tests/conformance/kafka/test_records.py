"""Records are produced and consumed with every client and codec."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiokafka
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COUNT = 300


def produce(bootstrap_servers: str, topic: str, count: int = COUNT, **settings: str | int | bool) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "enable.idempotence": True, **settings})
    failed: list[KafkaError] = []
    for number in range(count):
        producer.produce(
            topic,
            key=f"key {number}",
            value=f"value {number} " * 10,
            headers=[("number", str(number)), ("empty", b""), ("null", None)],
            partition=number % 3,
            timestamp=1_700_000_000_000 + number,
            on_delivery=lambda error, _: failed.append(error) if error else None,
        )
    assert producer.flush(60) == 0
    assert failed == []


def consume(consumer: Consumer, count: int) -> Iterator[object]:
    got = 0
    while got < count:
        messages = consumer.consume(count - got, 60)
        assert messages, f"only {got} of {count} records came"
        for message in messages:
            assert message.error() is None
            yield message
            got += 1


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_from_an_idempotent_producer(bootstrap_servers: str, topic: str, codec: str) -> None:
    produce(bootstrap_servers, topic, **{"compression.type": codec})
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": topic, "check.crcs": True})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
    offsets: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for message in consume(consumer, COUNT):
        number = int(dict(message.headers())["number"])
        assert message.key() == f"key {number}".encode()
        assert message.value() == (f"value {number} " * 10).encode()
        assert message.headers()[1:] == [("empty", b""), ("null", None)]
        assert message.timestamp()[1] == 1_700_000_000_000 + number
        offsets[message.partition()].append(number)
    consumer.close()
    assert offsets == {partition: list(range(partition, COUNT, 3)) for partition in range(3)}


@pytest.mark.parametrize("codec", [None, "gzip", "lz4", "zstd", "snappy"])
def test_kafka_python_writes_and_reads(bootstrap_servers: str, topic: str, codec: str | None) -> None:
    producer = KafkaProducer(
        bootstrap_servers=bootstrap_servers, acks="all", compression_type=codec, enable_idempotence=True
    )
    sent = [
        producer.send(topic, key=b"%d" % n, value=None if n % 10 == 0 else b"v%d" % n, partition=0) for n in range(50)
    ]
    assert [future.get(30).offset for future in sent] == list(range(50))
    producer.close()
    consumer = KafkaConsumer(
        topic, bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest", consumer_timeout_ms=20_000
    )
    records = [record for _, record in zip(range(50), consumer, strict=False)]
    consumer.close()
    assert [record.offset for record in records] == list(range(50))
    assert [record.value for record in records] == [None if n % 10 == 0 else b"v%d" % n for n in range(50)]


def test_aiokafka_writes_and_reads(bootstrap_servers: str, topic: str) -> None:
    async def run() -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap_servers, enable_idempotence=True) as producer:
            results = [await producer.send_and_wait(topic, b"v%d" % n, partition=1) for n in range(20)]
        assert [result.offset for result in results] == list(range(20))
        consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap_servers, auto_offset_reset="earliest")
        consumer.assign([aiokafka.TopicPartition(topic, 1)])
        async with consumer:
            assert [(await consumer.getone()).value for _ in range(20)] == [b"v%d" % n for n in range(20)]

    asyncio.run(run())


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_records_of_every_acks_are_there(bootstrap_servers: str, topic: str, acks: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": acks})
    for number in range(20):
        producer.produce(topic, str(number), partition=0)
    assert producer.flush(60) == 0
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": topic})
    consumer.assign([TopicPartition(topic, 0, 0)])
    assert [message.value() for message in consume(consumer, 20)] == [str(n).encode() for n in range(20)]
    consumer.close()


def test_a_waiting_fetch_gets_the_record_that_comes(bootstrap_servers: str, topic: str) -> None:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap_servers, "group.id": topic, "fetch.wait.max.ms": 20_000, "fetch.min.bytes": 1}
    )
    consumer.assign([TopicPartition(topic, 2, 0)])
    assert consumer.poll(0.5) is None
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(topic, "late", partition=2)
    producer.flush(60)
    message = consumer.poll(10)
    assert message is not None
    assert message.value() == b"late"
    consumer.close()


def test_a_small_fetch_still_gives_a_large_batch(bootstrap_servers: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(topic, b"x" * 500_000, partition=0)
    producer.flush(60)
    consumer = KafkaConsumer(
        bootstrap_servers=bootstrap_servers,
        max_partition_fetch_bytes=1000,
        fetch_max_bytes=1000,
        consumer_timeout_ms=20_000,
    )
    from kafka import TopicPartition as Partition

    consumer.assign([Partition(topic, 0)])
    consumer.seek_to_beginning()
    assert len(next(iter(consumer)).value) == 500_000
    consumer.close()


def test_a_record_above_max_message_bytes_is_refused(bootstrap_servers: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers, "message.max.bytes": 5_000_000})
    outcome: list[KafkaError] = []
    producer.produce(topic, b"x" * 2_000_000, on_delivery=lambda error, _: outcome.append(error))
    producer.flush(60)
    assert outcome[0].code() == KafkaError.MSG_SIZE_TOO_LARGE


def test_a_transaction_free_topic_is_the_same_for_both_isolation_levels(bootstrap_servers: str, topic: str) -> None:
    produce(bootstrap_servers, topic, 30)
    for level in ("read_committed", "read_uncommitted"):
        consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": topic, "isolation.level": level})
        consumer.assign([TopicPartition(topic, partition, 0) for partition in range(3)])
        assert len(list(consume(consumer, 30))) == 30
        consumer.close()


def test_an_offset_out_of_range_is_said(bootstrap_servers: str, topic: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": topic, "auto.offset.reset": "error"})
    consumer.assign([TopicPartition(topic, 0, 999)])
    with pytest.raises(KafkaException):
        while True:
            message = consumer.poll(10)
            assert message is not None, "nothing came within 10 s"
            if message.error() is not None:
                assert message.error().code() == KafkaError._AUTO_OFFSET_RESET
                raise KafkaException(message.error())
    consumer.close()


def test_a_producer_to_no_topic_creates_it(bootstrap_servers: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(f"{topic}-made", "first")
    assert producer.flush(60) == 0
    assert f"{topic}-made" in producer.list_topics(timeout=60).topics
