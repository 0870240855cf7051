"""Several data directories: the placement of partitions, moves during writes, and the effects of a failed disk."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from broker.errors import InvalidReplicaAssignment, InvalidReplicationFactor, KafkaStorageError
from broker.log.directory import LogDirectory
from broker.metadata.image import ClusterMetadata
from broker.protocol.api import ApiKey
from broker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopic,
)
from broker.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from broker.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from broker.protocol.records import Record
from broker.protocol.schema import Request, Response, decode, encode
from tests.servers.process import wait_until
from tests.support.broker import BrokerThread, settings
from tests.support.wire import exchange

RECORDS = 6000


def ask(port: int, key: ApiKey, version: int, request: Request, answer: type[Response]) -> Any:
    with socket.create_connection(("127.0.0.1", port), 10) as sock:
        head = bytes([0, int(key), 0, version, 0, 0, 0, 1, 255, 255, 0])
        return decode(answer, exchange(sock, head + bytes(encode(request, version, bytearray()))), version, 5)


def described(port: int) -> dict[str, dict[tuple[str, int], tuple[int, bool]]]:
    """The partitions in each directory, with their size and whether they are still being moved there."""
    answer = ask(port, ApiKey.DESCRIBE_LOG_DIRS, 4, DescribeLogDirsRequest(topics=None), DescribeLogDirsResponse)
    assert all(log_dir.error_code or 0 < log_dir.usable_bytes < log_dir.total_bytes for log_dir in answer.results)
    return {
        log_dir.log_dir: {
            (topic.name, partition.partition_index): (partition.partition_size, partition.is_future_key)
            for topic in log_dir.topics
            for partition in topic.partitions
        }
        for log_dir in answer.results
    }


def move(port: int, path: Path | str, partition: int) -> int:
    topics = [AlterReplicaLogDirTopic(name="t", partitions=[partition])]
    request = AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir(path=str(path), topics=topics)])
    answer = ask(port, ApiKey.ALTER_REPLICA_LOG_DIRS, 2, request, AlterReplicaLogDirsResponse)
    return int(answer.results[0].partitions[0].error_code)


def everything(bootstrap: str, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "check", "check.crcs": True})
    consumer.assign([TopicPartition("t", 0, 0)])
    values: list[int] = []
    while len(values) < count:
        messages = consumer.consume(count - len(values), 60)
        assert messages, f"{len(values)} of {count} came"
        values += [int(message.value()) for message in messages]
    consumer.close()
    return values


def test_a_partition_moves_while_it_is_written_to(tmp_path: Path) -> None:
    disks = [tmp_path / "one", tmp_path / "two"]
    broker_settings = {**settings(tmp_path), "log.dirs": ",".join(map(str, disks)), "log.segment.bytes": "1048576"}
    with BrokerThread(broker_settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("t", 2)])["t"].result(60)
        at = described(broker.port)
        homes = {which[1]: path for path, partitions in at.items() for which in partitions}
        assert sorted(homes) == [0, 1]
        assert homes[0] != homes[1]
        failed: list[KafkaError] = []
        producer = Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "enable.idempotence": True, "batch.num.messages": 20}
        )

        def load() -> None:
            for number in range(RECORDS):
                producer.produce(
                    "t",
                    b"%-600d" % number,
                    partition=0,
                    on_delivery=lambda error, _: failed.append(error) if error else None,
                )
                producer.poll(0)
                if number % 500 == 0:
                    producer.flush(60)

        loading = threading.Thread(target=load)
        loading.start()
        for target in (homes[1], homes[0], homes[1]):
            assert move(broker.port, target, 0) == 0
            wait_until(lambda: described(broker.port)[target].get(("t", 0), (0, True))[1] is False, "the move")
        loading.join()
        assert producer.flush(60) == 0
        assert failed == []
        assert everything(broker.bootstrap_servers, RECORDS) == list(range(RECORDS))
        assert move(broker.port, "/elsewhere", 0) == 57
        assert move(broker.port, disks[0], 7) == 3
        assert not list(tmp_path.glob("*/*-future"))
    with BrokerThread(broker_settings) as broker:
        assert ("t", 0) in described(broker.port)[homes[1]]
        assert everything(broker.bootstrap_servers, RECORDS) == list(range(RECORDS))


def test_a_failed_disk_takes_only_its_partitions_offline(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    directory = LogDirectory(paths)
    directory.open()
    metadata = ClusterMetadata.open(directory)
    metadata.create_topic("t", partitions=4)
    for log in metadata.logs("t"):
        log.append_records([Record(None, b"%d" % log.partition)])
    on_two = {log.partition for log in directory.disks[1].all()}
    assert len(on_two) in (2, 3)
    directory.close()
    paths[1].rename(tmp_path / "away")
    paths[1].write_text("the disk is gone")
    with BrokerThread({**settings(tmp_path), "log.dirs": ",".join(map(str, paths))}) as broker:
        results: dict[int, int | None] = {}

        def delivered(error: KafkaError | None, sent: Message) -> None:
            results[sent.partition()] = error and error.code()

        for partitions, patience_ms in ((set(range(4)) - on_two, 60_000), (on_two, 1000)):
            common = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
            producer = Producer({**common, "message.timeout.ms": patience_ms})
            for partition in partitions:
                producer.produce("t", b"x", partition=partition, on_delivery=delivered)
            assert producer.flush(60) == 0
        assert {partition for partition, error in results.items() if error is not None} == on_two
        with pytest.raises(KafkaStorageError, match="on a disk that failed"):
            broker.server.broker.partitions.find("t", min(on_two))
        topics = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=60).topics["t"]
        assert {number for number, log in topics.partitions.items() if log.leader == -1} == on_two
        assert described(broker.port)[str(paths[1])] == {}
        pages = ask(
            broker.port,
            ApiKey.DESCRIBE_TOPIC_PARTITIONS,
            0,
            DescribeTopicPartitionsRequest(topics=[TopicRequest(name="t")]),
            DescribeTopicPartitionsResponse,
        )
        assert {log.partition_index for log in pages.topics[0].partitions if log.leader_id == -1} == on_two
    paths[1].unlink()
    shutil.move(tmp_path / "away", paths[1])
    directory = LogDirectory(paths)
    directory.open()
    metadata = ClusterMetadata.open(directory)
    assert sorted(log.partition for log in metadata.logs("t")) == [0, 1, 2, 3]
    assert all(next(log.iter_records()).value == b"%d" % log.partition for log in metadata.logs("t"))
    directory.close()


def test_a_partition_that_is_in_two_places_is_taken_from_one(tmp_path: Path) -> None:
    paths = [tmp_path / "one", tmp_path / "two"]
    directory = LogDirectory(paths)
    directory.open()
    metadata = ClusterMetadata.open(directory)
    metadata.create_topic("t")
    (log,) = metadata.logs("t")
    log.append_records([Record(None, b"kept")])
    home = directory.disk_of(log).path
    other = next(path for path in paths if path != home)
    directory.close()
    shutil.copytree(home / "t-0", other / "t-0")
    directory = LogDirectory(paths)
    directory.open()
    metadata = ClusterMetadata.open(directory)
    assert [record.value for record in metadata.logs("t")[0].iter_records()] == [b"kept"]
    assert len([name for path in paths for name in os.listdir(path) if name.endswith("-stray")]) == 1
    directory.close()


def test_cordoned_directories_get_nothing_new(tmp_path: Path) -> None:
    first, two = (str(tmp_path / name) for name in ("one", "two"))
    broker_settings = {**settings(tmp_path), "log.dirs": f"{first},{two}", "cordoned.log.dirs": first}
    with BrokerThread(broker_settings) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("t", 3)])["t"].result(60)
        assert {path for path, partitions in described(broker.port).items() if partitions} == {two}
        assert move(broker.port, first, 0) == InvalidReplicaAssignment.code
        cordon(admin, "*")
        for failing in (
            admin.create_topics([NewTopic("u", 1)])["u"],
            admin.create_partitions([NewPartitions("t", 4)])["t"],
        ):
            with pytest.raises(KafkaException) as refused:
                failing.result(60)
            assert refused.value.args[0].code() == InvalidReplicationFactor.code
        request = DescribeLogDirsRequest(topics=None)
        shown = ask(broker.port, ApiKey.DESCRIBE_LOG_DIRS, 5, request, DescribeLogDirsResponse)
        assert [result.is_cordoned for result in shown.results] == [True, True]
        cordon(admin, two)
        assert move(broker.port, first, 0) == 0
        admin.create_topics([NewTopic("u", 1)])["u"].result(60)
        assert ("u", 0) in described(broker.port)[first]
        wait_until(lambda: described(broker.port)[first].get(("t", 0), (0, True))[1] is False, "the move")


def cordon(admin: AdminClient, paths: str) -> None:
    entry = ConfigEntry("cordoned.log.dirs", paths, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.BROKER, "1", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(60)


def test_a_disk_that_fails_keeps_nothing_from_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = LogDirectory([tmp_path / "one", tmp_path / "two"])
    directory.open()
    metadata = ClusterMetadata.open(directory)
    metadata.create_topic("t", partitions=4)
    for log in metadata.logs("t"):
        log.append_records([Record(None, b"v")])

    def broken(*_: Any, **__: Any) -> None:
        raise OSError(5, "the disk is gone")

    directory.flush()
    with monkeypatch.context() as failing:
        failing.setattr(directory.disks[0]._checkpoints, "write", broken)
        with pytest.raises(KafkaStorageError, match="the disk is gone"):
            directory.checkpoint()
    points = [tmp_path / name / "recovery-point-offset-checkpoint" for name in ("one", "two")]
    assert [path.exists() and " 1\n" in path.read_text() for path in points] == [False, True]
    on_one = next(log for log in metadata.logs("t") if directory.disk_of(log) is directory.disks[0])
    monkeypatch.setattr(on_one.recovery_files, "save_snapshot", broken)
    with pytest.raises(KafkaStorageError, match="the disk is gone"):
        directory.close()
    assert not (tmp_path / "one" / ".kafka_cleanshutdown").exists()
    assert (tmp_path / "two" / ".kafka_cleanshutdown").exists()
    again = LogDirectory([tmp_path / "one", tmp_path / "two"])
    again.open()
    again.close()
