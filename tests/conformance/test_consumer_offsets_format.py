"""``__consumer_offsets``: Kafka and we read each other's records, and the bytes are the same."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from broker.coordinator.state_log import partition_for
from broker.groups import GroupConfig, GroupCoordinator, GroupState
from broker.groups.records import (
    GroupMetadataKey,
    OffsetCommitKey,
    decode_group,
    decode_key,
    decode_offset,
    encode_group,
    encode_group_key,
    encode_offset,
    encode_offset_key,
)
from broker.log.committed import committed_records
from broker.protocol.records import batches
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.groups import ListLog, ListTopics, ManualClock

PARTITIONS = 4
"""The number of partitions of ``__consumer_offsets`` in both brokers' test settings."""

METADATA = "as far as here\0"
"""confluent-kafka sends an offset's metadata with the zero byte that ends the text in C."""


def work_as_a_group(bootstrap_servers: str, group: str, instance_id: str | None = None) -> str:
    """Read and commit one record of a new topic as the member of a group; returns the topic. The member stays."""
    topic = f"format-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(60)
    producer = Producer({"bootstrap.servers": bootstrap_servers})
    producer.produce(topic, b"x")
    assert producer.flush(60) == 0
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "client.id": "member",
        "session.timeout.ms": 30_000,
    }
    if instance_id is not None:
        settings["group.instance.id"] = instance_id
    consumer = Consumer(settings)
    consumer.subscribe([topic])

    def read() -> bool:
        message = consumer.poll(0.1)
        if message is None:
            return False
        assert message.error() is None
        return True

    wait_until(read, "the record", pause_s=0)
    where = TopicPartition(topic, 0, 1, metadata=METADATA.rstrip("\0"))
    consumer.commit(offsets=[where], asynchronous=False)
    consumer.close()
    return topic


def stored(directory: Path) -> list[list[tuple[bytes, bytes | None]]]:
    """The entries of each partition of ``__consumer_offsets`` under a broker's log directory."""
    entries: list[list[tuple[bytes, bytes | None]]] = []
    for partition in range(PARTITIONS):
        entries.append([])
        for segment in sorted((directory / f"__consumer_offsets-{partition}").glob("*.log")):
            view = memoryview(segment.read_bytes())
            cut = (view[position : position + header.size] for position, header in batches(view))
            for record in committed_records(cut):
                entries[-1].append((bytes(record.key or b""), None if record.value is None else bytes(record.value)))
    return entries


@pytest.fixture
def clock() -> Iterator[ManualClock]:
    made = ManualClock()
    yield made
    made.close()


@pytest.mark.servers
def test_kafkas_records_are_read_and_written_byte_for_byte(apache_kafka: Any, clock: ManualClock) -> None:
    groups = {f"kafka-{uuid.uuid4().hex[:8]}": instance for instance in (None, "instance")}
    topics = {
        group: work_as_a_group(apache_kafka.bootstrap_servers, group, instance) for group, instance in groups.items()
    }
    entries = stored(apache_kafka.directory / "log")
    classes: dict[str, set[type]] = {group: set() for group in groups}
    for partition, written in enumerate(entries):
        for key, data in written:
            match decode_key(key):
                case OffsetCommitKey(group_id=group, topic=topic, partition=where) if group in groups:
                    assert key == encode_offset_key(group, topic, where)
                    assert data == (None if data is None else encode_offset(decode_offset(data)))
                case GroupMetadataKey(group_id=group) if group in groups:
                    assert key == encode_group_key(group)
                    assert data == (None if data is None else encode_group(decode_group(data)))
                case _:
                    continue
            assert partition == partition_for(group, PARTITIONS)
            classes[group].add(type(decode_key(key)))
    assert all(kinds == {OffsetCommitKey, GroupMetadataKey} for kinds in classes.values())
    log = ListLog(clock, PARTITIONS)
    log.entries = entries
    coordinator = GroupCoordinator(log, GroupConfig(), ListTopics(), clock)
    coordinator.start()
    for (group, instance), described in zip(groups.items(), coordinator.describe_groups(groups), strict=True):
        committed = coordinator.fetch_offsets(group)[topics[group], 0]
        assert (committed.offset, committed.metadata) == (1, METADATA)
        assert committed.topic_id is not None
        # A static member does not leave when it closes: its place is kept for its session.
        assert described.state is (GroupState.STABLE if instance else GroupState.EMPTY)
        assert [member.instance_id for member in described.members] == ([instance] if instance else [])
    coordinator.stop()


