"""The consumer of a sink's task leaves its group when the task stops, whatever the task was told last."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from broker.client import ClientConfig, NewTopic
from broker.client.blocking import Admin
from connect.task.clients import ClientLoop
from connect.task.control import TaskControl
from connect.task.sinks.consumer import KafkaSinkConsumer
from tests.servers.process import wait_until


def told(consumer: KafkaSinkConsumer, what: str, *, deals: bool = True) -> None:
    """Wait until the task is told of a rebalance. It comes to an end with it if it ``deals``."""
    said, _, done = consumer.events.get(timeout=60)
    assert said == what and done is not None
    if deals:
        done.set_result(None)


@pytest.mark.parametrize("middle", ["assigned", "revoked"])
def test_a_stop_in_the_middle_of_a_rebalance_leaves_the_group(tidegate_broker: Any, middle: str) -> None:
    name = f"middle-{uuid.uuid4().hex[:8]}"
    session = {"group.id": name, "session.timeout.ms": "60000", "heartbeat.interval.ms": "500"}
    config = ClientConfig(tidegate_broker.bootstrap_servers, session)
    with Admin(config) as admin:
        admin.create_topics([NewTopic(name, 2)])
        first, second = (KafkaSinkConsumer(ClientLoop(TaskControl()), config, [name], None) for _ in range(2))
        first.start()
        told(first, "revoked")
        told(first, "assigned", deals=middle == "revoked")
        if middle == "revoked":
            second.start()
            told(second, "revoked")
            told(first, "revoked", deals=False)
        first.stop()
        left = 1 if middle == "revoked" else 0
        wait_until(lambda: len(admin.describe_group(name).members) == left, "the first one away", 30)
        second.stop()
