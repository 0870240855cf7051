"""Several targets for one suite: every test here that uses ``bootstrap_servers`` runs against each broker."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from broker.client import ClientConfig
from tests.servers.fixtures import or_skip
from tests.servers.kafka import KafkaBroker
from tests.servers.tidegate_broker import TidegateBroker


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(params=["apache_kafka", "tidegate_broker"])
def bootstrap_servers(request: pytest.FixtureRequest) -> str:
    """The address of a running broker: Apache Kafka's and ours in turn."""
    return str(request.getfixturevalue(request.param).bootstrap_servers)


@pytest.fixture(params=["apache", "tidegate"])
def crashing(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KafkaBroker | TidegateBroker]:
    """A broker of the test's own, to be killed."""
    quick = {"broker.session.timeout.ms": "1500", "broker.heartbeat.interval.ms": "200"}  # else 9 s until it may return
    kinds = {"apache": lambda: KafkaBroker(tmp_path, quick), "tidegate": lambda: TidegateBroker(tmp_path)}
    broker = or_skip(kinds[request.param])
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture
def config(bootstrap_servers: str) -> ClientConfig:
    return ClientConfig(bootstrap_servers)


@pytest.fixture
def name() -> Callable[[], str]:
    """A name for a topic or group that no other test uses."""
    return lambda: f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
async def topic(config: ClientConfig, name: Callable[[], str]) -> Any:
    """A fresh topic with two partitions."""
    from broker.client import Admin, NewTopic

    created = name()
    async with Admin(config) as admin:
        await admin.create_topics([NewTopic(created, partitions=2)])
    return created
