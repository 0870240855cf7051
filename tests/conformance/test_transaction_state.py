"""``__transaction_state`` has the same bytes as Kafka's; Kafka's tools work on our transactions; transactions survive a
kill.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from broker.coordinator.state_log import partition_for
from broker.protocol.records import Record, batches, decode_batch, encode_batch
from broker.transactions import TransactionState
from broker.transactions.records import decode_key, decode_value, encode_key, encode_value
from tests.conformance.differential.exchange import Peer
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker

PARTITIONS = 4
"""The number of partitions of ``__transaction_state`` in both brokers' test settings."""


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[TidegateBroker]:
    broker = TidegateBroker(tmp_path / "ours", {"transaction.partition.verification.enable": "false"})
    broker.start()
    yield broker
    broker.stop()


def make_topic(broker: Any, partitions: int = 2) -> str:
    topic = f"txn-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(topic, partitions)])[topic].result(60)
    return topic


def transactional(broker: Any, name: str) -> Producer:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": name})
    producer.init_transactions(60)
    return producer


def write(producer: Producer, topic: str, value: str, *partitions: int) -> None:
    for partition in partitions:
        producer.produce(topic, value, partition=partition)
    assert producer.flush(60) == 0


def committed(broker: Any, topic: str, partition: int = 0) -> list[str]:
    """Values up to the last stable offset."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "none",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    values: list[str] = []
    while (message := consumer.poll(20)) is not None:
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            consumer.close()
            return values
        values.append(message.value().decode())
    raise AssertionError(f"no end of {topic}-{partition}")


def stored(log: Path) -> list[tuple[int, bytes, bytes | None]]:
    """(partition, key, value) of what is in ``__transaction_state``."""
    records = []
    for partition in range(PARTITIONS):
        for segment in sorted((log / f"__transaction_state-{partition}").glob("*.log")):
            view = memoryview(segment.read_bytes())
            for position, header in batches(view):
                for record in decode_batch(view[position : position + header.size]):
                    value = None if record.value is None else bytes(record.value)
                    records.append((partition, bytes(record.key or b""), value))
    return records


@pytest.mark.servers
def test_kafkas_records_are_written_byte_for_byte(apache_kafka: Any) -> None:
    topic = make_topic(apache_kafka)
    producer = transactional(apache_kafka, topic)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        write(producer, topic, "value", 0, 1)
        end(30)
    states = []

    def over() -> bool:
        states.clear()
        for partition, key, data in stored(apache_kafka.directory / "log"):
            name = decode_key(key)
            assert name is not None
            assert key == encode_key(name)
            assert partition == partition_for(name, PARTITIONS)
            assert data is not None
            value = decode_value(data)
            assert encode_value(value) == data or len(value.partitions) > 1  # whose order is that of Java's hashes
            if name == topic:
                states.append(value.state)
        return states[-1:] == [TransactionState.COMPLETE_ABORT]

    wait_until(over, "the last record")
    assert {*states} >= {TransactionState.ONGOING, TransactionState.PREPARE_COMMIT, TransactionState.COMPLETE_COMMIT}


@pytest.mark.servers
@pytest.mark.proof
def test_kafkas_tools_know_our_transactions(ours: TidegateBroker, kafka_tools: Callable[..., str]) -> None:
    topic = make_topic(ours)
    connection = ("--bootstrap-server", ours.bootstrap_servers)
    kafka_tools(
        "kafka-producer-perf-test", "--topic", topic, "--num-records", "2000", "--record-size", "100", "--throughput",
        "-1", "--transactional-id", "perf", "--transaction-duration-ms", "20", "--command-property",
        f"bootstrap.servers={ours.bootstrap_servers}",
    )  # fmt: skip
    producer = transactional(ours, "open")
    producer.begin_transaction()
    write(producer, topic, "open", 0, 1)

    def table(*arguments: str) -> list[list[str]]:
        return [line.split() for line in kafka_tools("kafka-transactions", *connection, *arguments).splitlines()[1:]]

    states = {name: state for name, _, _, state in table("list")}
    assert states == {"perf": "CompleteCommit", "open": "Ongoing"}
    (described,) = [line for line in table("describe", "--transactional-id", "open") if line]
    assert described[4] == "Ongoing"
    assert set(described[-1].split(",")) == {f"{topic}-0", f"{topic}-1"}
    hung = hang(ours, topic)
    listed = table("find-hanging", "--broker-id", "1", "--topic", topic, "--max-transaction-timeout", "0")
    assert [(line[0], line[1], line[2]) for line in listed if line] == [(topic, "0", str(hung[0]))]
    start = listed[0][5]
    kafka_tools(
        "kafka-transactions", *connection, "abort", "--topic", topic, "--partition", "0", "--start-offset", start
    )
    producer.commit_transaction(30)
    assert committed(ours, topic)[-1] == "open"
    said = kafka_tools(
        "kafka-console-consumer", *connection, "--topic", topic, "--partition", "0", "--offset", "earliest",
        "--isolation-level", "read_committed", "--max-messages", str(len(committed(ours, topic))), "--timeout-ms", "20000",
    )  # fmt: skip
    assert said.splitlines() == committed(ours, topic)
    ours.stop()
    folder = ours.directory / "log" / f"__transaction_state-{partition_for('open', PARTITIONS)}"
    files = ",".join(map(str, folder.glob("*.log")))
    dumped = kafka_tools("kafka-dump-log", "--transaction-log-decoder", "--files", files)
    assert re.search(r'"transactionalId":"open"', dumped)
    assert re.search(r'"transactionStatus":4', dumped)
    ours.start()


def hang(broker: TidegateBroker, topic: str) -> tuple[int, int]:
    """Records of a transaction of which no coordinator knows, as a producer could write before KIP-890; whose they are."""
    peer = Peer(broker.port)
    init = peer.ask(
        22, 4, {"transactional_id": None, "transaction_timeout": 1000, "producer_id": -1, "producer_epoch": -1}
    )
    producer = init["producer_id"], init["producer_epoch"]
    batch = encode_batch(
        [Record(b"key", b"hanging", (), 1_700_000_000_000)],
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        transactional=True,
    )
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch}]}]
    answer = peer.ask(0, 8, {"transactional_id": "gone", "acks": -1, "timeout": 10_000, "topic_data": data})
    assert answer["responses"][0]["partition_responses"][0]["error_code"] == "none"
    peer.hang_up()
    return producer


def test_transactions_outlive_a_kill(tmp_path: Path) -> None:
    broker = TidegateBroker(tmp_path)
    broker.start()
    try:
        topic = make_topic(broker)
        replaced, surviving = transactional(broker, "replaced"), transactional(broker, "surviving")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g"})
        member = consumer.consumer_group_metadata()
        for number in range(20):
            replaced.begin_transaction()
            write(replaced, topic, str(number), 0, 1)
            (replaced.abort_transaction if number % 3 == 2 else replaced.commit_transaction)(30)
        for producer, value in ((replaced, "lost"), (surviving, "kept")):
            producer.begin_transaction()
            write(producer, topic, value, 0, 1)
        surviving.send_offsets_to_transaction([TopicPartition(topic, 0, 7)], member, 30)
        broker.kill()
        broker.start()
        surviving.commit_transaction(60)
        again = transactional(broker, "replaced")
        again.begin_transaction()
        write(again, topic, "after", 0, 1)
        again.commit_transaction(30)
        expected = [str(number) for number in range(20) if number % 3 != 2]
        for partition in (0, 1):
            assert committed(broker, topic, partition) == [*expected, "kept", "after"]
        (offset,) = consumer.committed([TopicPartition(topic, 0)], timeout=60)
        assert offset.offset == 7
        broker.kill()
        broker.start()
        assert committed(broker, topic) == [*expected, "kept", "after"]
        consumer.close()
    finally:
        broker.kill()


@pytest.mark.servers
@pytest.mark.proof
@pytest.mark.long
def test_kafkas_transactions_go_on_in_our_broker(tmp_path: Path) -> None:
    kafka: KafkaBroker = or_skip(lambda: KafkaBroker(tmp_path / "kafka"))
    or_skip(kafka.start)
    try:
        topic = make_topic(kafka)
        done, opened = transactional(kafka, "done"), transactional(kafka, "opened")
        for number in range(5):
            done.begin_transaction()
            write(done, topic, str(number), 0, 1)
            (done.abort_transaction if number % 2 else done.commit_transaction)(30)
        opened.begin_transaction()
        write(opened, topic, "open", 0, 1)
        wait_until(lambda: committed(kafka, topic) == ["0", "2", "4"], "the markers")
        kafka.kill()
        ours = TidegateBroker(tmp_path / "ours", {"log.dirs": str(kafka.directory / "log")})
        ours.start()
        try:
            assert committed(ours, topic) == ["0", "2", "4"]
            again = transactional(ours, "opened")
            again.begin_transaction()
            write(again, topic, "ours", 0, 1)
            again.commit_transaction(30)
            assert committed(ours, topic) == ["0", "2", "4", "ours"]
            again.begin_transaction()
            write(again, topic, "open", 0, 1)
        finally:
            ours.kill()
        kafka.start()
        again = transactional(kafka, "opened")
        again.begin_transaction()
        write(again, topic, "theirs", 0, 1)
        again.commit_transaction(30)
        wait_until(lambda: committed(kafka, topic) == ["0", "2", "4", "ours", "theirs"], "the markers")
    finally:
        kafka.kill()
