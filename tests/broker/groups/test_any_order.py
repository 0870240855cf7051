"""Groups whose members join, sync, fall silent and come back in any order, on a disk that stalls, across restarts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, rule

from broker.errors import BrokerError
from broker.groups import CommittedOffset, GroupState, Joined, Leaving, MemberIdAssigned, Synced
from tests.support.groups import Cluster

PATIENCE_MS = 400_000
"""Longer than any timeout of these members, and than the wait of a newcomer."""


@dataclass(eq=False)
class Client:
    """What a client knows of itself, and the requests it waits for."""

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


class Groups(RuleBasedStateMachine):
    clients = Bundle("clients")

    @initialize(delay_ms=st.sampled_from(["0", "3000"]), size=st.sampled_from(["3", "100"]))
    def begin(self, delay_ms: str, size: str) -> None:
        self.cluster = Cluster(group_initial_rebalance_delay_ms=delay_ms, group_max_size=size)
        self.everybody: list[Client] = []
        self.futures: list[asyncio.Future[Any]] = []
        self.committed: dict[tuple[str, int], int] = {}
        self.generation = 0

    def hear(self) -> None:
        self.cluster.clock.settle()
        for client in self.everybody:
            client.hear()

    @rule(target=clients, instance_id=st.sampled_from([None, None, None, "a", "b"]))
    def appear(self, instance_id: str | None) -> Client:
        client = Client(instance_id)
        self.everybody.append(client)
        return client

    @rule(client=clients, protocols=st.sampled_from([["x"], ["x", "y"], ["y", "x"]]), known_id=st.booleans())
    def join(self, client: Client, protocols: list[str], known_id: bool) -> None:
        if client.parked:
            return
        client.joined = None
        client.joining = self.cluster.join(
            member_id=client.member_id,
            instance_id=client.instance_id,
            protocols={name: name.encode() for name in protocols},
            known_id=known_id,
        )
        self.futures.append(client.joining)
        self.hear()

    @rule(client=clients)
    def sync(self, client: Client) -> None:
        joined = client.joined
        if client.parked or joined is None:
            return
        assigned = {m.member_id: f"{joined.generation} {m.instance_id or m.member_id}" for m in joined.members}
        assignments = {} if joined.skip_assignment else {who: what.encode() for who, what in assigned.items()}
        client.syncing = self.cluster.sync(joined, assignments=assignments, instance_id=client.instance_id)
        self.futures.append(client.syncing)
        self.hear()

    @rule()
    def everybody_works(self) -> None:
        """The usual course: join, again with the id given, wait for the others, sync."""
        for _ in range(2):
            for client in self.everybody:
                if client.synced is None and client.joined is None:
                    self.join(client=client, protocols=["x", "y"], known_id=True)
        self.time_passes(by_ms=3_000)
        for client in self.everybody:
            self.sync(client=client)

    @rule(client=clients)
    def heartbeat(self, client: Client) -> None:
        if client.joined is None or client.parked:
            return
        try:
            self.cluster.coordinator.heartbeat(
                "g", generation=client.joined.generation, member_id=client.member_id, instance_id=client.instance_id
            )
        except BrokerError as error:
            client.lost(error)

    @rule(client=clients)
    def leave(self, client: Client) -> None:
        if client.member_id:
            self.cluster.coordinator.leave_group("g", [Leaving(client.member_id, client.instance_id)])
            self.hear()

    @rule(client=consumes(clients))
    def vanish(self, client: Client) -> None:
        self.everybody.remove(client)

    @rule(client=clients)
    def vanish_and_cancel(self, client: Client) -> None:
        """The connection breaks: nobody waits for the parked request any more, and the client comes again."""
        for parked in (client.joining, client.syncing):
            if parked is not None:
                parked.cancel()
        client.joining = client.syncing = client.joined = None

    @rule(by_ms=st.sampled_from([0, 1, 2_999, 3_000, 5_000, 10_000, 30_000]))
    def time_passes(self, by_ms: int) -> None:
        self.cluster.clock.advance(by_ms)
        self.hear()

    @rule(client=clients, partition=st.integers(0, 2), offset=st.integers(0, 100))
    def commit(self, client: Client, partition: int, offset: int) -> None:
        generation = client.joined.generation if client.joined else -1
        member_id = client.member_id if client.joined else ""
        where = ("t", partition)
        done = self.cluster.coordinator.commit_offsets(
            "g", {where: CommittedOffset(offset)}, generation=generation, member_id=member_id
        )
        if not done.done() or done.exception() is None:
            self.committed[where] = offset
        self.hear()

    @rule()
    def disk_stalls(self) -> None:
        self.cluster.log.held = True

    @rule()
    def disk_goes_on(self) -> None:
        self.cluster.log.held = False
        self.cluster.log.release()
        self.hear()

    @rule()
    def broker_restarts(self) -> None:
        self.disk_goes_on()
        (before,) = self.cluster.coordinator.describe_groups(["g"])
        self.cluster.coordinator.stop()
        self.hear()
        self.cluster.coordinator = self.cluster.reload()
        (after,) = self.cluster.coordinator.describe_groups(["g"])
        if before.state is GroupState.STABLE:
            # A group that is over group.max.size begins to rebalance at once; this one was not.
            assert after == before
        if before.state in (GroupState.EMPTY, GroupState.DEAD):
            assert (after.state, after.members) == (before.state, ())

    @rule()
    def patience(self) -> None:
        """Whoever is parked is answered in the end, even if nobody else says a word any more."""
        self.disk_goes_on()
        self.cluster.clock.advance(PATIENCE_MS)
        self.hear()
        assert all(future.done() for future in self.futures)
        self.futures.clear()

    @invariant()
    def offsets_are_as_committed(self) -> None:
        found = self.cluster.coordinator.fetch_offsets("g")
        assert {where: one.offset for where, one in found.items()} == self.committed

    @invariant()
    def a_stable_group_has_one_generation(self) -> None:
        (group,) = self.cluster.coordinator.describe_groups(["g"])
        if group.state is GroupState.DEAD:
            self.generation = 0  # an empty group without offsets is swept away; the next of its name begins anew
        if group.state is not GroupState.STABLE:
            return
        generations = set()
        for member in group.members:
            assigned_in, who = member.assignment.decode().split()
            generations.add(int(assigned_in))
            assert who == (member.instance_id or member.member_id)
        (generation,) = generations
        assert generation >= self.generation
        self.generation = generation

    @invariant()
    def members_at_work_are_those_of_the_stable_generation(self) -> None:
        (group,) = self.cluster.coordinator.describe_groups(["g"])
        if group.state is not GroupState.STABLE:
            return
        members = {member.member_id for member in group.members}
        for client in self.everybody:
            if client.synced is not None and client.joined is not None and client.member_id in members:
                assert client.joined.generation == self.generation
                assert client.synced.protocol_name == group.protocol_name

    def teardown(self) -> None:
        if hasattr(self, "cluster"):
            self.patience()
            self.cluster.clock.close()


Groups.TestCase.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
TestGroups = Groups.TestCase
