"""Groups: consumers that share a topic, and members of a protocol of our own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import pytest

from broker.client import (
    Admin,
    BatchConsumer,
    BatchProducer,
    ClientConfig,
    FetchedBatches,
    Generation,
    GroupMember,
    NewTopic,
    TopicPartition,
)
from broker.client.errors import InconsistentGroupProtocol
from tests.servers.kafka import KafkaBroker
from tests.servers.tidegate_broker import TidegateBroker

pytestmark = pytest.mark.anyio


class Sharing:
    """A behaviour that deals out letters, each member's metadata being its name."""

    def __init__(self, name: str, letters: str = "abcd") -> None:
        self.name, self.letters = name, letters
        self.generations: list[Generation] = []
        self.changed = asyncio.Condition()
        self.joins = 0

    def protocols(self) -> Sequence[tuple[str, bytes]]:
        return [("letters", self.name.encode())]

    async def assign(self, protocol: str, leader_id: str, members: Mapping[str, bytes]) -> Mapping[str, bytes]:
        assert protocol == "letters"
        order = sorted(members, key=lambda member: members[member])
        return {member: self.letters[position :: len(order)].encode() for position, member in enumerate(order)}

    async def before_join(self) -> None:
        self.joins += 1

    async def on_generation(self, generation: Generation) -> None:
        async with self.changed:
            self.generations.append(generation)
            self.changed.notify_all()

    async def settled(self, assignment: bytes) -> Generation:
        async with asyncio.timeout(60), self.changed:
            await self.changed.wait_for(
                lambda: bool(self.generations) and self.generations[-1].assignment == assignment
            )
            return self.generations[-1]


def member(config: ClientConfig, group: str, behaviour: Sharing, **options: object) -> GroupMember:
    return GroupMember(
        config, group, "letters", behaviour, heartbeat_interval_ms=100, session_timeout_ms=6000, **options
    )  # type: ignore[arg-type]


async def test_members_share_and_take_over(config: ClientConfig, name: Callable[[], str]) -> None:
    group = name()
    first, second = Sharing("1"), Sharing("2")
    first_member, two = member(config, group, first), member(config, group, second)
    await first_member.start()
    assert (await first.settled(b"abcd")).is_leader
    await two.start()
    settled = await first.settled(b"ac"), await second.settled(b"bd")
    assert settled[0].generation_id == settled[1].generation_id
    assert {generation.leader_id for generation in settled} == {settled[0].member_id}
    async with Admin(config) as admin:
        described = await admin.describe_group(group)
        assert (described.state, described.protocol_type, described.protocol) == ("Stable", "letters", "letters")
        assert {m.assignment for m in described.members} == {b"ac", b"bd"}
    await first_member.stop()
    assert (await second.settled(b"abcd")).is_leader
    await two.stop()


async def test_the_leader_joining_again_assigns_anew(config: ClientConfig, name: Callable[[], str]) -> None:
    behaviour = Sharing("1")
    only = member(config, name(), behaviour)
    await only.start()
    before = await behaviour.settled(b"abcd")
    behaviour.letters = "xyz"
    only.rejoin()
    after = await behaviour.settled(b"xyz")
    assert after.generation_id > before.generation_id
    assert after.member_id == before.member_id
    await only.stop()


async def test_a_static_member_keeps_its_place(config: ClientConfig, name: Callable[[], str]) -> None:
    group = name()
    for _ in range(2):
        behaviour = Sharing("1")
        only = member(config, group, behaviour, instance_id="place-1")
        await only.start()
        await behaviour.settled(b"abcd")
        await only.stop()
    async with Admin(config) as admin:
        assert len((await admin.describe_group(group)).members) == 1


async def test_a_member_of_another_protocol_type_is_refused(config: ClientConfig, name: Callable[[], str]) -> None:
    group, behaviour = name(), Sharing("1")
    only = member(config, group, behaviour)
    await only.start()
    await behaviour.settled(b"abcd")
    other = GroupMember(config, group, "numbers", Sharing("2"))
    await other.start()
    with pytest.raises(InconsistentGroupProtocol, match=group):
        await asyncio.wait_for(other.wait_failed(), 60)
    await other.stop()
    await only.stop()


async def test_a_member_comes_back_after_a_crash_of_the_broker(crashing: KafkaBroker | TidegateBroker) -> None:
    config = ClientConfig(crashing.bootstrap_servers, {"retry.backoff.ms": "50"})
    behaviour = Sharing("1")
    only = member(config, "g", behaviour)
    await only.start()
    await behaviour.settled(b"abcd")
    crashing.kill()
    await asyncio.to_thread(crashing.start)
    behaviour.letters = "xyz"
    only.rejoin()
    settling, failing = asyncio.create_task(behaviour.settled(b"xyz")), asyncio.create_task(only.wait_failed())
    await asyncio.wait({settling, failing}, return_when=asyncio.FIRST_COMPLETED)
    if failing.done():
        failing.result()
    failing.cancel()
    assert settling.result().is_leader
    await only.stop()


async def test_a_member_without_a_broker_waits_and_can_be_stopped(crashing: KafkaBroker | TidegateBroker) -> None:
    behaviour = Sharing("1")
    only = member(ClientConfig(crashing.bootstrap_servers), "g", behaviour)
    await only.start()
    await behaviour.settled(b"abcd")
    crashing.kill()
    only.rejoin()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(only.wait_failed(), 0.5)
    async with asyncio.timeout(60):
        await only.stop()


