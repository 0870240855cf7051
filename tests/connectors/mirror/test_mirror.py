"""Mirroring topics, offsets and heartbeats between two of our brokers, with the connectors run as in a worker."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from broker.client import TopicPartition
from broker.client.blocking import BatchProducer
from connectors.mirror.records import Checkpoint, Heartbeat, OffsetSync
from tests.connectors.mirror.clusters import OFFSETS, Cluster, Mirrored

SYNCS = "mm2-offset-syncs.east.internal"


@pytest.fixture(scope="module")
def clusters(tmp_path_factory):
    with ExitStack() as stack:
        yield tuple(stack.enter_context(Cluster(tmp_path_factory.mktemp(name))) for name in ("west", "east"))


def told(record):
    return record.partition, record.offset, record.timestamp_ms, record.key, record.value, record.headers


def syncs(source, topic):
    syncs_found = [OffsetSync.read(record.key, record.value) for record in source.records(SYNCS)]
    return [
        (sync.partition.partition, sync.upstream, sync.downstream)
        for sync in syncs_found
        if sync.partition.topic == topic
    ]


def test_topics_are_mirrored_as_they_are_and_followed(clusters):
    west, east = clusters
    west.create("orders", 2, cleanup_policy="compact,delete", min_insync_replicas="1")
    for topic in ("east.orders", "mm2-x.internal", "left-out"):
        west.create(topic)
    west.produce("orders", 250)
    west.produce("orders", 5, partition=1)
    with Mirrored(
        west, east, "MirrorSourceConnector", topics="orders.*,east.*,mm2.*", refresh_topics_interval_seconds="1"
    ) as mirror:
        assert [task["task.assigned.partitions"] for task in mirror.planned] == ["orders-0", "orders-1"]
        for partition in (0, 1):
            mirror.until(lambda p=partition: len(east.records("west.orders", p)) == west.count("orders", p), "records")
            assert list(map(told, east.records("west.orders", partition))) == list(
                map(told, west.records("orders", partition))
            )
        mirror.until(lambda: (0, 249, 249) in syncs(west, "orders"), "the last sync of a quiet topic")
        assert [task for task in syncs(west, "orders") if task[0] == 0] == [
            (0, 0, 0),
            (0, 101, 101),
            (0, 202, 202),
            (0, 249, 249),
        ]
        mirror.until(lambda: len(mirror.positions) == 2, "positions")
        assert mirror.positions[b'["mirror",{"cluster":"west","partition":0,"topic":"orders"}]'] == {"offset": 249}
        west.create("orders-late")
        west.admin.create_partitions("orders", 3)
        mirror.context.reconfigured.wait(60)
        mirror.until(lambda: len(mirror.connector.task_properties(9)) == 4, "the new partitions")
        mirror.run_tasks()
        west.produce("orders", 3, partition=2)
        west.produce("orders-late", 1)
        mirror.until(
            lambda: east.count("west.orders", 2) == 3 and east.count("west.orders-late") == 1, "new partitions"
        )
    assert east.admin.describe_configs("west.orders")["cleanup.policy"].value == "compact,delete"
    assert east.admin.describe_configs("west.orders")["min.insync.replicas"].source != "DYNAMIC_TOPIC_CONFIG"
    assert [task for task in east.admin.list_topics() if task.startswith("west.")] == [
        "west.orders",
        "west.orders-late",
    ]
    assert west.admin.describe_configs(SYNCS)["cleanup.policy"].value == "compact"
    west.produce("orders", 7, first=250)
    with mirror:
        mirror.until(lambda: east.count("west.orders") >= 257, "what came meanwhile")
        assert [record.key for record in east.records("west.orders")] == [f"key {n}".encode() for n in range(257)]


def test_configurations_follow(clusters):
    west, east = clusters
    west.create("settings", retention_ms="1000", segment_bytes="2000000")
    with Mirrored(
        west, east, "MirrorSourceConnector", topics="settings", sync_topic_configs_interval_seconds="1"
    ) as mirror:
        west.admin.alter_configs("settings", {"retention.ms": "5000", "segment.bytes": None})

        def followed():
            now = east.admin.describe_configs("west.settings")
            return now["retention.ms"].value == "5000" and now["segment.bytes"].source == "DEFAULT_CONFIG"

        mirror.until(followed, "the new configuration")


def test_positions_of_groups_are_taken_over(clusters):
    west, east = clusters
    west.create("paid")
    west.produce("paid", 120)
    partition, remote = TopicPartition("paid", 0), TopicPartition("west.paid", 0)
    west.admin.alter_group_offsets("readers", {partition: 120}, {partition: "a note"})
    west.admin.alter_group_offsets("behind", {partition: 60})
    west.admin.alter_group_offsets("connect-x", {partition: 60})
    config = {"topics": "paid", "emit_checkpoints_interval_seconds": "1", "sync_group_offsets_enabled": "true"}
    config |= {"sync_group_offsets_interval_seconds": "1", "groups_exclude": "connect-.*"}
    with Mirrored(west, east, "MirrorSourceConnector", topics="paid") as records:
        records.until(lambda: (0, 119, 119) in syncs(west, "paid"), "syncs")
    with Mirrored(west, east, "MirrorCheckpointConnector", **config) as mirror:
        assert [task["task.assigned.groups"] for task in mirror.planned] == ["behind", "readers"]
        mirror.until(lambda: len(east.admin.group_offsets("readers")) == 1, "the group's position")
        assert east.admin.group_offsets_with_notes("readers") == {remote: (120, "a note")}
        mirror.until(lambda: east.admin.group_offsets("behind") == {remote: 1}, "the position of the group behind")
        made = [Checkpoint.read(task.key, task.value) for task in east.records("west.checkpoints.internal")]
        assert sorted((task.group, task.partition, task.upstream, task.downstream, task.metadata) for task in made) == [
            ("behind", remote, 60, 1, ""),
            ("readers", remote, 120, 120, "a note"),
        ]
        east.admin.alter_group_offsets("behind", {remote: 70})
        west.admin.alter_group_offsets("behind", {partition: 10})
        mirror.until(
            lambda: east.count("west.checkpoints.internal") == 3 or None, "a checkpoint of a group that went back"
        )
        mirror.until(lambda: mirror.positions, "positions")
    assert east.admin.group_offsets("behind") == {remote: 70}
    assert b'["mirror",{"partition":0,"topic":"west.paid","group":"readers"}]' in mirror.positions


def test_heartbeats_tell_the_ways_there_are(clusters):
    west, east = clusters
    with Mirrored(west, east, "MirrorHeartbeatConnector") as mirror:
        mirror.until(lambda: east.count("heartbeats") >= 1, "a heartbeat")
        mirror.until(lambda: mirror.positions, "its position")
    first = east.records("heartbeats")[0]
    heartbeat = Heartbeat.read(first.key, first.value)
    assert (heartbeat.source, heartbeat.target, heartbeat.timestamp_ms) == ("west", "east", first.timestamp_ms)
    assert mirror.positions == {b'["mirror",{"sourceClusterAlias":"west","targetClusterAlias":"east"}]': {"offset": 0}}


def test_committed_records_are_mirrored_once(clusters):
    """A transaction that was aborted in the source is not; positions are committed with the records."""
    west, east = clusters
    west.create("moved")

    def write(first, *, commit=True):
        with BatchProducer(west.config.with_properties({"transactional.id": "writer"})) as producer:
            producer.begin_transaction()
            for n in range(first, first + 20):
                producer.enqueue("moved", None, f"{n}".encode(), partition=0)
            producer.commit_transaction() if commit else producer.abort_transaction()

    write(0)
    write(100, commit=False)
    write(20)
    config = {"topics": "moved", "source_consumer_isolation_level": "read_committed"}
    mirror = Mirrored(west, east, "MirrorSourceConnector", exactly_once=True, **config)
    for count in (40, 60):
        with mirror:
            mirror.until(lambda w=count: len(east.records("west.moved")) >= w, f"{count} records")
            last = (0, west.records("moved")[-1].offset, east.records("west.moved")[-1].offset)
            mirror.until(lambda expected=last: expected in syncs(west, "moved"), "the last sync")
        if count == 40:
            write(40)
    assert [int(record.value) for record in east.records("west.moved")] == list(range(60))
    position = east.records(OFFSETS)[-1]
    assert position.key == b'["mirror",{"cluster":"west","partition":0,"topic":"moved"}]'
    assert position.value == f'{{"offset":{last[1]}}}'.encode()
    assert mirror.connector.exactly_once(mirror.connector.config)
