"""A partition with all its records moves from Apache Kafka, killed under load, to our log, and back to Apache Kafka."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from broker.log.config import LogConfig
from broker.log.directory import LogDirectory
from broker.protocol.compression import Codec
from broker.protocol.records import Record, encode_batch
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker

pytestmark = [pytest.mark.servers, pytest.mark.proof]

TOPIC = "handed-over"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    broker: KafkaBroker = or_skip(lambda: KafkaBroker(tmp_path / "kafka"))
    or_skip(broker.start)
    yield broker
    broker.stop()


def produce(kafka: KafkaBroker, prefix: str, count: int, **settings: Any) -> list[tuple[bytes, bytes]]:
    producer = Producer(
        {"bootstrap.servers": kafka.bootstrap_servers, "enable.idempotence": True, "linger.ms": 20, **settings}
    )
    transactional = "transactional.id" in settings
    if transactional:
        producer.init_transactions(30)
        producer.begin_transaction()
    sent = [(b"%s-%d" % (prefix.encode(), n), os.urandom(300)) for n in range(count)]
    for key, value in sent:
        producer.produce(TOPIC, value, key, partition=0, headers={"from": prefix})
    assert producer.flush(60) == 0
    if transactional:
        end = producer.abort_transaction if prefix == "aborted" else producer.commit_transaction
        end(30)
        # The answer comes before the markers are written; the next one of that id waits for them.
        Producer({"bootstrap.servers": kafka.bootstrap_servers, **settings}).init_transactions(30)
    return [] if prefix == "aborted" else sent


def consume(kafka: KafkaBroker) -> list[tuple[Any, Any]]:
    """Keys and values of the committed records, to the end."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "g",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    values = []
    while (message := consumer.poll(30)) is not None:
        error = message.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            break
        values.append((message.key(), message.value()))
    consumer.close()
    return values


def test_a_partition_goes_to_us_and_back_with_every_record(kafka: KafkaBroker, tmp_path: Path) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    admin.create_topics([NewTopic(TOPIC, 1, 1, config={"segment.bytes": "1048576"})])[TOPIC].result(60)
    expected = []
    for codec in CODECS:
        expected += produce(kafka, codec, 1500, **{"compression.type": codec})
    expected += produce(kafka, "committed", 20, **{"transactional.id": "a"})
    expected += produce(kafka, "aborted", 20, **{"transactional.id": "b"})
    kafka.kill()

    theirs, ours = kafka.directory / "log" / f"{TOPIC}-0", tmp_path / "ours"
    shutil.copytree(theirs, ours / f"{TOPIC}-0")
    directory = LogDirectory(ours, LogConfig(segment_bytes=1 << 20))
    directory.open()
    log = directory.get(TOPIC, 0)
    assert log is not None
    aborted = [range(entry.first_offset, entry.last_offset + 1) for entry in log.aborted]
    assert [len(span) for span in aborted] == [21]
    assert log.last_stable_offset == log.log_end_offset
    assert [(r.key, r.value) for r in log.iter_records() if not any(r.offset in span for span in aborted)] == expected
    assert all(record.headers == (("from", (record.key or b"").rpartition(b"-")[0]),) for record in log.iter_records())

    for number in range(200):
        added = [Record(b"ours-%d-%d" % (number, n), os.urandom(300), (), 1_700_000_000_000) for n in range(25)]
        log.append(encode_batch(added, compression=Codec(number % 5)))
        expected += [(record.key or b"", record.value or b"") for record in added]
    assert len(log.segments) > 2
    directory.close()

    shutil.rmtree(theirs)
    shutil.copytree(ours / f"{TOPIC}-0", theirs)
    kafka.start()
    assert consume(kafka) == expected
    expected += produce(kafka, "after", 10)
    assert consume(kafka) == expected
