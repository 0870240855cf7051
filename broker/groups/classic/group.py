"""One classic group: its members, its state and the rules between them. No clock, no log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final

from broker.coordinator.clock import Timer
from broker.coordinator.committed_offset import CommittedOffset
from broker.coordinator.namespace import AnyGroup, CommitCheck, GroupType
from broker.coordinator.state_log import Entry
from broker.errors import (
    CoordinatorNotAvailable,
    FencedInstanceId,
    GroupNotEmpty,
    IllegalGeneration,
    RebalanceInProgress,
    UnknownMemberId,
)
from broker.groups.classic.subscription import CONSUMER, subscribed_topics
from broker.groups.classic.values import (
    GroupState,
    Joined,
    JoinedMember,
    Synced,
)
from broker.groups.records import encode_group_key

__all__ = ["Group", "Member"]

_MAY_FOLLOW: Final[Mapping[GroupState, Collection[GroupState]]] = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE,),
    GroupState.PREPARING_REBALANCE: (GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY),
    GroupState.COMPLETING_REBALANCE: (GroupState.PREPARING_REBALANCE,),
    GroupState.STABLE: (GroupState.COMPLETING_REBALANCE,),
    GroupState.DEAD: tuple(GroupState),
}
"""The states from which each state may be entered."""


@dataclass(slots=True, eq=False)
class Member:
    """A member of a group. ``joining`` and ``syncing`` are its parked requests, if any."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: Mapping[str, bytes]
    assignment: bytes = b""
    is_new: bool = False
    """Whether it has never been in a generation; it can't send heartbeats yet."""
    joining: asyncio.Future[Joined] | None = None
    syncing: asyncio.Future[Synced] | None = None
    session: Timer | None = None

    def offers(self, protocols: Mapping[str, bytes]) -> bool:
        """Whether the member offers exactly these protocols, with this metadata and in this order."""
        return list(self.protocols.items()) == list(protocols.items())

    def vote(self, candidates: Collection[str]) -> str:
        return next(name for name in self.protocols if name in candidates)

    def stop_session(self) -> None:
        if self.session is not None:
            self.session.cancel()
            self.session = None


