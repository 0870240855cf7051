"""The cluster's image: changes survive a restart, and the logs follow them."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.errors import (
    CorruptMessage,
    InvalidConfiguration,
    InvalidPartitions,
    InvalidReplicationFactor,
    InvalidTopic,
    KafkaStorageError,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from broker.log.directory import LogDirectory
from broker.metadata.image import ClusterMetadata
from broker.metadata.records import BROKER_RESOURCE
from broker.protocol.records import Record
from tests.support.faults import FaultyDisk


class Cluster:
    """A directory that can be stopped and started."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.start()

    def start(self, **settings: int) -> None:
        self.directory = LogDirectory(self.path)
        self.directory.open()
        self.metadata = ClusterMetadata.open(self.directory, topic_defaults={"retention.ms": "1000"}, **settings)

    def restart(self) -> ClusterMetadata:
        self.directory.close()
        self.start()
        return self.metadata


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path / "data")
    yield made
    made.directory.close()


def test_a_topic_is_there_after_a_restart_with_all_that_was_set(cluster: Cluster) -> None:
    made = cluster.metadata.create_topic("orders", partitions=3, configs={"cleanup.policy": "compact"})
    cluster.metadata.set_topic_configs("orders", {"segment.ms": "5000", "cleanup.policy": None})
    cluster.metadata.create_partitions("orders", 5)
    cluster_id = cluster.metadata.cluster_id
    again = cluster.restart()
    topic = again.topic("orders")
    assert (topic.id, topic.partitions, dict(topic.configs)) == (made.id, 5, {"segment.ms": "5000"})
    assert again.topic_name(made.id) == "orders"
    assert again.cluster_id == cluster_id
    logs = again.logs("orders")
    assert [log.partition for log in logs] == [0, 1, 2, 3, 4]
    assert {(log.config.segment_ms, log.config.retention_ms, log.topic_id) for log in logs} == {(5000, 1000, made.id)}


def test_a_deleted_topic_takes_logs_and_configuration_with_it(cluster: Cluster) -> None:
    first = cluster.metadata.create_topic("orders", configs={"segment.ms": "5000"})
    cluster.metadata.delete_topic("orders")
    assert cluster.directory.get("orders", 0) is None
    second = cluster.metadata.create_topic("orders")
    assert second.id != first.id
    assert dict(second.configs) == {}
    again = cluster.restart()
    assert again.topic("orders") == second
    with pytest.raises(UnknownTopicOrPartition, match="'nothing'"):
        again.delete_topic("nothing")


def test_producer_ids_are_never_given_out_twice(cluster: Cluster) -> None:
    first = [cluster.metadata.next_producer_id() for _ in range(1500)]
    second = [cluster.restart().next_producer_id() for _ in range(3)]
    assert len({*first, *second}) == 1503
    assert first == list(range(1500))


def test_configuration_of_brokers_is_kept(cluster: Cluster) -> None:
    cluster.metadata.set_configs(BROKER_RESOURCE, "1", {"a": "1", "b": "2"})
    cluster.metadata.set_configs(BROKER_RESOURCE, "1", {"a": None})
    assert dict(cluster.restart().configs(BROKER_RESOURCE, "1")) == {"b": "2"}


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "ä", "x" * 250, "a/b"])
def test_names_that_kafka_refuses_are_refused(cluster: Cluster, name: str) -> None:
    with pytest.raises(InvalidTopic, match="cannot name a topic"):
        cluster.metadata.create_topic(name)


def test_an_impossible_topic_is_refused_with_the_reason(cluster: Cluster) -> None:
    cluster.metadata.create_topic("a_b")
    with pytest.raises(InvalidTopic, match=r"'a\.b' collides with 'a_b'"):
        cluster.metadata.create_topic("a.b")
    with pytest.raises(TopicAlreadyExists):
        cluster.metadata.create_topic("a_b")
    with pytest.raises(TopicAlreadyExists):
        cluster.metadata.create_topic("__cluster_metadata")
    with pytest.raises(InvalidPartitions):
        cluster.metadata.create_topic("c", partitions=0)
    with pytest.raises(InvalidPartitions, match="has 1 partitions already"):
        cluster.metadata.create_partitions("a_b", 1)
    with pytest.raises(InvalidReplicationFactor, match="3 replicas, but there is 1 broker"):
        cluster.metadata.create_topic("c", replication_factor=3)
    with pytest.raises(InvalidConfiguration, match=r"retention\.m; did you mean retention\.ms"):
        cluster.metadata.create_topic("c", configs={"retention.m": "1"})
    with pytest.raises(InvalidConfiguration, match="Invalid value x for configuration retention.ms"):
        cluster.metadata.set_topic_configs("a_b", {"retention.ms": "x"})
    assert list(cluster.metadata.topics) == ["a_b"]