class Listening:
    def __init__(self) -> None:
        self.heard: list[tuple[str, set[int]]] = []

    async def on_revoked(self, partitions: set[TopicPartition]) -> None:
        self.heard.append(("revoked", {tp.partition for tp in partitions}))

    async def on_assigned(self, partitions: set[TopicPartition]) -> None:
        self.heard.append(("assigned", {tp.partition for tp in partitions}))


async def test_consumers_of_a_group_share_a_topic_and_commit(config: ClientConfig, topic: str) -> None:
    grouped = config.with_properties(
        {"group.id": f"g-{topic}", "auto.offset.reset": "earliest", "heartbeat.interval.ms": "100"}
    )
    listening = Listening()
    async with BatchProducer(config) as producer, BatchConsumer(grouped) as member_consumer:
        for partition in (0, 1):
            await producer.send(topic, None, b"%d" % partition, partition=partition)
        await member_consumer.subscribe([topic], listener=listening)
        seen: set[bytes | None] = set()
        while seen != {b"0", b"1"}:
            seen |= {record.value for fetched in await member_consumer.fetch(500) for record in fetched.records()}
        await member_consumer.commit()
        async with BatchConsumer(grouped) as two:
            await two.subscribe([topic])
            while not (len(member_consumer.assignment()) == len(two.assignment()) == 1):
                await member_consumer.fetch(50)
                await two.fetch(50)
            assert member_consumer.assignment() | two.assignment() == {(topic, 0), (topic, 1)}
            for consumer in (member_consumer, two):
                (mine,) = consumer.assignment()
                assert await consumer.position(mine) == 1
    assert listening.heard[:2] == [("revoked", set()), ("assigned", {0, 1})]
    assert ("revoked", {0, 1}) in listening.heard
    async with Admin(config) as admin:
        assert await admin.group_offsets(f"g-{topic}") == {(topic, 0): 1, (topic, 1): 1}


async def test_a_topic_that_comes_later_is_read(config: ClientConfig, name: Callable[[], str]) -> None:
    topic, group = name(), name()
    async with Admin(config) as admin, BatchConsumer(config.with_properties(
        {"group.id": group, "auto.offset.reset": "earliest"}
    )) as consumer:  # fmt: skip
        await consumer.subscribe([topic])
        assert await consumer.fetch(max_wait_ms=300) == []
        await admin.create_topics([NewTopic(topic, 2, 1)], exist_ok=True)  # metadata may have created it by then
        async with BatchProducer(config) as producer:
            await producer.send(topic, None, b"late")
        fetched: list[FetchedBatches] = []
        async with asyncio.timeout(60):  # metadata is asked for anew after 5 minutes of its own
            while not fetched:
                fetched = await consumer.fetch()
    assert [record.value for part in fetched for record in part.records()] == [b"late"]


async def test_a_pattern_is_matched_whole(config: ClientConfig, topic: str) -> None:
    grouped = config.with_properties({"group.id": f"g-{topic}", "metadata.max.age.ms": "500"})
    async with BatchConsumer(grouped) as consumer:
        await consumer.subscribe(pattern=topic[:-1] + ".")
        while not consumer.assignment():
            await consumer.fetch(50)
        assert {tp.topic for tp in consumer.assignment()} == {topic}
    async with BatchConsumer(grouped) as consumer:
        await consumer.subscribe(pattern=topic[:-1])
        await consumer.fetch(500)
        assert not consumer.assignment()


async def test_a_topic_that_is_missing_is_created_only_where_that_is_asked_for(
    config: ClientConfig, name: Callable[[], str]
) -> None:
    """Both brokers create topics on their own, by their defaults."""
    topic, group = name(), name()
    waits = config.with_properties({"group.id": group, "allow.auto.create.topics": "false"})
    async with Admin(config) as admin, BatchConsumer(waits) as consumer, asyncio.timeout(60):
        await consumer.subscribe([topic])
        await consumer.fetch(500)
        assert consumer.missing_topics == {topic}
        assert topic not in await admin.list_topics()
        await admin.create_topics([NewTopic(topic, partitions=3)])
        while len(consumer.assignment()) < 3:
            await consumer.fetch(100)
        assert not consumer.missing_topics
        other = name()
        async with BatchConsumer(config.with_properties({"group.id": name()})) as creates:
            await creates.subscribe([other])
            while other not in await admin.list_topics():
                await creates.fetch(100)


async def test_a_topic_that_is_deleted_and_made_again_is_read_soon(
    config: ClientConfig, name: Callable[[], str]
) -> None:
    """Metadata is asked for anew after 5 minutes of its own."""
    topic = name()
    reads = {"group.id": name(), "allow.auto.create.topics": "false", "auto.offset.reset": "earliest"}
    async with Admin(config) as admin, BatchConsumer(config.with_properties(reads)) as consumer, asyncio.timeout(90):
        await admin.create_topics([NewTopic(topic)])
        await consumer.subscribe([topic])
        while not consumer.assignment():
            await consumer.fetch(100)
        await admin.delete_topics([topic])
        while consumer.missing_topics != {topic}:
            await consumer.fetch(100)
        await admin.create_topics([NewTopic(topic)])
        async with BatchProducer(config) as producer:
            await producer.send(topic, None, b"again")
        fetched: list[FetchedBatches] = []
        while not fetched:
            fetched = await consumer.fetch()
    assert [record.value for part in fetched for record in part.records()] == [b"again"]
