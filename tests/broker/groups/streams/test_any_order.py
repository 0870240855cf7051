"""Streams groups whose members come and go in any order: a task is active in at most one member at a time, and all
tasks are active in the end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import BrokerError, CoordinatorNotAvailable, KafkaStorageError, NotCoordinator
from broker.groups.streams.configured import StatusCode
from broker.groups.streams.service import StreamsGroups
from broker.groups.streams.tasks import NO_TASKS, TasksByRole
from broker.groups.streams.values import StreamsAnswer, StreamsHeartbeat
from tests.proofs import effort
from tests.support.groups import Cluster
from tests.support.streams import counting

SESSION_MS: Final = 45_000
REVOKE_MS: Final = 30_000
WAITS_MS: Final = (0, 1, 500, 1_000, 3_000, 5_000, 29_999, 30_000, 45_000, 60_000)
PROCESSES: Final = ("p", "p", "q", "r")

Task = tuple[str, int]


def flat(tasks: TasksByRole) -> set[tuple[str, Task]]:
    roles = (("active", tasks.active), ("standby", tasks.standby), ("warmup", tasks.warmup))
    return {(role, (name, n)) for role, some in roles for name, numbers in some.items() for n in numbers}


@dataclass(eq=False)
class Client:
    number: int
    process: str
    life: int = 0
    epoch: int = 0
    owned: TasksByRole = NO_TASKS
    target: TasksByRole = NO_TASKS
    waiting: asyncio.Future[StreamsAnswer] | None = None
    answer_lost: bool = False
    heard_ms: int = -(1 << 60)
    since_ms: int = 0

    @property
    def member_id(self) -> str:
        return f"{self.number}-{self.life}"

    def abandon(self) -> None:
        self.owned = self.target = NO_TASKS
        self.epoch = 0


class World:
    def __init__(self) -> None:
        self.cluster = Cluster(group_streams_num_standby_replicas="1")
        self.cluster.topics.put("lines", 3)
        self.clients = [Client(n, process) for n, process in enumerate(PROCESSES)]

    @property
    def now_ms(self) -> int:
        return self.cluster.clock.now_ms()

    @property
    def service(self) -> StreamsGroups:
        return self.cluster.coordinator.service(StreamsGroups)

    def beat(self, client: Client, more: int) -> None:
        if client.waiting is not None:
            return
        joining = client.epoch <= 0
        client.answer_lost = more % 5 == 4
        if joining:
            client.abandon()
        client.waiting = self.service.heartbeat(
            StreamsHeartbeat(
                group_id="g",
                member_id=client.member_id,
                epoch=max(client.epoch, 0),
                rebalance_timeout_ms=REVOKE_MS if joining else -1,
                topology=counting() if joining else None,
                owned=client.owned,
                process_id=client.process,
                endpoint=("localhost", client.number) if client.number else None,
                client_id=f"c{client.number}",
                client_host="/127.0.0.1",
            )
        )
        self.settle()

    def hear(self, client: Client) -> None:
        if client.waiting is None or not client.waiting.done():
            return
        future, client.waiting = client.waiting, None
        error = future.exception()
        if error is not None:
            assert isinstance(error, BrokerError), repr(error)
            if not isinstance(error, CoordinatorNotAvailable | NotCoordinator | KafkaStorageError):
                client.abandon()
            return
        answer = future.result()
        for topic in answer.missing:
            self.cluster.topics.put(topic.name, topic.partitions)
            self.cluster.coordinator.topic_changed(topic.name)
        if client.answer_lost:
            return
        client.heard_ms, client.epoch = self.now_ms, answer.epoch
        if answer.assigned is not None:
            had, has = flat(client.owned), flat(answer.assigned)
            if not had <= has and had <= flat(client.target):
                client.since_ms = self.now_ms
            client.target = answer.assigned

    def apply(self, client: Client, more: int) -> None:
        client.owned = client.target

    def leave(self, client: Client, more: int) -> None:
        if client.epoch <= 0 or client.waiting is not None:
            return
        future = self.service.heartbeat(StreamsHeartbeat(group_id="g", member_id=client.member_id, epoch=-1))
        future.add_done_callback(lambda done: done.exception())
        self.crash(client, more)
        self.settle()

    def crash(self, client: Client, more: int) -> None:
        client.abandon()
        client.waiting = None
        client.heard_ms = -(1 << 60)
        client.life += 1

    def wait(self, client: Client, more: int) -> None:
        self.cluster.clock.advance(WAITS_MS[more % len(WAITS_MS)])
        self.settle()

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
            self.hear(client)
        self.check()

    def check(self) -> None:
        holders: dict[Task, str] = {}
        for client in self.clients:
            in_time = flat(client.owned) <= flat(client.target) or self.now_ms - client.since_ms < REVOKE_MS
            if self.now_ms - client.heard_ms >= SESSION_MS or not in_time:
                continue
            for role, task in flat(client.owned):
                if role == "active":
                    assert task not in holders, f"{task} is with {holders[task]} and {client.member_id}"
                    holders[task] = client.member_id

    STEPS: Final[tuple[Callable[[World, Client, int], None], ...]] = (
        beat, beat, beat, beat, apply, apply, apply, leave, crash, wait, wait, disk, restart,
    )  # fmt: skip

    def converge(self) -> None:
        self.repair()
        for _ in range(40):
            for client in self.clients:
                client.waiting = None
                self.beat(client, 0)
                client.owned = client.target
                self.check()
            self.cluster.clock.advance(5_000)
            self.settle()
        group = self.service.describe("g")
        assert group.state == "Stable", group
        assert len(group.members) == len(self.clients)
        active = [task for client in self.clients for role, task in flat(client.owned) if role == "active"]
        assert sorted(active) == [(name, number) for name in "01" for number in range(3)]
        standby = [task for client in self.clients for role, task in flat(client.owned) if role == "standby"]
        assert sorted(standby) == [("1", 0), ("1", 1), ("1", 2)]
        for process in set(PROCESSES):
            here_tasks = [task for c in self.clients if c.process == process for _, task in flat(c.owned)]
            assert len(here_tasks) == len(set(here_tasks))
        reloaded = self.cluster.reload().service(StreamsGroups).describe("g")
        assert reloaded.members == group.members
        assert (reloaded.state, reloaded.epoch, reloaded.topology) == (group.state, group.epoch, group.topology)


steps = st.lists(st.tuples(st.integers(0, len(World.STEPS) - 1), st.integers(0, 3), st.integers(0, 29)), max_size=60)


def run(steps: list[tuple[int, int, int]]) -> None:
    world = World()
    for step, number, more in steps:
        world.STEPS[step](world, world.clients[number], more)
        world.check()
    world.converge()
    world.cluster.clock.close()


@settings(max_examples=15, deadline=None)
@given(steps)
def test_tasks_are_active_with_one_member_and_all_are_given_out(steps: list[tuple[int, int, int]]) -> None:
    run(steps)


@pytest.mark.proof
@pytest.mark.timeout(1200)
@settings(max_examples=effort(60, 3000), deadline=None)
@given(steps)
def test_long_random_sequences_converge(steps: list[tuple[int, int, int]]) -> None:
    run(steps)


def test_a_new_group_waits_for_members_and_topics() -> None:
    world = World()
    first, second = world.clients[:2]
    statuses = []
    for client in (first, second):
        world.beat(client, 0)
        statuses.append(world.service.describe("g").state)
    assert statuses == ["NotReady", "Assigning"]  # the first made the internal topics
    assert first.owned == NO_TASKS
    future = world.service.heartbeat(StreamsHeartbeat(group_id="g", member_id=first.member_id, epoch=first.epoch))
    world.settle()
    assert [status.code for status in future.result().status] == [StatusCode.ASSIGNMENT_DELAYED]
    world.cluster.clock.advance(3_000)
    world.beat(first, 0)
    assert flat(first.target)
    world.cluster.clock.close()
