"""A broker with more partitions than files that it may open."""

from __future__ import annotations

import resource
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tidegate.kit.open_files import most_open_files, raise_limit

_LIMIT = 100
_PARTITIONS = 150
_TOPIC = "more-than-files"


@pytest.fixture
def broker(tmp_path):
    made = TidegateBroker(tmp_path / "broker", {"file.delete.delay.ms": "1"}, open_files=_LIMIT)
    made.start()
    yield made
    made.stop()


def test_more_partitions_than_open_files(broker):
    with Admin(ClientConfig(broker.bootstrap_servers)) as admin:
        admin.create_topics([NewTopic(_TOPIC, _PARTITIONS - 50, 1)])
        admin.create_partitions(_TOPIC, _PARTITIONS)
    _produce(broker, range(1))
    assert _read(broker) == [0]
    broker.kill()
    broker.start()
    _produce(broker, range(1, 2))
    assert _read(broker) == [0, 1]
    broker.stop()
    broker.start()
    connections = [Producer({"bootstrap.servers": broker.bootstrap_servers}) for _ in range(10)]
    assert all(connection.list_topics(timeout=30) for connection in connections)
    assert _read(broker) == [0, 1]
    with Admin(ClientConfig(broker.bootstrap_servers)) as admin:
        admin.delete_topics([_TOPIC])
    wait_until(lambda: not _files(broker), "the files of a deleted topic closed")


def _files(broker: TidegateBroker) -> list[str]:
    return [
        file.path for file in psutil.Process(broker.process.pid).open_files() if _TOPIC in Path(file.path).parent.name
    ]


def _produce(broker: TidegateBroker, numbers: range) -> None:
    """A record of each number to each partition."""
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "linger.ms": 0})
    for number in numbers:
        for partition in range(_PARTITIONS):
            producer.produce(_TOPIC, b"%d" % number, partition=partition)
        assert producer.flush(60) == 0
    assert 0 < len(_files(broker)) < _LIMIT


def _read(broker: TidegateBroker) -> list[int]:
    """The numbers in each partition, which are the same in all of them."""
    settings = {"group.id": "-", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    consumer.assign([TopicPartition(_TOPIC, partition, 0) for partition in range(_PARTITIONS)])
    read: dict[int, list[int]] = {partition: [] for partition in range(_PARTITIONS)}
    ended: set[int] = set()
    while len(ended) < _PARTITIONS:
        message = consumer.poll(30)
        assert message is not None, f"{len(ended)} of {_PARTITIONS} partitions were read to their end"
        if message.error() is not None:
            assert message.error().name() == "_PARTITION_EOF", message.error()
            ended.add(message.partition())
        else:
            read[message.partition()].append(int(message.value()))
    consumer.close()
    assert all(one == other for one, other in pairwise(read.values()))
    return read[0]


def test_the_soft_limit_goes_up_to_the_hard_one():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, before[1]), before[1]))
        assert raise_limit() == most_open_files() == min(before[1], 1 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
