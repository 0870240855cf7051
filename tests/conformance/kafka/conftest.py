"""What we promise of Kafka: every test here runs against our broker and against Apache Kafka."""

from __future__ import annotations

import uuid
import warnings
from collections.abc import Callable

import pytest

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
    """A fresh topic with three partitions."""
    from confluent_kafka.admin import AdminClient, NewTopic

    created = name()
    admin = AdminClient({"bootstrap.servers": bootstrap_servers})
    admin.create_topics([NewTopic(created, 3, 1)])[created].result(30)
    return created
