"""A broker near its limit on open files refuses topics, and goes on with everything else."""

from __future__ import annotations

import contextlib
import resource

import pytest
from confluent_kafka import Producer

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin
from broker.client.errors import PolicyViolation
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tidegate.kit.open_files import FileRoom, most_open_files, raise_limit

_LIMIT = 300


@pytest.fixture
def broker(tmp_path):
    made = TidegateBroker(tmp_path / "broker", {"log.segment.delete.delay.ms": "1"}, open_files=_LIMIT)
    made.start()
    yield made
    made.stop()


def test_topics_are_refused_before_connections_are(broker):
    with Admin(ClientConfig(broker.bootstrap_servers)) as admin:
        made = 0
        with pytest.raises(PolicyViolation, match=r"open files.*ulimit -n"):
            for made in range(0, _LIMIT, 10):
                admin.create_topics([NewTopic(f"files-{made}", 10, 1)])
        assert 100 < made < _LIMIT
        with pytest.raises(PolicyViolation):
            admin.create_partitions("files-0", 60)
        producers = [Producer({"bootstrap.servers": broker.bootstrap_servers}) for _ in range(5)]
        for producer in producers:
            producer.produce("files-10", b"x")
            assert producer.flush(30) == 0
        del producer, producers
        for number in range(0, made, 10):
            admin.delete_topics([f"files-{number}"])

        def fits() -> bool:
            with contextlib.suppress(PolicyViolation):
                admin.create_topics([NewTopic("files-again", 50, 1)])
                return True
            return False

        wait_until(fits, "room for a topic once the files of the deleted ones are closed")


def test_the_soft_limit_goes_up_to_the_hard_one():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(512, before[1]), before[1]))
        assert raise_limit() == most_open_files() == min(before[1], 1 << 20)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_room_is_what_the_limit_leaves():
    room = FileRoom()
    assert room.has(1) and not room.has(room.most)
