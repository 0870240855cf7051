"""Creating and deleting thousands of partitions while other clients work."""

from __future__ import annotations

import os
import re
import time
import uuid
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.servers.tidegate_broker import TidegateBroker

_PARTITIONS = 500
_MANY = 4 * _PARTITIONS
"""Deleting them takes long enough for several records beside it, on a quiet machine too."""


def test_others_are_served_while_partitions_are_created_and_deleted(tidegate_broker):
    settings = {"bootstrap.servers": tidegate_broker.bootstrap_servers, "log_level": 0}
    wide = f"wide-{uuid.uuid4().hex[:8]}"  # other tests have topics on this broker
    admin = AdminClient(settings)
    producer = Producer({**settings, "linger.ms": 0})
    _wait_for(admin.create_topics([NewTopic("beside", 1, 1)]))
    for begin, created in (
        (lambda: admin.create_topics([NewTopic(wide, _MANY, 1)]), True),
        (lambda: admin.delete_topics([wide]), False),
    ):
        changing = begin()
        served = 0
        while not all(future.done() for future in changing.values()):
            producer.produce("beside", b"x", partition=0)
            assert producer.flush(30) == 0
            served += 1
        _wait_for(changing)
        assert served > 2
        assert not created or len(admin.list_topics(wide, timeout=30).topics[wide].partitions) == _MANY


def test_a_topic_whose_logs_are_being_created_has_no_leaders_yet(tidegate_broker):
    settings = {
        "bootstrap.servers": tidegate_broker.bootstrap_servers,
        "log_level": 0,
        "allow.auto.create.topics": False,
    }
    admin = AdminClient(settings)
    creating = AdminClient(settings)
    changing = creating.create_topics([NewTopic("slow", _PARTITIONS, 1)])
    codes: set[int | None] = set()
    while None not in codes:
        topic = admin.list_topics("slow", timeout=30).topics["slow"]
        codes.update(partition.error.code() if partition.error else None for partition in topic.partitions.values())
    assert codes <= {None, KafkaError.LEADER_NOT_AVAILABLE}
    # A producer that knew of the topic before its logs were there waits for them.
    producer = Producer(settings)
    producer.produce("slow", b"x", partition=_PARTITIONS - 1)
    _wait_for(changing)
    assert producer.flush(30) == 0


def test_names_that_collide_in_one_request_are_told_apart(tidegate_broker):
    admin = AdminClient({"bootstrap.servers": tidegate_broker.bootstrap_servers})
    result = admin.create_topics([NewTopic("a.b", 1, 1), NewTopic("a_b", 1, 1), NewTopic("c", 1, 1)])
    errors = {name: future.exception() for name, future in result.items()}
    assert [errors["a.b"], errors["c"]] == [None, None]
    assert "collides with 'a.b'" in str(errors["a_b"])


@pytest.mark.parametrize("ended_by", ["stop", "kill"])
def test_a_broker_that_ends_while_it_creates_partitions_has_all_of_them_after_its_start(tmp_path, ended_by):
    broker = TidegateBroker(tmp_path)
    broker.start()
    settings = {"bootstrap.servers": broker.bootstrap_servers, "log_level": 0}
    try:
        creating = AdminClient(settings)
        creating.create_topics([NewTopic("cut", _MANY, 1)])
        while _made(tmp_path / "log") < 10:
            time.sleep(0.01)
        getattr(broker, ended_by)()
        if ended_by == "kill":  # a stop may find time to finish
            assert _made(tmp_path / "log") < _MANY, "it was in the middle"
        broker.start()
        topic = AdminClient(settings).list_topics("cut", timeout=60).topics["cut"]
        assert [partition.error for partition in topic.partitions.values()] == [None] * _MANY
        producer = Producer(settings)
        for partition in (0, _MANY - 1):
            producer.produce("cut", b"x", partition=partition)
        assert producer.flush(60) == 0
    finally:
        broker.stop()


def _made(directory: Path) -> int:
    """How many partitions of the topic cut have their directory."""
    return sum(re.fullmatch(r"cut-\d+", name) is not None for name in os.listdir(directory))


def _wait_for(results) -> None:
    for future in results.values():
        future.result(60)