def test_a_log_that_belongs_to_no_topic_is_set_aside_at_the_start(cluster: Cluster) -> None:
    cluster.directory.create("stray", 0, uuid.uuid4())
    cluster.metadata.create_topic("kept")
    cluster.restart()
    assert cluster.directory.get("stray", 0) is None
    assert cluster.directory.get("kept", 0) is not None
    (aside,) = cluster.path.glob("*-stray")
    assert (aside / "00000000000000000000.log").exists()


def test_a_deletion_that_a_crash_interrupted_is_finished(cluster: Cluster) -> None:
    topic = cluster.metadata.create_topic("orders")
    cluster.metadata.delete_topic("orders")
    cluster.directory.create("orders", 0, topic.id)
    cluster.restart()
    assert cluster.directory.get("orders", 0) is None
    assert all(path.name.endswith("-delete") for path in cluster.path.glob("orders*"))
    cluster.directory.graves.clear(all_of_them=True)
    assert not list(cluster.path.glob("orders*"))


def test_another_nodes_directory_and_a_later_format_are_refused(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path / "data")
    cluster.directory.close()
    with pytest.raises(KafkaStorageError, match=r"belongs to node 1, but node\.id is 2"):
        cluster.start(node_id=2)
    cluster.directory.close()
    properties = tmp_path / "data" / "meta.properties"
    properties.write_text(properties.read_text().replace("tidegate.format=1", "tidegate.format=9"))
    with pytest.raises(KafkaStorageError, match="has format 9, written by a later release"):
        cluster.start()
    cluster.directory.close()


def test_a_record_of_an_unknown_type_is_passed_over_and_a_later_version_is_not(cluster: Cluster) -> None:
    cluster.metadata.log.append_records([Record(None, b"\x01\x63\x00")])
    cluster.metadata.create_topic("orders")
    assert set(cluster.restart().topics) == {"orders"}
    cluster.metadata.log.append_records([Record(None, b"\x01\x02\x07")])
    cluster.directory.close()
    with pytest.raises(CorruptMessage, match="type 2 version 7 is not known"):
        cluster.start()
    cluster.directory.close()
    shutil.rmtree(cluster.path)
    cluster.start()


def test_a_topic_whose_logs_cannot_be_made_is_taken_back(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    (disk,) = cluster.directory.disks
    made = disk.prepare

    def full(topic: str, partition: int, *rest: object) -> object:
        if partition == 2:
            raise KafkaStorageError("No space left on device")
        return made(topic, partition, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(disk, "prepare", full)
        with pytest.raises(KafkaStorageError):
            cluster.metadata.create_topic("orders", partitions=4)
    assert "orders" not in cluster.metadata.topics
    assert cluster.directory.get("orders", 0) is None
    assert cluster.metadata.create_topic("orders", partitions=4).partitions == 4
    assert set(cluster.restart().topics) == {"orders"}


def test_a_topic_that_was_neither_made_whole_nor_taken_back_gets_its_logs_later_and_stays(cluster: Cluster) -> None:
    with FaultyDisk(cluster.path) as disk:
        disk.fail(2, 1000)  # the records are written and flushed; then everything fails
        with pytest.raises(KafkaStorageError):
            cluster.metadata.create_topic("orders", partitions=4)
        cluster.directory.repair()
        cluster.metadata.make_missing_logs()
        assert cluster.metadata.topic("orders").partitions == 4
        assert not cluster.metadata.logs("orders")
        disk.mend()
        cluster.directory.repair()
        cluster.metadata.make_missing_logs()
    assert len(cluster.metadata.logs("orders")) == 4
    assert set(cluster.restart().topics) == {"orders"}
