"""Members of classic groups: they join, agree on assignments through their leader, send heartbeats, and leave."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace

from broker.coordinator.clock import Clock
from broker.coordinator.futures import (
    answer_when,
    fail,
    succeed,
    when_done,
)
from broker.coordinator.journal import GroupJournal
from broker.coordinator.namespace import GroupNamespace
from broker.errors import (
    BrokerError,
    CoordinatorNotAvailable,
    InconsistentGroupProtocol,
    InvalidSessionTimeout,
    RebalanceInProgress,
    UnknownMemberId,
)
from broker.groups.classic.generation import write_generation
from broker.groups.classic.group import Group, Member
from broker.groups.classic.joining import Joining
from broker.groups.classic.rebalance import Rebalance
from broker.groups.classic.values import GroupState, Joined, JoinRequest, Leaving, Left, Synced
from broker.groups.config.group_config import GroupConfig
from tidegate.kit.logs import get_logger

__all__ = ["ClassicGroups"]

logger = get_logger(__name__)


class ClassicGroups:
    """The classic protocol.

    Futures are those of ``GroupCoordinator``, which calls this for classic groups and new ones.
    """

    def __init__(self, groups: GroupNamespace, config: GroupConfig, clock: Clock, journal: GroupJournal) -> None:
        self._groups = groups
        self._config = config
        self._clock = clock
        self._journal = journal
        self.rebalance = Rebalance(config, clock, journal)
        self._joining = Joining(config, clock, journal, self.rebalance)

    def loaded(self, group: Group) -> None:
        """A group was read from the log: start its members' sessions."""
        for member in group.members.values():
            self.rebalance.restart_session(group, member)
        if len(group.members) > self._config.max_size:
            self.rebalance.prepare(group, f"it has more members than group.max.size={self._config.max_size}")

    def join(self, group_id: str, request: JoinRequest) -> asyncio.Future[Joined]:
        """Join a group, or its next generation. Done when all members have joined or the rebalance timeout is over.

        New members that have to join again with an id get MemberIdAssigned, a MemberIdRequired that carries the id.
        """
        future: asyncio.Future[Joined] = self._clock.create_future()
        try:
            if (
                not self._config.min_session_timeout_ms
                <= request.session_timeout_ms
                <= (self._config.max_session_timeout_ms)
            ):
                raise InvalidSessionTimeout(
                    f"session.timeout.ms is {request.session_timeout_ms}; this broker takes "
                    f"{self._config.min_session_timeout_ms} to {self._config.max_session_timeout_ms} "
                    "(group.min.session.timeout.ms and group.max.session.timeout.ms)."
                )
            if request.rebalance_timeout_ms <= 0:
                request = replace(request, rebalance_timeout_ms=request.session_timeout_ms)
            group = self._find(group_id)
            if group is None and request.member_id:
                raise UnknownMemberId(f"There is no group {group_id}, so it has no member {request.member_id}.")
            self._joining.join(group or self._create(group_id), request, future)
        except BrokerError as error:
            fail(future, error)
        return future

    def sync(
        self,
        group_id: str,
        *,
        generation: int,
        member_id: str,
        instance_id: str | None = None,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        assignments: Mapping[str, bytes] | None = None,
    ) -> asyncio.Future[Synced]:
        """Return a member's assignment; the leader sends the assignments of all. Done when those are written.

        ``protocol_type`` and ``protocol_name`` are checked if present (SyncGroup v5 and later).
        """
        future: asyncio.Future[Synced] = self._clock.create_future()
        try:
            group = self._member_group(group_id)
            member = group.require_member(member_id, instance_id)
            group.require_generation(generation)
            for provided, current in ((protocol_type, group.protocol_type), (protocol_name, group.protocol_name)):
                if provided is not None and provided != current:
                    raise InconsistentGroupProtocol(f"Group {group_id} uses {current!r}, not {provided!r}.")
            if group.state is GroupState.PREPARING_REBALANCE:
                raise RebalanceInProgress(f"Group {group_id} is rebalancing: join again.")
            self.rebalance.sync_received(group, member)
            if group.state is GroupState.STABLE:
                succeed(future, group.synced(member))
            else:
                self._park_sync(group, member, future, assignments or {})
        except BrokerError as error:
            fail(future, error)
        return future

    def _park_sync(
        self, group: Group, member: Member, future: asyncio.Future[Synced], assignments: Mapping[str, bytes]
    ) -> None:
        if member.syncing is not None:
            fail(member.syncing, RebalanceInProgress(f"Member {member.member_id} synced again in another request."))
        member.syncing = future
        if group.leader == member.member_id:
            self.rebalance.assign(group, assignments)

    def heartbeat(self, group_id: str, *, generation: int, member_id: str, instance_id: str | None = None) -> None:
        """Keep a member in its group. Raises RebalanceInProgress if it has to join again."""
        group = self._member_group(group_id)
        member = group.require_member(member_id, instance_id)
        group.require_generation(generation)
        self.rebalance.restart_session(group, member)
        if group.state is GroupState.PREPARING_REBALANCE:
            raise RebalanceInProgress(f"Group {group_id} is rebalancing: join again.")

    def leave(self, group_id: str, leaving: Sequence[Leaving]) -> asyncio.Future[list[Left]]:
        """Remove members, with one result each; the remaining ones rebalance."""
        future: asyncio.Future[list[Left]] = self._clock.create_future()
        group = self._find(group_id)
        if group is None:
            unknown = UnknownMemberId(f"There is no group {group_id}.")
            succeed(future, [Left(leaver.member_id, leaver.instance_id, unknown) for leaver in leaving])
            return future
        results = [self._leave_one(group, leaver) for leaver in leaving]
        gone = [result.member_id or result.instance_id or "" for result in results if result.error is None]
        if gone and group.can_rebalance and group.state is not GroupState.EMPTY:
            self.rebalance.prepare(group, f"{', '.join(gone)} left")
        elif gone:
            self.rebalance.try_complete_join(group)
        if gone and group.state is GroupState.EMPTY and group.written is not None:
            answer_when(group.written, future, results)
        else:
            succeed(future, results)
        return future

    def _leave_one(self, group: Group, leaving: Leaving) -> Left:
        left = Left(leaving.member_id, leaving.instance_id)
        if leaving.member_id in group.pending_members:
            group.remove(leaving.member_id)
            return left
        try:
            holder = None if leaving.member_id else group.member_of_instance(leaving.instance_id)
            member = holder or group.require_member(leaving.member_id, leaving.instance_id)
        except BrokerError as error:
            return replace(left, error=error)
        logger.info("member leaves", group=group.group_id, member=member.member_id, reason=leaving.reason)
        self.rebalance.remove_member(group, member)
        return left

    def _find(self, group_id: str) -> Group | None:
        group = self._groups.get(group_id)
        return group if isinstance(group, Group) else None

    def _member_group(self, group_id: str) -> Group:
        group = self._find(group_id)
        if group is None:
            raise UnknownMemberId(f"There is no classic group {group_id}.")
        return group

    def _create(self, group_id: str) -> Group:
        """Create an empty group. It is written too, as in Kafka, so that later records refer to a group that exists."""
        group = Group(group_id, self._clock.now_ms())
        written = write_generation(self._journal, group)
        if written.done() and (error := written.exception()) is not None:
            raise CoordinatorNotAvailable(f"Group {group_id} could not be written: {error}")
        when_done(written, lambda error: _warn(group_id, error))
        self._groups.put(group)
        return group


def _warn(group_id: str, error: BrokerError | None) -> None:
    if error is not None:
        logger.warning("group could not be written", group=group_id, error=str(error))
