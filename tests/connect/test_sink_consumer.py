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


@pytest.mark.parametrize("broker", ["tidegate_broker", "apache_kafka"])
def test_a_task_that_begins_again_does_not_wait_for_what_it_was_before(
    request: pytest.FixtureRequest, broker: str
) -> None:
    name = f"before-{uuid.uuid4().hex[:8]}"
    session = {"group.id": name, "session.timeout.ms": "120000", "heartbeat.interval.ms": "500"}
    config = ClientConfig(request.getfixturevalue(broker).bootstrap_servers, session)

    def task(number: int, **more: str) -> KafkaSinkConsumer:
        client_id = f"consumer-{name}-{number}"
        own = config.with_properties({"client.id": client_id, **more})
        consumer = KafkaSinkConsumer(ClientLoop(TaskControl()), own, [name], None, client_id)
        consumer.start()
        return consumer

    with Admin(config) as admin:
        admin.create_topics([NewTopic(name, 2)])
        dead = task(0, **{"heartbeat.interval.ms": "119000"})  # it will not hear of a rebalance for so long
        told(dead, "revoked")
        told(dead, "assigned")
        again, sibling = task(0), task(1)

        def shared_out() -> bool:
            for consumer in (again, sibling):
                while not consumer.events.empty():
                    _, _, done = consumer.events.get()
                    if done is not None:
                        done.set_result(None)
            group = admin.describe_group(name)
            owners = sorted(member.client_id for member in group.members if member.partitions)
            return group.state == "Stable" and owners == [f"consumer-{name}-0", f"consumer-{name}-1"]

        wait_until(shared_out, "both tasks at work", 100)  # less than the session
        for consumer in (again, sibling, dead):
            consumer.stop()