@dataclass(slots=True, eq=False)
class Group(AnyGroup):
    """A group and its members, in the order in which they joined.

    A group that never had a member has no protocol type. It stores offsets of consumers that assign partitions
    themselves.
    """

    group_type: ClassVar[GroupType] = GroupType.CLASSIC
    group_id: str
    state_since_ms: int
    state: GroupState = GroupState.EMPTY
    previous_state: GroupState = GroupState.DEAD
    generation: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader: str | None = None
    topics: frozenset[str] | None = None
    """The topics its members subscribe to; None if unknown."""
    members: dict[str, Member] = field(default_factory=dict)
    pending_members: dict[str, Timer] = field(default_factory=dict)
    """Ids given to new members that have not joined with them yet, each with the timer that drops it."""
    pending_syncs: set[str] = field(default_factory=set)
    """Members of this generation that have not sent SyncGroup."""
    newcomers: bool = False
    """Whether a member has joined since the delay of the first rebalance was last extended."""
    join_timer: Timer | None = None
    sync_timer: Timer | None = None
    written: asyncio.Future[None] | None = None
    """The write of its last empty generation; done when that is durable."""

    def enter(self, state: GroupState, now_ms: int) -> None:
        if self.state not in _MAY_FOLLOW[state]:
            raise AssertionError(f"group {self.group_id} cannot go from {self.state.value} to {state.value}")
        self.previous_state, self.state, self.state_since_ms = self.state, state, now_ms

    @property
    def can_rebalance(self) -> bool:
        return self.state in _MAY_FOLLOW[GroupState.PREPARING_REBALANCE]

    @property
    def is_simple(self) -> bool:
        return self.protocol_type is None and not self.members and not self.pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    @property
    def joining_count(self) -> int:
        return sum(member.joining is not None for member in self.members.values())

    @property
    def all_joined(self) -> bool:
        return not self.pending_members and all(member.joining is not None for member in self.members.values())

    def member_of_instance(self, instance_id: str | None) -> Member | None:
        if instance_id is None:
            return None
        return next((m for m in self.members.values() if m.instance_id == instance_id), None)

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        self.members[member.member_id] = member
        self.leader = self.leader or member.member_id

    def remove(self, member_id: str) -> Member | None:
        """Remove a member or a pending member and stop its timer. The caller answers its parked requests."""
        pending = self.pending_members.pop(member_id, None)
        if pending is not None:
            pending.cancel()
        self.pending_syncs.discard(member_id)
        member = self.members.pop(member_id, None)
        if member is not None:
            member.stop_session()
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace(self, old: Member, member_id: str) -> Member:
        """Give an instance a new member id in its old position. The caller fences requests with the old id."""
        new = Member(
            member_id,
            old.instance_id,
            old.client_id,
            old.client_host,
            old.rebalance_timeout_ms,
            old.session_timeout_ms,
            old.protocols,
            old.assignment,
        )
        old.stop_session()
        self.members = {m.member_id: m for m in (new if m is old else m for m in self.members.values())}
        if self.leader == old.member_id:
            self.leader = member_id
        if old.member_id in self.pending_syncs:
            self.pending_syncs.discard(old.member_id)
            self.pending_syncs.add(member_id)
        return new

    def elect_joined_leader(self) -> bool:
        """Keep a leader that has joined; otherwise elect the first member that has joined. False if none has."""
        leader = self.members.get(self.leader or "")
        if leader is not None and leader.joining is not None:
            return True
        joined = next((m for m in self.members.values() if m.joining is not None), None)
        if joined is not None:
            self.leader = joined.member_id
        return joined is not None

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member of this type with these protocols can join this group."""
        offered = set(names)
        if self.state is GroupState.EMPTY or not self.members:
            return bool(protocol_type and offered)
        return self.protocol_type == protocol_type and not offered.isdisjoint(self.common_protocols())

    def common_protocols(self) -> set[str]:
        members = iter(self.members.values())
        common = set(next(members).protocols) if self.members else set()
        for member in members:
            common &= member.protocols.keys()
        return common

    def select_protocol(self) -> str:
        """The common protocol that most members prefer; on a tie, the one that was voted for first."""
        candidates = self.common_protocols()
        votes: dict[str, int] = {}
        for member in self.members.values():
            liked = member.vote(candidates)
            votes[liked] = votes.get(liked, 0) + 1
        return max(votes, key=votes.__getitem__)

    def begin_generation(self, now_ms: int) -> None:
        self.generation += 1
        self.pending_syncs.clear()
        self.protocol_name = self.select_protocol() if self.members else None
        self.topics = self.subscriptions()
        self.enter(GroupState.COMPLETING_REBALANCE if self.members else GroupState.EMPTY, now_ms)

    def subscriptions(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER:
            return None
        topics: set[str] = set()
        for member in self.members.values():
            subscribed = subscribed_topics(member.protocols.get(self.protocol_name or "", b""))
            if subscribed is None:
                return None
            topics |= subscribed
        return frozenset(topics)

    def subscribes_to(self, topic: str) -> bool:
        """Whether offsets of a topic are protected.

        Consumers with unreadable metadata count as subscribed to everything.
        """
        return topic in self.topics if self.topics is not None else self.protocol_type == CONSUMER

    def generation_of(self, member: Member, *, skip_assignment: bool = False) -> Joined:
        members: tuple[JoinedMember, ...] = ()
        if member.member_id == self.leader:
            members = tuple(
                JoinedMember(m.member_id, m.instance_id, m.protocols.get(self.protocol_name or "", b""))
                for m in self.members.values()
            )
        return Joined(
            member_id=member.member_id,
            generation=self.generation,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader=self.leader or "",
            skip_assignment=skip_assignment,
            members=members,
        )

    def synced(self, member: Member) -> Synced:
        return Synced(self.protocol_type, self.protocol_name, member.assignment)

    def require_member(self, member_id: str, instance_id: str | None) -> Member:
        """The member of this id. If ``instance_id`` is set, it must also be the current member of that instance."""
        if self.state is GroupState.DEAD:
            raise CoordinatorNotAvailable(f"Group {self.group_id} was just removed.")
        if instance_id is not None:
            holder = self.member_of_instance(instance_id)
            if holder is None:
                raise UnknownMemberId(f"Group {self.group_id} has no member with group.instance.id {instance_id}.")
            if holder.member_id != member_id:
                raise FencedInstanceId(
                    f"In group {self.group_id} the group.instance.id {instance_id} belongs to member "
                    f"{holder.member_id} now, not to {member_id}."
                )
        member = self.members.get(member_id)
        if member is None:
            raise UnknownMemberId(f"Group {self.group_id} has no member {member_id!r}.")
        return member

    def require_generation(self, generation: int) -> None:
        if generation != self.generation:
            raise IllegalGeneration(f"Group {self.group_id} is at generation {self.generation}, not {generation}.")

    def commit_check(
        self, member_id: str, instance_id: str | None, epoch: int, *, version: int, transactional: bool = False
    ) -> CommitCheck | None:
        """A member may commit in the current generation. While the group has no members, callers without a generation
        may.

        In a transaction callers that do not claim to be members may commit too.
        """
        if epoch < 0 and self.state is GroupState.EMPTY:
            return None
        if epoch < 0 and not member_id and instance_id is None:
            if transactional:
                return None
            raise UnknownMemberId(f"Group {self.group_id} has members: only they can commit its offsets.")
        self.require_member(member_id, instance_id)
        self.require_generation(epoch)
        if self.state is GroupState.COMPLETING_REBALANCE and not transactional:
            raise RebalanceInProgress(f"Group {self.group_id} is waiting for the assignments of its leader.")
        return None

    def check_fetch(self, member_id: str | None, epoch: int) -> None:
        """Members of classic groups do not identify themselves."""

    def check_offset_delete(self) -> None:
        if self.state is not GroupState.EMPTY and self.protocol_type != CONSUMER:
            raise GroupNotEmpty(
                f"Group {self.group_id} of type {self.protocol_type!r} has members, and what they read is not known."
            )

    def check_delete(self) -> None:
        if self.state is not GroupState.EMPTY:
            raise GroupNotEmpty(f"Group {self.group_id} has {len(self.members)} members.")

    def tombstones(self) -> list[Entry]:
        return [(encode_group_key(self.group_id), None)]

    def offset_expiry(self) -> Callable[[CommittedOffset], int] | None:
        """From when the group became empty.

        For consumers without a group and for stable groups of consumers, from the commit itself (KIP-211, KIP-496).
        """
        stable_consumers = (
            self.protocol_type == CONSUMER and self.topics is not None and self.state is GroupState.STABLE
        )
        if self.protocol_type is not None and self.state is not GroupState.EMPTY and not stable_consumers:
            return None
        if self.protocol_type is None or stable_consumers or self.state_since_ms < 0:
            return lambda committed: committed.commit_timestamp_ms
        return lambda committed: self.state_since_ms

    @property
    def is_empty(self) -> bool:
        return self.state is GroupState.EMPTY

    @property
    def expires(self) -> bool:
        return not self.pending_members

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def kind_of_members(self) -> str:
        return self.protocol_type or ""
