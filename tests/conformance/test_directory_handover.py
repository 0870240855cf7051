"""The complete directory of an Apache Kafka that was killed under load opens in Tidegate, with topics, settings and
groups; Kafka's tools read the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ConfigResource,
    NewTopic,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker, kafka_tool
from tests.servers.tidegate_broker import TidegateBroker

pytestmark = [pytest.mark.servers, pytest.mark.proof]

SETTINGS = {"metadata.log.max.record.bytes.between.snapshots": "3000"}


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    broker: KafkaBroker = or_skip(lambda: KafkaBroker(tmp_path / "kafka", SETTINGS))
    or_skip(broker.start)
    yield broker
    broker.stop()


def consumer(broker: KafkaBroker | TidegateBroker) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": broker.bootstrap_servers,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )


def take(broker: KafkaBroker | TidegateBroker, count: int) -> list[Any]:
    reader, records_read = consumer(broker), []
    reader.subscribe(["t0"])
    while len(records_read) < count:
        messages = reader.consume(count - len(records_read), 60)
        assert messages, f"{len(records_read)} of {count} records came"
        records_read += [message.value() for message in messages]
    reader.commit(asynchronous=False)
    reader.close()
    return records_read


def produce(broker: KafkaBroker | TidegateBroker, values: range) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True})
    for value in values:
        producer.produce("t0", b"%d" % value, partition=0)
    assert producer.flush(60) == 0


@pytest.mark.long
def test_a_directory_with_a_snapshot_opens_with_all_that_is_in_it(kafka: KafkaBroker, tmp_path: Path) -> None:
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(6):
        name = f"t{number}"
        admin.create_topics([NewTopic(name, 1 + number, 1, config={"retention.ms": f"{number}00000"})])[name].result(60)
    kafka_tool(
        "kafka-configs", "--bootstrap-server", kafka.bootstrap_servers, "--alter", "--entity-type", "users",
        "--entity-name", "alice", "--add-config", "producer_byte_rate=1048576",
    )  # fmt: skip
    mechanism = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    (done,) = admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", mechanism, b"secret")]).values()
    done.result(60)
    produce(kafka, range(100))
    assert take(kafka, 40) == [b"%d" % value for value in range(40)]
    kafka.stop()
    kafka.start()
    produce(kafka, range(100, 200))
    assert take(kafka, 40) == [b"%d" % value for value in range(40, 80)]
    kafka.kill()
    log = kafka.directory / "log"
    assert list((log / "__cluster_metadata-0").glob("*.checkpoint"))

    ours = TidegateBroker(tmp_path / "ours", {**SETTINGS, "log.dirs": str(log)})
    ours.start()
    try:
        admin = AdminClient({"bootstrap.servers": ours.bootstrap_servers})
        topics = admin.list_topics(timeout=60).topics
        assert {name: len(topics[name].partitions) for name in topics if name.startswith("t")} == {
            f"t{number}": 1 + number for number in range(6)
        }
        (asked,) = admin.describe_configs([ConfigResource(ResourceType.TOPIC, "t3")]).values()
        assert asked.result(60)["retention.ms"].value == "300000"
        assert take(ours, 40) == [b"%d" % value for value in range(80, 120)]
        produce(ours, range(200, 210))
        said = kafka_tool(
            "kafka-console-consumer", "--bootstrap-server", ours.bootstrap_servers, "--topic", "t0",
            "--group", "readers", "--max-messages", "90", "--timeout-ms", "20000",
        )  # fmt: skip
        assert said.split() == [str(value) for value in range(120, 210)]
        described = kafka_tool(
            "kafka-configs", "--bootstrap-server", ours.bootstrap_servers, "--describe", "--entity-type", "users",
        )  # fmt: skip
        assert "producer_byte_rate=1048576" in described
        assert "SCRAM-SHA-256=iterations=4096" in described
    finally:
        ours.stop()
    assert not list(log.glob("*-stray"))
    checkpoints = sorted((log / "__cluster_metadata-0").glob("*.checkpoint"))
    dumped = kafka_tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", str(checkpoints[-1]))
    assert dumped.count('"type":"TOPIC_RECORD"') >= 6
    assert re.search(r"SnapshotHeader|SNAPSHOT_HEADER", dumped)

    kafka.start()
    assert [message.value() for message in read_all(kafka)] == [b"%d" % value for value in range(210)]


def read_all(broker: KafkaBroker) -> list[Any]:
    reader = consumer(broker)
    reader.assign([TopicPartition("t0", 0, 0)])
    records_read: list[Any] = []
    while len(records_read) < 210:
        messages = reader.consume(210 - len(records_read), 60)
        assert messages, f"{len(records_read)} came"
        records_read += messages
    reader.close()
    return records_read
