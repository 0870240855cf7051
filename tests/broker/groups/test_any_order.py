"""Groups whose members join, sync, time out and return in any order, on a disk that stalls, across restarts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.coordinator.committed_offset import CommittedOffset
from broker.errors import BrokerError
from broker.groups import (
    DescribedGroup,
    GroupState,
    Joined,
    Leaving,
    MemberIdAssigned,
    Synced,
)
from tests.support.groups import Cluster

PATIENCE_MS = 400_000
"""Longer than any timeout of these members, and than the wait of a newcomer."""


@dataclass(eq=False)
class Client:
    """A client's own state, and the requests whose responses it is waiting for."""

    instance_id: str | None
    member_id: str = ""
    joined: Joined | None = None
    synced: Synced | None = None
    joining: asyncio.Future[Joined] | None = None
    syncing: asyncio.Future[Synced] | None = None
    fate: list[str] = field(default_factory=list)

    @property
    def parked(self) -> bool:
        return self.joining is not None or self.syncing is not None

    def hear(self) -> None:
        """Take note of the answers that have come."""
        if self.joining is not None and self.joining.done():
            future, self.joining = self.joining, None
            error = future.exception()
            if isinstance(error, MemberIdAssigned):
                self.member_id = error.member_id
            elif error is not None:
                self.lost(error)
            else:
                self.joined = future.result()
                self.member_id, self.synced = self.joined.member_id, None
        if self.syncing is not None and self.syncing.done():
            synced, self.syncing = self.syncing, None
            error = synced.exception()
            if error is None:
                self.synced = synced.result()
            else:
                self.lost(error)

    def lost(self, error: BaseException) -> None:
        assert isinstance(error, BrokerError), repr(error)
        self.fate.append(type(error).__name__)
        self.joined = self.synced = None
        if type(error).__name__ in {"UnknownMemberId", "FencedInstanceId", "GroupMaxSizeReached"}:
            self.member_id = ""


INSTANCES = (None, None, None, "a", "b", "b")
"""The clients: three dynamic members, three static ones, of which two claim the same instance."""

PROTOCOLS = (["x"], ["x", "y"], ["y", "x"], ["x", "y"])
WAITS_MS = (0, 1, 2_999, 3_000, 5_000, 10_000, 30_000, 3_000)


