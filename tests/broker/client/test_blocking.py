"""The clients for threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pyarrow as pa
import pytest

from broker.client import ClientConfig, NewTopic, TopicPartition
from broker.client.blocking import Admin, BatchConsumer, BatchProducer, call
from broker.client.columns import encode_batches
from broker.client.errors import IllegalUse, UnknownTopicOrPartition


@pytest.fixture
def topic(config: ClientConfig, name: Callable[[], str]) -> str:
    created = name()
    with Admin(config) as admin:
        admin.create_topics([NewTopic(created, partitions=2)])
    return created


def test_batches_and_records_go_out_and_come_in(config: ClientConfig, topic: str) -> None:
    with BatchProducer(config) as producer, BatchConsumer(config) as consumer, Admin(config) as admin:
        (batch,) = encode_batches(None, pa.array([b"a", b"b"]))
        assert producer.send_batch(topic, 0, batch).result(60).offset == 0
        assert producer.send(topic, b"k", b"c", partition=0).offset == 2
        assert producer.enqueue(topic, None, b"d", partition=0).result(60).offset == 3
        assert admin.end_offsets([TopicPartition(topic, 0)]) == {(topic, 0): 4}
        consumer.assign([(topic, 0)])
        consumer.seek((topic, 0), 1)
        values: list[bytes] = []
        while len(values) < 3:
            for fetched in consumer.fetch(500):
                values += fetched.columns().values.to_pylist()
        assert values == [b"b", b"c", b"d"]
        assert consumer.position((topic, 0)) == 4


def test_threads_share_a_producer(config: ClientConfig, topic: str) -> None:
    with BatchProducer(config) as producer, Admin(config) as admin:
        threads = [
            threading.Thread(target=lambda: [producer.send(topic, None, b"v", partition=1) for _ in range(20)])
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert admin.end_offsets([TopicPartition(topic, 1)]) == {(topic, 1): 80}


def test_a_listener_is_called_in_the_consumers_thread(config: ClientConfig, topic: str) -> None:
    heard: list[tuple[str, threading.Thread, int | None]] = []

    class Listening:
        def on_revoked(self, partitions: set[TopicPartition]) -> None:
            heard.append(("revoked", threading.current_thread(), None))

        def on_assigned(self, partitions: set[TopicPartition]) -> None:
            """Calls of the consumer from within the listener: the positions are committed elsewhere, say."""
            heard.append(("assigned", threading.current_thread(), len(partitions)))

    grouped = config.with_properties({"group.id": f"g-{topic}"})
    with BatchConsumer(grouped) as consumer:
        consumer.subscribe([topic], listener=Listening())
        while not consumer.assignment():
            consumer.fetch(50)
    assert ("assigned", threading.current_thread(), 2) in heard
    assert {thread for _, thread, _ in heard} == {threading.current_thread()}


def test_an_exception_of_a_listener_does_not_hang_the_consumer(config: ClientConfig, topic: str) -> None:
    class Failing:
        def on_revoked(self, partitions: set[TopicPartition]) -> None:
            raise RuntimeError("revoked")

        def on_assigned(self, partitions: set[TopicPartition]) -> None:
            raise RuntimeError("assigned")

    with BatchConsumer(config.with_properties({"group.id": f"g-{topic}"})) as consumer:
        consumer.subscribe([topic], listener=Failing())
        while not consumer.assignment():
            consumer.fetch(50)


def test_errors_are_those_of_the_real_clients(config: ClientConfig, topic: str) -> None:
    with BatchProducer(config) as producer, pytest.raises(UnknownTopicOrPartition, match="no partition 5"):
        producer.send(topic, None, b"v", partition=5)
    with pytest.raises(IllegalUse, match="not running"):
        BatchConsumer(config).fetch()


def test_a_call_gives_up_in_time() -> None:
    import asyncio

    with pytest.raises(TimeoutError):
        call(asyncio.sleep(30), timeout_s=0.05)