@pytest.mark.servers
def test_only_offsets_of_committed_transactions_are_taken_over(apache_kafka: Any, clock: ManualClock) -> None:
    topic = f"txn-{uuid.uuid4().hex[:8]}"
    settings = {"bootstrap.servers": apache_kafka.bootstrap_servers}
    admin = AdminClient(settings)
    admin.create_topics([NewTopic(topic, 1)])[topic].result(60)
    producer = Producer({**settings, "transactional.id": topic})
    producer.init_transactions(30)
    consumer = Consumer({**settings, "group.id": topic})
    member = consumer.consumer_group_metadata()
    for offset, end in ((5, producer.commit_transaction), (9, producer.abort_transaction)):
        producer.begin_transaction()
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, offset)], member, 30)
        end(30)
    consumer.close()
    log = ListLog(clock, PARTITIONS)

    def loaded() -> dict[tuple[str, int], int]:
        log.entries = stored(apache_kafka.directory / "log")
        coordinator = GroupCoordinator(log, GroupConfig(), ListTopics(), clock)
        coordinator.start()
        offsets = coordinator.fetch_offsets(topic)
        coordinator.stop()
        return {where: committed.offset for where, committed in offsets.items()}

    wait_until(lambda: loaded() == {(topic, 0): 5}, "the commit's marker")


@pytest.mark.servers
def test_kafkas_dump_tool_reads_what_we_wrote(kafka_tools: Callable[..., str], tmp_path: Path) -> None:
    broker = TidegateBroker(tmp_path)
    broker.start()
    try:
        topic = work_as_a_group(broker.bootstrap_servers, "ours", "instance")
    finally:
        broker.stop()
    folder = tmp_path / "log" / f"__consumer_offsets-{partition_for('ours', PARTITIONS)}"
    files = ",".join(map(str, folder.glob("*.log")))
    dumped = kafka_tools("kafka-dump-log", "--offsets-decoder", "--files", files)
    payloads = [json.loads(text) for text in re.findall(r"payload: (\{.*\})\s*$", dumped, re.MULTILINE)]
    keys = [json.loads(text) for text in re.findall(r" key: (\{.*?\}) payload:", dumped)]
    assert len(payloads) == len(keys) >= 3
    offsets = [payload["data"] for payload, key in zip(payloads, keys, strict=True) if key["type"] == "1"]
    assert [(payload["offset"], payload["metadata"]) for payload in offsets] == [(1, METADATA)]
    assert all(payload["topicId"] for payload in offsets)
    assert {key["data"].get("topic") for key in keys} == {topic, None}
    generation = [payload["data"] for payload, key in zip(payloads, keys, strict=True) if key["type"] == "2"][-1]
    assert (generation["protocolType"], generation["protocol"], generation["generation"]) == ("consumer", "range", 1)
    (member,) = generation["members"]
    assert (member["groupInstanceId"], member["clientId"], member["sessionTimeout"]) == ("instance", "member", 30_000)
    assert generation["leader"] == member["memberId"]


def test_committed_offsets_survive_a_kill(tmp_path: Path) -> None:
    broker = TidegateBroker(tmp_path)
    broker.start()
    try:
        topic = work_as_a_group(broker.bootstrap_servers, "killed", "instance")
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "simple"})
        for offset in range(1, 200):
            consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        broker.kill()
        broker.start()
        for group, expected in (("simple", 199), ("killed", 1)):
            reader = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": group})
            (position,) = reader.committed([TopicPartition(topic, 0)], timeout=60)
            assert position.offset == expected
            reader.close()
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        described = admin.describe_consumer_groups(["killed"])["killed"].result(60)
        assert [member.group_instance_id for member in described.members] == ["instance"]
        consumer.close()
    finally:
        broker.kill()