class World:
    """Six clients, one group, one coordinator. Steps have a client's number, and a number for any other choice."""

    def __init__(self, **settings: str) -> None:
        self.cluster = Cluster(**settings)
        self.everybody = [Client(instance_id) for instance_id in INSTANCES]
        self.futures: list[asyncio.Future[Any]] = []
        self.committed: dict[tuple[str, int], int] = {}
        self.generation = 0

    def hear(self) -> None:
        self.cluster.clock.settle()
        for client in self.everybody:
            client.hear()

    def join(self, who: int, how: int) -> None:
        self._join(self.everybody[who], PROTOCOLS[how % 4], known_id=how < 32)

    def _join(self, client: Client, protocols: list[str], *, known_id: bool) -> None:
        if client.parked:
            return
        client.joined = client.synced = None
        client.joining = self.cluster.join(
            member_id=client.member_id,
            instance_id=client.instance_id,
            protocols={name: name.encode() for name in protocols},
            known_id=known_id,
        )
        self.futures.append(client.joining)
        self.hear()

    def join_twice(self, who: int, how: int) -> None:
        """An impatient client that has lost its connection asks again."""
        client = self.everybody[who]
        if client.member_id:
            client.joining = client.syncing = None
            self._join(client, PROTOCOLS[how % 4], known_id=True)

    def sync(self, who: int, _: int) -> None:
        client = self.everybody[who]
        joined = client.joined
        if client.parked or joined is None:
            return
        assigned = {m.member_id: f"{joined.generation} {m.instance_id or m.member_id}" for m in joined.members}
        assignments = (
            {} if joined.skip_assignment else {member_id: what.encode() for member_id, what in assigned.items()}
        )
        client.syncing = self.cluster.sync(joined, assignments=assignments, instance_id=client.instance_id)
        self.futures.append(client.syncing)
        self.hear()

    def some_work(self, _: int, which: int) -> None:
        """The usual course for some: join, again with the id given, wait for the others, sync."""
        some = [number for number in range(6) if which >> number & 1]
        for number in some + some:
            if self.everybody[number].joined is None:
                self._join(self.everybody[number], ["x", "y"], known_id=True)
        self.time_passes(0, 3)
        for number in some:
            self.sync(number, 0)

    def heartbeats(self, _: int, which: int) -> None:
        for number, client in enumerate(self.everybody):
            if which >> number & 1 and client.joined is not None and not client.parked:
                try:
                    self.cluster.coordinator.heartbeat(
                        "g",
                        generation=client.joined.generation,
                        member_id=client.member_id,
                        instance_id=client.instance_id,
                    )
                except BrokerError as error:
                    client.lost(error)

    def leave(self, who: int, _: int) -> None:
        client = self.everybody[who]
        if client.member_id:
            self.cluster.coordinator.leave_group("g", [Leaving(client.member_id, client.instance_id)])
            self.hear()

    def start_anew(self, who: int, how: int) -> None:
        """The process is another one now; sometimes nobody waits any more for what the old one asked."""
        client = self.everybody[who]
        for parked in (client.joining, client.syncing):
            if parked is not None and how % 2:
                parked.cancel()
        self.everybody[who] = Client(client.instance_id)

    def time_passes(self, _: int, how: int) -> None:
        self.cluster.clock.advance(WAITS_MS[how % 8])
        self.hear()

    def commit(self, who: int, offset: int) -> None:
        client = self.everybody[who]
        where = ("t", offset % 3)
        done = self.cluster.coordinator.commit_offsets(
            "g",
            {where: CommittedOffset(offset)},
            generation=client.joined.generation if client.joined else -1,
            member_id=client.member_id if client.joined else "",
        )
        if not done.done() or done.exception() is None:
            self.committed[where] = offset
        self.hear()

    def disk_stalls(self, _: int, __: int) -> None:
        self.cluster.log.held = True

    def disk_goes_on(self, _: int, __: int) -> None:
        self.cluster.log.held = False
        self.cluster.log.release()
        self.hear()

    def broker_restarts(self, _: int, __: int) -> None:
        self.disk_goes_on(0, 0)
        (before,) = self.cluster.coordinator.describe_groups(["g"])
        self.cluster.coordinator.stop()
        self.hear()
        self.cluster.coordinator = self.cluster.reload()
        (after,) = self.cluster.coordinator.describe_groups(["g"])
        if before.state is GroupState.STABLE:
            assert after == before
        if before.state in (GroupState.EMPTY, GroupState.DEAD):
            assert (after.state, after.members) == (before.state, ())

    def patience(self, _: int, __: int) -> None:
        """If all clients stay silent, every waiting one gets a response in the end, and all are removed."""
        self.disk_goes_on(0, 0)
        self.cluster.clock.advance(PATIENCE_MS)
        self.hear()
        assert all(future.done() for future in self.futures)
        self.futures.clear()
        (group,) = self.cluster.coordinator.describe_groups(["g"])
        assert group.state in (GroupState.EMPTY, GroupState.DEAD)
        assert group.members == ()

    def check(self) -> None:
        offsets = self.cluster.coordinator.fetch_offsets("g")
        assert {where: committed_offset.offset for where, committed_offset in offsets.items()} == self.committed
        (group,) = self.cluster.coordinator.describe_groups(["g"])
        if group.state is GroupState.DEAD:
            self.generation = 0  # an empty group without offsets is swept away; the next of its name begins anew
        if group.state is GroupState.STABLE:
            self.check_stable(group)

    def check_stable(self, group: DescribedGroup) -> None:
        """All members have the same generation, whose assignment came from its leader, and active members have the
        described assignment.
        """
        generations = set()
        for member in group.members:
            assigned_in, whose = member.assignment.decode().split()
            generations.add(int(assigned_in))
            assert whose == (member.instance_id or member.member_id)
        (generation,) = generations
        assert generation >= self.generation
        self.generation = generation
        assignments = {member.member_id: member.assignment for member in group.members}
        for client in self.everybody:
            if client.synced is not None and client.joined is not None and client.joined.generation == generation:
                assert client.synced.assignment == assignments.get(client.member_id, client.synced.assignment)


USUAL = [World.some_work] * 6 + [World.heartbeats] * 5 + [World.join, World.sync] * 4 + [World.time_passes] * 4
UNUSUAL = [World.join_twice, World.leave, World.start_anew, World.commit, World.disk_stalls, World.disk_goes_on] * 2
RARE = [World.broker_restarts, World.patience]

steps = st.tuples(st.sampled_from(USUAL + UNUSUAL + RARE), st.integers(0, 5), st.integers(0, 63))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["0", "3000"]), st.sampled_from(["3", "100"]), st.lists(steps, min_size=40, max_size=60))
def test_whatever_members_do_the_group_holds_together(
    delay_ms: str, size: str, course: list[tuple[Callable[[World, int, int], None], int, int]]
) -> None:
    world = World(group_initial_rebalance_delay_ms=delay_ms, group_max_size=size)
    try:
        for step, who, how in course:
            step(world, who, how)
            world.check()
        world.patience(0, 0)
        world.check()
    finally:
        world.cluster.clock.close()
