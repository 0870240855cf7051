"""Creating and deleting thousands of partitions while other clients work."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.servers.tidegate_broker import TidegateBroker

_PARTITIONS = 500
_MANY = 4 * _PARTITIONS


def test_others_are_served_while_partitions_are_created_and_deleted(tidegate_broker):
    settings = {"bootstrap.servers": tidegate_broker.bootstrap_servers, "log_level": 0}
    admin = AdminClient(settings)
    producer = Producer({**settings, "linger.ms": 0})
    _wait_for(admin.create_topics([NewTopic("beside", 1, 1)]))
    # The first record waits for connections and metadata, which is no fault of the change.
    _send(producer)
    for wide in (_MANY, 2 * _MANY, 4 * _MANY):
        served = []
        for changing in (
            lambda: admin.create_topics([NewTopic("wide", wide, 1)]),
            lambda: admin.delete_topics(["wide"]),
        ):
            results = changing()
            records = 0
            while not all(future.done() for future in results.values()):
                _send(producer)
                records += 1
            _wait_for(results)
            served.append(records)
            known = admin.list_topics(timeout=30).topics
            assert len(served) == 2 or len(known["wide"].partitions) == wide
        # A broker that serves nobody beside the change answers one record at its end, however long it takes.
        if min(served) > 2:
            return
    raise AssertionError(f"records served beside the last creation and deletion: {served}")


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


def _send(producer: Producer) -> None:
    producer.produce("beside", b"x", partition=0)
    assert producer.flush(30) == 0


def _made(directory: Path) -> int:
    """How many partitions of the topic cut have their directory."""
    return sum(re.fullmatch(r"cut-\d+", name) is not None for name in os.listdir(directory))


def _wait_for(results) -> None:
    for future in results.values():
        future.result(60)
