"""Kafka's own Mirror connectors and ours mirror the same source, each to its own target."""

from __future__ import annotations

import json
from contextlib import ExitStack

import pytest
import requests

from broker.client import TopicPartition
from connect.plugins.registry import load_plugins
from connect.validation.validation import validate_connector
from connectors.mirror.records import Checkpoint, Heartbeat, OffsetSync
from tests.connectors.mirror.clusters import MIRROR, Cluster, Mirrored
from tests.proofs import effort
from tests.servers.fetch import require
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaConnect
from tests.servers.process import answer_when, wait_until
from tests.support.worker import settled

pytestmark = pytest.mark.proof

SYNCS, CHECKPOINTS = "mm2-offset-syncs.west.internal", "west.checkpoints.internal"
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
GIVEN = {
    "topics": "orders.*",
    "offset_syncs_topic_location": "target",
    "emit_checkpoints_interval_seconds": "1",
    "sync_group_offsets_enabled": "true",
    "sync_group_offsets_interval_seconds": "1",
    "header_converter": BYTES,
    "tasks_max": "2",
}
OFFSETS = "kafka-connect-offset"


class Original:
    """A worker of the original over its target."""

    def __init__(self, directory, target: Cluster) -> None:
        settings = {"plugin.path": str(require("connect-mirror") / "plugins"), "offset.flush.interval.ms": "500"}
        self._worker = KafkaConnect(directory, target.servers, settings)

    def __enter__(self) -> Original:
        self._worker.process.start()
        return self

    def stop(self) -> None:
        """Stop immediately: none of its tasks writes after that."""
        self._worker.kill()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ask(self, method, path, body):
        return answer_when(
            settled, lambda: requests.request(method, self._worker.url + path, json=body, timeout=60), path
        )

    def create(self, name, properties) -> None:
        answer = self.ask("PUT", f"/connectors/{name}/config", properties)
        assert answer.status_code == 201, answer.text


def as_text(config):
    return {name.replace("_", ".").replace("offset.syncs", "offset-syncs"): value for name, value in config.items()}


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    or_skip(lambda: require("connect-mirror"))
    with ExitStack() as stack:
        west, theirs, ours = (
            stack.enter_context(Cluster(tmp_path_factory.mktemp(name))) for name in ("west", "theirs", "ours")
        )
        yield west, theirs, ours, stack.enter_context(Original(tmp_path_factory.mktemp("original"), theirs))


def content(cluster, topic, partition=0):
    return [(r.offset, r.timestamp_ms, r.key, r.value, r.headers) for r in cluster.records(topic, partition)]


def own_configs(cluster, topic):
    entries = cluster.admin.describe_configs(topic).values()
    return {entry.name: entry.value for entry in entries if entry.source == "DYNAMIC_TOPIC_CONFIG"}


def newest(cluster, topic, kind):
    return {record.key: kind.read(record.key, record.value) for record in cluster.records(topic)}


def test_we_and_the_original_write_the_same(three):
    west, theirs, ours, original = three
    count = effort(400, 40_000)
    west.create("orders", 2, cleanup_policy="compact,delete", retention_ms="123456", min_insync_replicas="1")
    west.create("orders-one")
    west.create("left-out")
    west.produce("orders", count)
    west.produce("orders", 3, partition=1)
    for n in range(7):
        west.produce("orders-one", 1, first=n)
    west.admin.delete_records({TopicPartition("orders-one", 0): 2})
    west.admin.alter_group_offsets("readers", {TopicPartition("orders", 0): count, TopicPartition("orders", 1): 2})
    west.admin.alter_group_offsets("early", {TopicPartition("orders", 0): 0}, {TopicPartition("orders", 0): "noted"})
    west.admin.alter_group_offsets("elsewhere", {TopicPartition("left-out", 0): 0})
    config = as_text(GIVEN)
    with Mirrored(west, ours, "MirrorSourceConnector", **config) as records:
        original.create(
            "mirror", records.properties | {"target.cluster.bootstrap.servers": theirs.servers, "tasks.max": "2"}
        )
        topics = [("west.orders", 0, count), ("west.orders", 1, 3), ("west.orders-one", 0, 5)]
        for topic, partition, expected_count in topics:
            for cluster in (theirs, ours):
                wait_until(
                    lambda c=cluster, t=topic, p=partition, w=expected_count: c.count(t, p) >= w, f"{topic}-{partition}"
                )
            assert content(ours, topic, partition) == content(theirs, topic, partition)
        last = {(TopicPartition("orders", 0), count - 1, count - 1), (TopicPartition("orders-one", 0), 6, 4)}
        for cluster in (theirs, ours):
            wait_until(
                lambda c=cluster: (
                    last <= {(s.partition, s.upstream, s.downstream) for s in newest(c, SYNCS, OffsetSync).values()}
                ),
                "the last syncs",
            )
        assert newest(ours, SYNCS, OffsetSync) == newest(theirs, SYNCS, OffsetSync)
        # commits by both also write syncs, at times of their own
        due = {(n, n) for n in range(0, 400, 101)}
        for cluster in (theirs, ours):
            made = [OffsetSync.read(record.key, record.value) for record in cluster.records(SYNCS)]
            assert count > 400 or due <= {(s.upstream, s.downstream) for s in made if s.partition == ("orders", 0)}
        for topic in ("west.orders", "west.orders-one", SYNCS):
            assert own_configs(ours, topic) == own_configs(theirs, topic)
        wait_until(lambda: len(records.positions) == 3, "positions")
        wait_until(lambda: positions(theirs, "mirror") == records.positions, "the original's positions")
    with Mirrored(west, ours, "MirrorCheckpointConnector", **config) as groups:
        original.create(
            "points", groups.properties | {"name": "points", "target.cluster.bootstrap.servers": theirs.servers}
        )
        assert [task["task.assigned.groups"] for task in groups.planned] == ["early", "readers"]
        for cluster in (theirs, ours):
            wait_until(lambda c=cluster: len(newest(c, CHECKPOINTS, Checkpoint)) == 3, "checkpoints")
        assert newest(ours, CHECKPOINTS, Checkpoint) == newest(theirs, CHECKPOINTS, Checkpoint)
        for group in ("early", "readers"):
            wait_until(lambda g=group: len(theirs.admin.group_offsets(g)) > 0, "the original's groups")
            offsets = theirs.admin.group_offsets_with_notes(group)
            wait_until(lambda g=group, f=offsets: ours.admin.group_offsets_with_notes(g) == f, f"group {group}")
        wait_until(lambda: len(groups.positions) == 3, "positions")
        named = {key.replace(b"mirror", b"points", 1): value for key, value in groups.positions.items()}
        wait_until(lambda: positions(theirs, "points") == named, "the original's positions")
    with Mirrored(west, ours, "MirrorHeartbeatConnector") as beats:
        original.create(
            "beats", beats.properties | {"name": "beats", "target.cluster.bootstrap.servers": theirs.servers}
        )
        for cluster in (theirs, ours):
            wait_until(lambda c=cluster: c.count("heartbeats") > 0, "heartbeats")
        assert newest(ours, "heartbeats", Heartbeat).keys() == newest(theirs, "heartbeats", Heartbeat).keys()


