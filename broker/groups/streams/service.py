"""Streams groups: members send the topology of their application and receive their tasks (KIP-1071)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import ClassVar

from broker.coordinator.futures import answer_when
from broker.coordinator.namespace import GroupType
from broker.coordinator.records import RecordValue
from broker.errors import (
    BrokerError,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    UnknownMemberId,
)
from broker.groups.classic.group import Group
from broker.groups.modern.member import JOINING, LEAVING, LEAVING_STATIC, MemberState
from broker.groups.modern.records import GroupRecordKey, Record, RecordTypes
from broker.groups.modern.service import Change, GroupService
from broker.groups.streams import changes
from broker.groups.streams.configured import ConfiguredTopology, Status, StatusCode
from broker.groups.streams.endpoints import endpoints
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.records import RECORDS
from broker.groups.streams.replay import replay
from broker.groups.streams.requests import check_request
from broker.groups.streams.step import Step, assign
from broker.groups.streams.tasks import NO_TASKS, Assigned, TasksByRole
from broker.groups.streams.values import DescribedStreamsGroup, StreamsAnswer, StreamsHeartbeat
from tidegate.kit.logs import get_logger

__all__ = ["StreamsGroups"]

logger = get_logger(__name__)

SESSION = "session"
REVOCATION = "revocation"
INITIAL = "initial rebalance"


class StreamsGroups(GroupService[StreamsGroup]):
    """All streams groups."""

    TYPE: ClassVar[GroupType] = GroupType.STREAMS
    RECORDS: ClassVar[RecordTypes] = RECORDS

    # -- requests --------------------------------------------------------------------------------------------------

    def heartbeat(self, request: StreamsHeartbeat) -> asyncio.Future[StreamsAnswer]:
        """Join, stay, or leave. The answer comes when the changes are durable."""
        try:
            check_request(request)
            if request.epoch in (LEAVING, LEAVING_STATIC):
                return self._leave(request)
            return self._stay(request)
        except BrokerError as error:
            return self.refuse(error)

    def describe(self, group_id: str) -> DescribedStreamsGroup:
        """Raises GroupIdNotFound."""
        group = self.around.groups.find(group_id, StreamsGroup)
        return DescribedStreamsGroup(
            group_id=group_id,
            state=group.state_name,
            epoch=group.epoch,
            assignment_epoch=group.assignment_epoch,
            topology=group.topology,
            configured=group.configured,
            members=[(member, group.target.get(member.member_id, NO_TASKS)) for member in group.members.values()],
        )

    # -- join and stay ----------------------------------------------------------------------------------------------

    def _stay(self, request: StreamsHeartbeat) -> asyncio.Future[StreamsAnswer]:
        joining = request.epoch == JOINING
        now_ms = self.around.clock.now_ms()
        step = self._open(request.group_id, create=joining)
        group = step.group
        is_new = request.group_id not in self.around.groups or step.made_way is not None
        was_empty = group.is_empty
        before = self._member(group, request)
        member = _updated(before, request)
        bump = member != before or member.member_id not in group.members
        if bump:
            step.records.append(changes.metadata(group.group_id, member))
        topology = step.configure(request, now_ms)
        if member.topology_epoch < topology.value.epoch:
            step.status.append(
                Status(
                    StatusCode.STALE_TOPOLOGY,
                    f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch "
                    f"{topology.value.epoch}.",
                )
            )
        epoch = step.note_epoch(topology, request, bump=bump or topology.changed, now_ms=now_ms)
        delay_ms = self.around.settings(group.group_id).streams_initial_rebalance_delay_ms
        if was_empty and delay_ms > 0 and (INITIAL, group.group_id, "") not in self.timers:
            self.later(INITIAL, group.group_id, "", delay_ms, lambda: self._assign_late(group.group_id))
        step.waits_for_members = (INITIAL, group.group_id, "") in self.timers
        target_epoch, target = step.renew_target(member, epoch, topology.configured, now_ms)
        after = step.reconcile(member, target_epoch, target, request.owned)
        if request.shutdown_application and group.shutdown_by is None:
            group.shutdown_by = member.member_id
        answer = self._answer(step, request, before, after, topology.configured, is_new=is_new)
        future = self._finish(step, answer)
        self._restart_session(group.group_id, member.member_id)
        return future

    def _open(self, group_id: str, *, create: bool) -> Step:
        group = self.around.groups.get(group_id)
        if isinstance(group, StreamsGroup):
            if create and len(group.members) >= self.around.config.streams_max_size:
                raise GroupMaxSizeReached(
                    f"Streams group {group_id} is full: group.streams.max.size is {self.around.config.streams_max_size}."
                )
            return Step(self.around, group)
        if group is None and create:
            return Step(self.around, StreamsGroup(group_id))
        if isinstance(group, Group) and group.is_empty and create:
            return Step(self.around, StreamsGroup(group_id), group)
        raise GroupIdNotFound(
            f"Streams group {group_id} not found." if group is None else f"Group {group_id} is not a streams group."
        )

    def _member(self, group: StreamsGroup, request: StreamsHeartbeat) -> StreamsMember:
        member = group.members.get(request.member_id)
        if member is None:
            if request.epoch != JOINING:
                raise UnknownMemberId(f"Member {request.member_id} is not a member of group {group.group_id}.")
            return StreamsMember(member_id=request.member_id)
        if request.epoch not in (JOINING, member.epoch):
            behind = request.epoch < member.epoch
            if not (behind and request.epoch == member.previous_epoch and _is_subset(request.owned, member.assigned)):
                raise FencedMemberEpoch(
                    f"The streams group member has a {'smaller' if behind else 'greater'} member epoch ({request.epoch}) than "
                    f"the one known by the group coordinator ({member.epoch}). The member must abandon all its partitions "
                    "and rejoin."
                )
        return member

    # -- target assignment -----------------------------------------------------------------------------------------

    def _assign_late(self, group_id: str) -> None:
        """The delay that a new group waits for more members is over."""
        group = self.around.groups.get(group_id)
        if not isinstance(group, StreamsGroup) or group.is_empty or group.configured is None:
            return
        if group.epoch > group.assignment_epoch:
            records: list[Record] = []
            assign(
                self.around, records, group, group.members, group.epoch, group.configured, self.around.clock.now_ms()
            )
            self.write_by_timer(group_id, self.change(records))

    # -- answers ---------------------------------------------------------------------------------------------------

    def _answer(
        self,
        step: Step,
        request: StreamsHeartbeat,
        before: StreamsMember,
        after: StreamsMember,
        configured: ConfiguredTopology,
        *,
        is_new: bool,
    ) -> StreamsAnswer:
        group = step.group
        tells = request.epoch == JOINING or before.assigned != after.assigned
        if tells and after.endpoint is not None:
            group.endpoint_epoch += 1
        status = list(step.status)
        if configured.problem is not None:
            status.append(configured.problem)
        if group.shutdown_by is not None:
            status.append(
                Status(
                    StatusCode.SHUTDOWN_APPLICATION,
                    f"Streams group member {group.shutdown_by} encountered a fatal error and requested a shutdown for the "
                    "entire application.",
                )
            )
        moved = group.endpoint_epoch != request.endpoint_epoch
        return StreamsAnswer(
            member_id=after.member_id,
            epoch=after.epoch,
            heartbeat_interval_ms=self.around.settings(group.group_id).streams_heartbeat_interval_ms,
            assigned=after.assigned.roles if tells else None,
            status=status,
            # A group that this heartbeat creates does not keep its epoch until it exists.
            endpoint_epoch=0 if is_new else group.endpoint_epoch,
            endpoints=endpoints(group, after, self.around.topics) if moved else None,
            missing=list(configured.missing.values()),
        )

    def _finish(self, step: Step, answer: StreamsAnswer) -> asyncio.Future[StreamsAnswer]:
        future: asyncio.Future[StreamsAnswer] = self.around.clock.create_future()
        group, old = step.group, step.made_way
        change = self.change(step.records)
        configured, deadline, refresh_epoch = group.configured, group.refresh_deadline_ms, group.refresh_epoch

        def follow() -> None:
            if old is not None:
                self.around.groups.remove(group.group_id)
            change.follow()
            made = self.around.groups.get(group.group_id)
            if isinstance(made, StreamsGroup) and made is not group:
                made.configured = configured
                made.refresh_at(deadline, refresh_epoch)
                made.shutdown_by = group.shutdown_by

        entries = [*(old.tombstones() if old is not None else ()), *change.entries]
        answer_when(self.write(group.group_id, Change(entries, follow)), future, answer)
        if step.moved is not None:
            self._watch_revocation(group.group_id, step.moved)
        return future

    # -- leave and expire -------------------------------------------------------------------------------------------

    def _leave(self, request: StreamsHeartbeat) -> asyncio.Future[StreamsAnswer]:
        group = self.around.groups.find(request.group_id, StreamsGroup)
        if request.shutdown_application and group.shutdown_by is None:
            group.shutdown_by = request.member_id
        member = group.member(request.member_id)
        logger.info("member leaves", group=group.group_id, member=member.member_id)
        future: asyncio.Future[StreamsAnswer] = self.around.clock.create_future()
        written = self.write(group.group_id, self._removal(group, member))
        answer_when(written, future, StreamsAnswer(member_id=member.member_id, epoch=request.epoch))
        return future

    def _removal(self, group: StreamsGroup, member: StreamsMember) -> Change:
        change = self.change(
            [
                *changes.member_tombstones(group.group_id, member.member_id),
                changes.group_epoch(
                    group.group_id,
                    group.epoch + 1,
                    group.metadata_hash,
                    group.validated_epoch,
                    group.assignment_configs,
                ),
            ]
        )

        def follow() -> None:
            change.follow()
            for purpose in (SESSION, REVOCATION):
                self.timers.cancel((purpose, group.group_id, member.member_id))

        return Change(change.entries, follow)

    def _fence(self, group_id: str, member_id: str, reason: str) -> None:
        group = self.around.groups.get(group_id)
        member = group.members.get(member_id) if isinstance(group, StreamsGroup) else None
        if not isinstance(group, StreamsGroup) or member is None:
            return
        logger.info("member fenced", group=group_id, member=member_id, reason=reason)
        self.write_by_timer(group_id, self._removal(group, member))

    # -- timers ----------------------------------------------------------------------------------------------------

    def _restart_session(self, group_id: str, member_id: str) -> None:
        timeout_ms = self.around.settings(group_id).streams_session_timeout_ms
        self.later(
            SESSION, group_id, member_id, timeout_ms, lambda: self._fence(group_id, member_id, "session expired")
        )

    def _watch_revocation(self, group_id: str, member: StreamsMember) -> None:
        """Fence a member that does not release its tasks in time."""
        if member.state is not MemberState.UNREVOKED:
            self.timers.cancel((REVOCATION, group_id, member.member_id))
            return
        member_id, epoch = member.member_id, member.epoch

        def check() -> None:
            group = self.around.groups.get(group_id)
            present = group.members.get(member_id) if isinstance(group, StreamsGroup) else None
            if present is not None and present.epoch == epoch:
                self._fence(group_id, member_id, "it did not give up its tasks in time")

        self.later(REVOCATION, group_id, member_id, member.rebalance_timeout_ms, check)

    # -- the log ---------------------------------------------------------------------------------------------------

    def replay(self, key: GroupRecordKey, value: RecordValue | None) -> None:
        replay(self.around.groups, key, value)

    def loaded(self, group: StreamsGroup) -> None:
        for member in group.members.values():
            self._restart_session(group.group_id, member.member_id)
            self._watch_revocation(group.group_id, member)


def _updated(member: StreamsMember, request: StreamsHeartbeat) -> StreamsMember:
    """The member with the request's changes."""
    timeout_ms = request.rebalance_timeout_ms
    return replace(
        member,
        rack_id=member.rack_id if request.rack_id is None else request.rack_id,
        rebalance_timeout_ms=member.rebalance_timeout_ms if timeout_ms == -1 else timeout_ms,
        topology_epoch=member.topology_epoch if request.topology is None else request.topology.epoch,
        client_id=request.client_id,
        client_host=request.client_host,
        process_id=member.process_id if request.process_id is None else request.process_id,
        endpoint=member.endpoint if request.endpoint is None else request.endpoint,
        tags=member.tags if request.tags is None else request.tags,
    )


def _is_subset(owned: TasksByRole | None, assigned: Assigned) -> bool:
    if owned is None:
        return False
    has = assigned.roles
    pairs = ((owned.active, has.active), (owned.standby, has.standby), (owned.warmup, has.warmup))
    return all(numbers <= some.get(name, frozenset()) for mine, some in pairs for name, numbers in mine.items())
