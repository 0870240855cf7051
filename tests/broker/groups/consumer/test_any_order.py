"""Consumer groups whose members send heartbeats, lose responses, time out, leave and return in any order, while topics
change, the disk stalls and the coordinator restarts.

No partition belongs to two members at the same time, and the group converges in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import BrokerError, CoordinatorNotAvailable, KafkaStorageError, NotCoordinator
from broker.groups.consumer.service import ConsumerGroups
from broker.groups.consumer.values import ConsumerHeartbeat, HeartbeatAnswer
from broker.groups.modern.member import Partitions
from tests.proofs import effort
from tests.support.groups import Cluster

SESSION_MS: Final = 45_000
REVOKE_MS: Final = 30_000
WAITS_MS: Final = (0, 1, 500, 1_000, 5_000, 11_000, 29_999, 30_000, 45_000, 60_000)
SUBSCRIPTIONS: Final = (
    (("a",), None), (("a",), None), (("a", "b"), None), (("b", "nowhere"), None), ((), "a|b.*"), ((), "[ab]"), (("a",), "b"),
)  # fmt: skip
INSTANCES: Final = (None, None, None, "i", "i", "j")

Owned = frozenset[tuple[UUID, int]]


def flat(partitions: Partitions) -> Owned:
    return frozenset((topic_id, number) for topic_id, numbers in partitions.items() for number in numbers)


def nested(owned: Owned) -> Partitions:
    return {topic_id: frozenset(number for owned_id, number in owned if owned_id == topic_id) for topic_id, _ in owned}


@dataclass(eq=False)
class Client:
    """A consumer's state: the partitions that it works on (``owned``), and its last assignment (``target``)."""

    number: int
    instance_id: str | None
    subscription: tuple[tuple[str, ...], str | None]
    assignor: str | None = None
    life: int = 0
    epoch: int = 0
    owned: Owned = frozenset()
    target: Owned = frozenset()
    waiting: asyncio.Future[HeartbeatAnswer] | None = None
    answer_lost: bool = False
    heard_ms: int = -(1 << 60)
    since_ms: int = 0
    """When it was told to revoke partitions that it still has."""
    fate: list[str] = field(default_factory=list)

    @property
    def member_id(self) -> str:
        return f"{self.number}-{self.life}"

    def hear(self, now_ms: int) -> None:
        if self.waiting is None or not self.waiting.done():
            return
        future, self.waiting = self.waiting, None
        error = future.exception()
        if error is not None:
            assert isinstance(error, BrokerError), repr(error)
            self.fate.append(type(error).__name__)
            if not isinstance(error, CoordinatorNotAvailable | NotCoordinator | KafkaStorageError):
                self.abandon()
            return
        if self.answer_lost:
            return
        answer = future.result()
        self.heard_ms, self.epoch = now_ms, answer.epoch
        if answer.assigned is not None:
            target = flat(answer.assigned)
            if not self.owned <= target and self.owned <= self.target:
                self.since_ms = now_ms
            self.target = target

    def abandon(self) -> None:
        self.owned = self.target = frozenset()
        self.epoch = 0

    def apply(self) -> None:
        """Follow the last assignment: first revoke, then take."""
        self.owned = self.target


