"""Promised compatibility with Kafka: every test here runs against our broker and against Apache Kafka."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable

import pytest

from tests.servers.process import wait_until

with warnings.catch_warnings():
    # kafka-python reads its message definitions by a function that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # noqa: F401


@pytest.fixture(scope="session", params=["tidegate_broker", "apache_kafka"])
def bootstrap_servers(request: pytest.FixtureRequest) -> str:
    """The address of a running broker: ours and Apache Kafka's in turn."""
    return str(request.getfixturevalue(request.param).bootstrap_servers)


@pytest.fixture
def name() -> Callable[[], str]:
    """A name for a topic or a group that no other test uses."""
    return lambda: f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def topic(bootstrap_servers: str, name: Callable[[], str]) -> str:
    """A fresh topic with three partitions, ready for reading and writing."""
    from confluent_kafka import KafkaException, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

    created = name()
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(created, 3, 1)])[created].result(60)

    def ready() -> bool:
        requested = {TopicPartition(created, partition): OffsetSpec.latest() for partition in range(3)}
        try:
            return all(future.result(60).offset == 0 for future in admin.list_offsets(requested).values())
        except KafkaException:
            return False  # Apache Kafka's brokers hear of a topic some time after its controller

    wait_until(ready, f"leaders of {created}")
    return created
