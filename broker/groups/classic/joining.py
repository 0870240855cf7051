"""Handles JoinGroup, whose meaning depends on the sender and on the group's state."""

from __future__ import annotations

import asyncio
import uuid

from broker.coordinator.clock import Clock
from broker.coordinator.futures import fail, succeed, when_done
from broker.coordinator.journal import GroupJournal
from broker.errors import (
    BrokerError,
    FencedInstanceId,
    GroupMaxSizeReached,
    InconsistentGroupProtocol,
    RebalanceInProgress,
    UnknownMemberId,
)
from broker.groups.classic.generation import write_generation
from broker.groups.classic.group import Group, Member
from broker.groups.classic.rebalance import NEW_MEMBER_JOIN_TIMEOUT_MS, Rebalance
from broker.groups.classic.values import GroupState, Joined, JoinRequest, MemberIdAssigned
from broker.groups.config.group_config import GroupConfig

__all__ = ["Joining"]


class Joining:
    """Adds members to groups. ``future`` is the parked request. Errors are raised, or set on it later."""

    def __init__(self, config: GroupConfig, clock: Clock, journal: GroupJournal, rebalance: Rebalance) -> None:
        self._config = config
        self._clock = clock
        self._journal = journal
        self._rebalance = rebalance

    def join(self, group: Group, request: JoinRequest, future: asyncio.Future[Joined]) -> None:
        if not self._has_room(group, request.member_id):
            group.remove(request.member_id)
            raise GroupMaxSizeReached(f"Group {group.group_id} is full: group.max.size is {self._config.max_size}.")
        if not group.supports(request.protocol_type, request.protocols):
            raise InconsistentGroupProtocol(
                f"Group {group.group_id} has protocol type {group.protocol_type!r} and protocols "
                f"{sorted(group.common_protocols())}; the member came with {request.protocol_type!r} and "
                f"{list(request.protocols)}."
            )
        if not request.member_id:
            self._join_newcomer(group, request, future)
        elif request.member_id in group.pending_members:
            if request.instance_id is not None:
                raise UnknownMemberId(f"Member {request.member_id} was not given its id as a static member.")
            group.pending_members.pop(request.member_id).cancel()
            self._add(group, request, request.member_id, future)
        else:
            member = group.require_member(request.member_id, request.instance_id)
            self._rejoin(group, member, request, future)

    def _has_room(self, group: Group, member_id: str) -> bool:
        if group.state in (GroupState.EMPTY, GroupState.DEAD):
            return True
        member = group.members.get(member_id)
        if group.state is GroupState.PREPARING_REBALANCE:
            # Joined members count, not all members: a group over a lowered limit loses the last to join.
            return (member is not None and member.joining is not None) or group.joining_count < self._config.max_size
        return member is not None or len(group.members) < self._config.max_size

    def _join_newcomer(self, group: Group, request: JoinRequest, future: asyncio.Future[Joined]) -> None:
        member_id = f"{request.instance_id or request.client_id}-{uuid.uuid4()}"
        holder = group.member_of_instance(request.instance_id)
        if holder is not None:
            self._replace_static(group, holder, member_id, request, future)
        elif request.instance_id is None and request.requires_known_member_id:
            self._rebalance.wait_for_pending(group, member_id, request.session_timeout_ms)
            raise MemberIdAssigned(member_id)
        else:
            self._add(group, request, member_id, future)

    def _add(self, group: Group, request: JoinRequest, member_id: str, future: asyncio.Future[Joined]) -> None:
        member = Member(
            member_id,
            request.instance_id,
            request.client_id,
            request.client_host,
            request.rebalance_timeout_ms,
            request.session_timeout_ms,
            dict(request.protocols),
            is_new=True,
            joining=future,
        )
        if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
            group.newcomers = True
        group.add(member, request.protocol_type)
        self._rebalance.restart_session(group, member, NEW_MEMBER_JOIN_TIMEOUT_MS)
        self._rebalance.prepare_or_complete(group, _reason(f"member {member_id} joins", request))

    def _rejoin(self, group: Group, member: Member, request: JoinRequest, future: asyncio.Future[Joined]) -> None:
        same = member.offers(request.protocols)
        if group.state is GroupState.COMPLETING_REBALANCE and same:
            # The member did not get the answer to its first JoinGroup: repeat it.
            succeed(future, group.generation_of(member))
        elif group.state is GroupState.STABLE and same and group.leader != member.member_id:
            succeed(future, group.generation_of(member))
        elif group.state is GroupState.EMPTY:
            raise UnknownMemberId(f"Group {group.group_id} is empty: join without a member id.")
        else:
            # A leader that joins again asks for a new assignment, whether or not its protocols changed.
            self._update(member, request, future)
            self._rebalance.prepare_or_complete(group, _reason(f"member {member.member_id} joins again", request))

    def _update(self, member: Member, request: JoinRequest, future: asyncio.Future[Joined]) -> None:
        if member.joining is not None:
            fail(member.joining, RebalanceInProgress(f"Member {member.member_id} joined again in another request."))
        member.protocols = dict(request.protocols)
        member.rebalance_timeout_ms = request.rebalance_timeout_ms
        member.session_timeout_ms = request.session_timeout_ms
        member.joining = future

    def _replace_static(
        self, group: Group, old: Member, member_id: str, request: JoinRequest, future: asyncio.Future[Joined]
    ) -> None:
        """A static member came back after a restart without its member id (KIP-345)."""
        leader_before = group.leader
        fenced = FencedInstanceId(f"The group.instance.id {request.instance_id} belongs to member {member_id} now.")
        for parked in (old.joining, old.syncing):
            if parked is not None:
                fail(parked, fenced)
        old.joining = old.syncing = None
        new = group.replace(old, member_id)
        new.client_id, new.client_host = request.client_id, request.client_host
        self._rebalance.restart_session(group, new)
        self._update(new, request, future)
        if group.state is GroupState.COMPLETING_REBALANCE:
            # The leader may already know the old id and would assign to a member that is gone.
            self._rebalance.prepare(group, _reason(f"static member {request.instance_id} came back", request))
        elif group.state is GroupState.PREPARING_REBALANCE:
            self._rebalance.try_complete_join(group)
        elif group.select_protocol() != group.protocol_name:
            self._rebalance.prepare(group, _reason(f"static member {request.instance_id} changes protocol", request))
        else:
            self._keep_generation(group, old, new, request, leader_before)

    def _keep_generation(
        self, group: Group, old: Member, new: Member, request: JoinRequest, leader_before: str | None
    ) -> None:
        """Continue the generation with the new id instead of the old one, once that is written."""
        future, new.joining = new.joining, None
        if future is None:
            raise AssertionError(f"member {new.member_id} is not joining")
        answered = future

        def written(error: BrokerError | None) -> None:
            if error is not None:
                if group.members.get(new.member_id) is new:
                    reverted = group.replace(new, old.member_id)
                    reverted.protocols = old.protocols
                    reverted.session_timeout_ms = old.session_timeout_ms
                    reverted.rebalance_timeout_ms = old.rebalance_timeout_ms
                    self._rebalance.restart_session(group, reverted)
                fail(answered, error)
            elif request.supports_skipping_assignment:
                is_leader = group.leader == new.member_id
                succeed(answered, group.generation_of(new, skip_assignment=is_leader))
            else:
                # An old client that sees itself as the leader would send a new assignment in a stable generation. If it
                # is told its former id as the leader's, it considers itself a follower and only syncs.
                succeed(answered, _as_follower(group.generation_of(new), leader_before or ""))

        when_done(write_generation(self._journal, group), written)


def _as_follower(joined: Joined, leader: str) -> Joined:
    return Joined(
        member_id=joined.member_id,
        generation=joined.generation,
        protocol_type=joined.protocol_type,
        protocol_name=joined.protocol_name,
        leader=leader,
    )


def _reason(what: str, request: JoinRequest) -> str:
    return f"{what} ({request.reason})" if request.reason else what