class World:
    def __init__(self, **given_settings: str) -> None:
        self.cluster = Cluster(**given_settings)
        self.cluster.topics.put("a", 4)
        self.clients = [Client(n, instance, SUBSCRIPTIONS[n]) for n, instance in enumerate(INSTANCES)]

    @property
    def now_ms(self) -> int:
        return self.cluster.clock.now_ms()

    @property
    def service(self) -> ConsumerGroups:
        return self.cluster.coordinator.service(ConsumerGroups)

    def beat(self, client: Client, more: int) -> None:
        if client.waiting is not None:
            return
        joining = client.epoch <= 0
        full = joining or more % 3 == 0
        names, regex = client.subscription
        client.answer_lost = more % 5 == 4
        if joining:
            client.abandon()
        client.waiting = self.service.heartbeat(
            ConsumerHeartbeat(
                group_id="g",
                member_id=client.member_id,
                epoch=max(client.epoch, 0),
                instance_id=client.instance_id,
                rebalance_timeout_ms=REVOKE_MS if full else -1,
                topics=frozenset(names) if full or more % 3 == 1 else None,
                regex=(regex or "") if full or more % 3 == 1 else None,
                assignor=client.assignor,
                # A real client says what it has in every full request, and once it changed.
                owned={} if joining else nested(client.owned),
                client_id=f"c{client.number}",
                client_host="/127.0.0.1",
            ),
            version=1,
        )
        self.settle()

    def apply(self, client: Client, more: int) -> None:
        client.apply()

    def leave(self, client: Client, more: int) -> None:
        if client.epoch <= 0 or client.waiting is not None:
            return
        client.apply()
        for_a_while = client.instance_id is not None and more % 2
        future = self.service.heartbeat(
            ConsumerHeartbeat(
                group_id="g",
                member_id=client.member_id,
                epoch=-2 if for_a_while else -1,
                instance_id=client.instance_id,
            ),
            version=1,
        )
        future.add_done_callback(lambda done: done.exception())
        client.abandon()
        client.heard_ms = -(1 << 60)
        client.life += 1
        self.settle()

    def crash(self, client: Client, more: int) -> None:
        """The process goes, and comes back as another member."""
        client.abandon()
        client.waiting = None
        client.life += 1

    def subscribe(self, client: Client, more: int) -> None:
        client.subscription = SUBSCRIPTIONS[more % len(SUBSCRIPTIONS)]
        client.assignor = (None, "uniform", "range")[more % 3]

    def wait(self, client: Client, more: int) -> None:
        self.cluster.clock.advance(WAITS_MS[more % len(WAITS_MS)])
        self.settle()

    def topics(self, client: Client, more: int) -> None:
        topics = self.cluster.topics
        name = "ab"[more % 2]
        present = topics.by_name(name)
        if present is not None and more % 5 == 0:
            topics.remove(name)
        else:
            topics.put(name, min((present.partitions if present else 0) + 1 + more % 3, 9))
        self.cluster.coordinator.topic_changed(name)

    def disk(self, client: Client, more: int) -> None:
        if more % 4 == 0:
            self.cluster.log.held = True
        elif more % 4 == 1:
            self.cluster.log.refusal = KafkaStorageError("the disk is full")
        else:
            self.repair()

    def repair(self) -> None:
        self.cluster.log.refusal = None
        self.cluster.log.held = False
        self.cluster.log.release()
        self.settle()

    def restart(self, client: Client, more: int) -> None:
        self.repair()
        self.cluster.coordinator.stop()
        self.cluster.coordinator = self.cluster.reload()
        for each in self.clients:
            each.waiting = None

    def settle(self) -> None:
        self.cluster.clock.settle()
        for client in self.clients:
            client.hear(self.now_ms)
        self.check()

    def alive(self, client: Client) -> bool:
        """Whether the coordinator must still count it as a member: it sent heartbeats and revoked partitions in time."""
        in_time = client.owned <= client.target or self.now_ms - client.since_ms < REVOKE_MS
        return self.now_ms - client.heard_ms < SESSION_MS and in_time

    def check(self) -> None:
        holders: dict[tuple[UUID, int], str] = {}
        for client in self.clients:
            for partition in client.owned if self.alive(client) else ():
                assert partition not in holders, f"{partition} is with {holders[partition]} and {client.member_id}"
                holders[partition] = client.member_id

    STEPS: Final[tuple[Callable[[World, Client, int], None], ...]] = (
        beat, beat, beat, beat, apply, apply, apply, leave, crash, subscribe, wait, wait, topics, disk, restart,
    )  # fmt: skip

    def converge(self) -> None:
        """Everybody who is not shut out by another of the same instance beats until nothing changes."""
        self.repair()
        for client in self.clients[4:5]:
            self.leave(client, 0)
            self.crash(client, 0)
        remaining = [client for client in self.clients if client.number != 4]
        for _ in range(60):
            for client in remaining:
                client.waiting = None
                self.beat(client, 0)
                client.apply()
                self.check()
            self.cluster.clock.advance(5_000)
            self.settle()
        group = self.service.describe("g")
        assert group.state == "Stable", group
        assert {member.member_id for member in group.members} == {client.member_id for client in remaining}
        topics = self.cluster.topics
        topic_ids = {topics.by_name(name) for name in topics.names()}
        owned = [partition for client in remaining for partition in client.owned]
        assert len(owned) == len(set(owned))
        subscribed = {"a", "b"} if any("b" in str(client.subscription) for client in remaining) else {"a"}
        if not any("a" in str(client.subscription) for client in remaining):
            subscribed = {"b"}
        expected = {
            (topic.id, number)
            for topic in topic_ids
            if topic is not None and topic.name in subscribed
            for number in range(topic.partitions)
        }
        assert set(owned) == expected
        reloaded = self.cluster.reload().service(ConsumerGroups).describe("g")
        assert {m.member_id: m.assigned for m in reloaded.members} == {m.member_id: m.assigned for m in group.members}
        assert (reloaded.state, reloaded.epoch) == (group.state, group.epoch)


steps = st.lists(st.tuples(st.integers(0, len(World.STEPS) - 1), st.integers(0, 5), st.integers(0, 29)), max_size=60)


def run(steps: list[tuple[int, int, int]]) -> None:
    world = World()
    for step, number, more in steps:
        world.STEPS[step](world, world.clients[number], more)
        world.check()
    world.converge()
    world.cluster.clock.close()


@settings(max_examples=20, deadline=None)
@given(steps)
def test_partitions_are_with_one_member_and_all_are_given_out(steps: list[tuple[int, int, int]]) -> None:
    run(steps)


@pytest.mark.proof
@pytest.mark.timeout(1200)
@settings(max_examples=effort(60, 3000), deadline=None)
@given(steps)
def test_long_random_sequences_converge(steps: list[tuple[int, int, int]]) -> None:
    run(steps)