def positions(cluster, connector):
    """The contents of the original's topic of offsets."""
    values = {}
    for partition in range(5):
        for record in cluster.records(OFFSETS, partition):
            if json.loads(record.key)[0] == connector and record.value is not None:
                values[record.key] = json.loads(record.value)
    return values


@pytest.mark.parametrize(
    "connector", ["MirrorSourceConnector", "MirrorCheckpointConnector", "MirrorHeartbeatConnector"]
)
def test_we_and_the_original_find_the_same_errors(three, connector):
    original = three[3]
    plugins = load_plugins(["connectors"], entry_points=False)
    whole = {
        "name": "x",
        "connector.class": MIRROR + connector,
        "source.cluster.alias": "west",
        "source.cluster.bootstrap.servers": "127.0.0.1:1",
        "target.cluster.bootstrap.servers": "127.0.0.1:1",
    }
    bad = [
        {"source.cluster.alias": None},
        {"name": None, "source.cluster.alias": None},
        {"replication.policy.class": "org.nowhere.Policy"},
        {"offset-syncs.topic.location": "elsewhere"},
        {"offset.lag.max": "x", "replication.factor": "70000", "refresh.topics.enabled": "perhaps"},
        {"emit.checkpoints.enabled": "false"},
        {"emit.checkpoints.enabled": "false", "enabled": "false"},
        {"emit.offset-syncs.enabled": "false"},
        {"emit.offset-syncs.enabled": "false", "offset-syncs.topic.location": "target"},
        {"checkpoints.topic.replication.factor": "40000", "heartbeats.topic.replication.factor": "40000"},
        {"group.filter.class": "org.nowhere.Filter", "topic.filter.class": "org.nowhere.Filter"},
        {"exactly.once.support": "required"},
        {"admin.timeout.ms": "soon", "consumer.poll.timeout.ms": "1.5", "emit.heartbeats.interval.seconds": "-"},
    ]
    for change in bad:
        config = {name: value for name, value in (whole | change).items() if value is not None}
        answer = original.ask("PUT", f"/connector-plugins/{connector}/config/validate", config)
        theirs = {info["value"]["name"]: info["value"]["errors"] for info in answer.json()["configs"]}
        ours = {name: entry.errors for name, entry in validate_connector(plugins, config, check=False).entries.items()}
        rejected = {name for name, errors in theirs.items() if errors}
        assert {name for name, errors in ours.items() if errors} == rejected, (change, theirs, ours)
        for name in rejected - {"exactly.once.support"}:
            assert ours[name][0] == theirs[name][0], change


def test_we_go_on_where_the_original_was(three):
    """With its offsets and the topics that it created, no record is mirrored twice or left out."""
    west, theirs, ours, original = three
    config = as_text(GIVEN | {"topics": "taken"})
    west.create("taken")
    west.produce("taken", 150)
    with Mirrored(west, theirs, "MirrorSourceConnector", **config) as records:
        records.stop_tasks()
        original.create("taken", records.properties | {"name": "taken", "tasks.max": "1"})
        wait_until(lambda: theirs.count("west.taken") >= 150, "the original's records")
        wait_until(
            lambda: [offset["offset"] for offset in positions(theirs, "taken").values()] == [149], "its position"
        )
        original.stop()
        records.positions = {
            key.replace(b'taken",', b'mirror",', 1): value for key, value in positions(theirs, "taken").items()
        }
        west.produce("taken", 50, first=150)
        records.run_tasks()
        records.until(lambda: theirs.count("west.taken") >= 200, "our records")
        assert [r.key for r in theirs.records("west.taken")] == [f"key {n}".encode() for n in range(200)]
