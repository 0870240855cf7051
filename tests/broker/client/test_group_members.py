"""Admin shows the partitions that a group's members read, even if the group's leader assigned invalid bytes."""

from __future__ import annotations

import asyncio
import json
import uuid

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic
from hypothesis import given
from hypothesis import strategies as st

from broker.client import BatchConsumer, ClientConfig, TopicPartition
from broker.client.blocking import Admin, BatchProducer
from broker.client.groups_admin import _assigned
from tests.servers.process import wait_until
from tests.servers.tidegate_broker import TidegateBroker
from tests.support.platform import tidegate


class Stuck:
    """A listener that deals with no revocation once it ``holds``, as a task whose database does not answer."""

    def __init__(self) -> None:
        self.holds, self.told = False, asyncio.Event()

    async def on_revoked(self, partitions: set[TopicPartition]) -> None:
        if self.holds:
            self.told.set()
            await asyncio.Event().wait()

    async def on_assigned(self, partitions: set[TopicPartition]) -> None:
        pass


def test_a_member_that_could_not_leave_is_missed_after_its_session(tidegate_broker: TidegateBroker) -> None:
    """A sink that is stopped gives up after two seconds, in a process that goes on."""
    name = f"stuck-{uuid.uuid4().hex[:8]}"
    client = AdminClient({"bootstrap.servers": tidegate_broker.bootstrap_servers})
    client.create_topics([NewTopic(name, 2)])[name].result(30)
    session = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}
    config = ClientConfig(tidegate_broker.bootstrap_servers, {"group.id": name, **session})

    async def owns_both(consumer: BatchConsumer) -> None:
        while len(consumer.assignment()) < 2:
            await consumer.fetch(100)

    async def moved() -> None:
        listener = Stuck()
        first = await BatchConsumer(config).start()
        await first.subscribe([name], listener=listener)
        await asyncio.wait_for(owns_both(first), 60)
        listener.holds = True
        async with BatchConsumer(config) as second:
            await second.subscribe([name])
            await asyncio.wait_for(listener.told.wait(), 60)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(first.stop(), 0.2)
            await asyncio.wait_for(owns_both(second), 60)  # and not after max.poll.interval.ms

    asyncio.run(moved())


@given(st.binary(max_size=200))
def test_any_bytes_are_an_assignment_or_none(data: bytes) -> None:
    assert isinstance(_assigned(data), tuple)


@given(st.lists(st.tuples(st.text(max_size=10), st.lists(st.integers(0, 2**31 - 1), max_size=4)), max_size=4))
def test_an_assignment_is_read_as_it_was_written(topics: list[tuple[str, list[int]]]) -> None:
    data = ConsumerProtocolMemberAssignment(0, topics, b"").encode()
    assert list(_assigned(data)) == [TopicPartition(topic, number) for topic, numbers in topics for number in numbers]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_that_has_committed_nothing_lags_by_all_there_is(
    tidegate_broker: TidegateBroker, protocol: str
) -> None:
    servers, name = tidegate_broker.bootstrap_servers, f"lag-{uuid.uuid4().hex[:8]}"
    client = AdminClient({"bootstrap.servers": servers})
    client.create_topics([NewTopic(name, 1)])[name].result(30)
    with BatchProducer(ClientConfig(servers)) as producer:
        for number in range(4):
            producer.enqueue(name, None, b"%d" % number)
        producer.flush()
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": name, "group.protocol": protocol, "enable.auto.commit": False}
    )
    consumer.subscribe([name])
    with Admin(ClientConfig(servers)) as admin:

        def assigned() -> bool:
            consumer.poll(0.05)
            members = admin.describe_group(name).members
            return [member.partitions for member in members] == [(TopicPartition(name, 0),)]

        wait_until(assigned, "the assignment")
    where = ("--bootstrap-servers", servers, "--json")
    described = json.loads(tidegate("groups", "describe", name, *where).stdout)
    assert described["offsets"] == [{"topic": name, "partition": 0, "committed": None, "end": 4, "lag": 4}]
    listed = {row["group"]: row["lag"] for row in json.loads(tidegate("groups", "list", *where).stdout)}
    assert listed[name] == 4
    consumer.close()
