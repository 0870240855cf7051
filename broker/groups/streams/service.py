"""Streams groups: members bring the topology of their application, and are told which of its tasks are theirs (KIP-1071)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, NamedTuple

from broker.errors import (
    BrokerError,
    FencedMemberEpoch,
    GroupIdNotFound,
    GroupMaxSizeReached,
    InvalidRequest,
    UnknownMemberId,
)
from broker.groups.assignors.sticky import StreamsMemberSpec, StreamsSpec, SubtopologySpec, assign_tasks
from broker.groups.group import Group
from broker.groups.journal import answer_when
from broker.groups.modern.group import metadata_hash
from broker.groups.modern.member import JOINING, LEAVING, LEAVING_STATIC, MemberState
from broker.groups.modern.records import Record, RecordKey, RecordTypes, RecordValue
from broker.groups.modern.service import METADATA_REFRESH_INTERVAL_MS, Change, GroupService
from broker.groups.modern.target import may_assign
from broker.groups.namespace import GroupType
from broker.groups.streams import changes
from broker.groups.streams.configured import ConfiguredTopology, Status, StatusCode, configure
from broker.groups.streams.endpoints import endpoints
from broker.groups.streams.group import NOT_VALIDATED, StreamsGroup
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.reconciliation import reconcile
from broker.groups.streams.records import RECORDS, StreamsGroupTopologyValue
from broker.groups.streams.replay import replay
from broker.groups.streams.requests import check_owned, check_request
from broker.groups.streams.tasks import NO_TASKS, Assigned, TasksByRole
from broker.groups.streams.topology import required_topics, same
from broker.groups.streams.values import DescribedStreamsGroup, StreamsAnswer, StreamsHeartbeat
from tidegate.kit.logs import logger

__all__ = ["StreamsGroups"]

_log = logger(__name__)

SESSION = "session"
REVOCATION = "revocation"
INITIAL = "initial rebalance"


class _Step:
    """One operation on a group: what it reads, and the records and statuses that it collects."""

    __slots__ = ("group", "made_way", "records", "status")

    def __init__(self, group: StreamsGroup, made_way: Group | None = None) -> None:
        self.group = group
        self.made_way = made_way
        """The empty classic group whose place this one takes."""
        self.records: list[Record] = []
        self.status: list[Status] = []


class _Topology(NamedTuple):
    value: StreamsGroupTopologyValue
    configured: ConfiguredTopology
    metadata_hash: int
    changed: bool


class StreamsGroups(GroupService[StreamsGroup]):
    """All streams groups."""

    TYPE: ClassVar[GroupType] = GroupType.STREAMS
    RECORDS: ClassVar[RecordTypes] = RECORDS

    # -- requests --------------------------------------------------------------------------------------------------

    def heartbeat(self, request: StreamsHeartbeat) -> asyncio.Future[StreamsAnswer]:
        """Join, stay, or leave. The answer comes when what changed is durable."""
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

    # -- to join and to stay ---------------------------------------------------------------------------------------

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
        topology = self._topology(step, request, now_ms)
        if member.topology_epoch < topology.value.epoch:
            step.status.append(
                Status(
                    StatusCode.STALE_TOPOLOGY,
                    f"The member's topology epoch {member.topology_epoch} is behind the group's topology epoch "
                    f"{topology.value.epoch}.",
                )
            )
        epoch = self._epoch(step, topology, request, bump=bump or topology.changed, now_ms=now_ms)
        delay_ms = self.around.settings(group.group_id).streams_initial_rebalance_delay_ms
        if was_empty and delay_ms > 0 and (INITIAL, group.group_id, "") not in self.timers:
            self.later(INITIAL, group.group_id, "", delay_ms, lambda: self._assign_late(group.group_id))
        target_epoch, target = self._renew_target(step, member, epoch, topology.configured, now_ms)
        after = self._reconcile(step, member, target_epoch, target, request.owned)
        if request.shutdown_application and group.shutdown_by is None:
            group.shutdown_by = member.member_id
        answer = self._answer(step, request, before, after, topology.configured, is_new=is_new)
        future = self._finish(step, answer)
        self._restart_session(group.group_id, member.member_id)
        return future

    def _open(self, group_id: str, *, create: bool) -> _Step:
        found = self.around.groups.get(group_id)
        if isinstance(found, StreamsGroup):
            if create and len(found.members) >= self.around.config.streams_max_size:
                raise GroupMaxSizeReached(
                    f"Streams group {group_id} is full: group.streams.max.size is {self.around.config.streams_max_size}."
                )
            return _Step(found)
        if found is None and create:
            return _Step(StreamsGroup(group_id))
        if isinstance(found, Group) and found.is_empty and create:
            return _Step(StreamsGroup(group_id), found)
        raise GroupIdNotFound(
            f"Streams group {group_id} not found." if found is None else f"Group {group_id} is not a streams group."
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

    def _topology(self, step: _Step, request: StreamsHeartbeat, now_ms: int) -> _Topology:
        """The group's topology, with what it became with the topics there are."""
        group, given = step.group, request.topology
        first = group.topology is None
        if group.topology is None:
            if given is None:
                raise InvalidRequest(f"Group {group.group_id} has no topology yet: join with one.")
            value = given
            step.records.append(changes.topology(group.group_id, given))
        else:
            value = group.topology
            if given is not None and given.epoch >= value.epoch and not same(given, value):
                raise InvalidRequest("Topology updates are not supported yet.")
        configured, new_hash = group.configured, group.metadata_hash
        if not first and configured is not None and not group.is_refresh_due(now_ms):
            return _Topology(value, configured, new_hash, changed=False)
        new_hash = metadata_hash(required_topics(value), self.around.topics)
        changed = new_hash != group.metadata_hash
        if first or changed or configured is None:
            configured = group.configured = configure(value, self.around.topics)
        return _Topology(value, configured, new_hash, changed)

    def _epoch(self, step: _Step, topology: _Topology, request: StreamsHeartbeat, *, bump: bool, now_ms: int) -> int:
        """The group's epoch: the next one if members, topics, or what tasks are assigned by, changed."""
        group = step.group
        validated = NOT_VALIDATED
        if topology.configured.is_ready:
            validated = topology.value.epoch
            check_owned(request.owned, topology.configured)
        configs = self._assignment_configs(group.group_id)
        if not bump and validated == group.validated_epoch and configs == group.assignment_configs:
            return group.epoch
        epoch = group.epoch + 1
        step.records.append(changes.group_epoch(group.group_id, epoch, topology.metadata_hash, validated, configs))
        group.refresh_at(now_ms + METADATA_REFRESH_INTERVAL_MS, epoch)
        _log.info("group epoch", group=group.group_id, epoch=epoch, validated=validated)
        return epoch

    def _assignment_configs(self, group_id: str) -> Mapping[str, str]:
        """What the assignor is told; kept with the group, so that a change of it is noticed."""
        return {"num.standby.replicas": str(self.around.settings(group_id).streams_num_standby_replicas)}

    # -- target assignment -----------------------------------------------------------------------------------------

    def _renew_target(
        self, step: _Step, member: StreamsMember, epoch: int, configured: ConfiguredTopology, now_ms: int
    ) -> tuple[int, TasksByRole]:
        """The epoch of the target assignment, and the member's part of it."""
        group = step.group
        if (INITIAL, group.group_id, "") in self.timers:
            step.status.append(
                Status(
                    StatusCode.ASSIGNMENT_DELAYED,
                    "Assignment delayed due to the configured initial rebalance delay.",
                )
            )
            return group.assignment_epoch, NO_TASKS
        present = group.target.get(member.member_id, NO_TASKS)
        if group.assignment_epoch >= epoch:
            return group.assignment_epoch, present
        if not may_assign(
            group.assigned_at_ms, self.around.settings(group.group_id).streams_assignment_interval_ms, now_ms
        ):
            step.status.append(
                Status(StatusCode.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval.")
            )
            return group.assignment_epoch, present
        members = {**group.members, member.member_id: member}
        targets = self._assign(step.records, group, members, epoch, configured, now_ms)
        return epoch, targets[member.member_id]

    def _assign(
        self,
        records: list[Record],
        group: StreamsGroup,
        members: Mapping[str, StreamsMember],
        epoch: int,
        configured: ConfiguredTopology,
        now_ms: int,
    ) -> Mapping[str, TasksByRole]:
        """Compute who is to have which tasks, and note what changed; nobody any while topics are missing or do not fit."""
        targets: Mapping[str, TasksByRole] = dict.fromkeys(members, NO_TASKS)
        if configured.is_ready and configured.subtopologies is not None:
            spec = StreamsSpec(
                {
                    member_id: StreamsMemberSpec(one.process_id, group.target.get(member_id, NO_TASKS))
                    for member_id, one in members.items()
                },
                {name: SubtopologySpec(one.tasks, one.is_stateful) for name, one in configured.subtopologies.items()},
                int(self._assignment_configs(group.group_id)["num.standby.replicas"]),
            )
            targets = assign_tasks(spec)
        for member_id, tasks in targets.items():
            if tasks != group.target.get(member_id):
                records.append(changes.target(group.group_id, member_id, tasks))
        records.append(changes.assignment_epoch(group.group_id, epoch, now_ms))
        _log.info("target assignment", group=group.group_id, epoch=epoch, ready=configured.is_ready)
        return targets

    def _assign_late(self, group_id: str) -> None:
        """The wait for members of a new group is over."""
        group = self.around.groups.get(group_id)
        if not isinstance(group, StreamsGroup) or group.is_empty or group.configured is None:
            return
        if group.epoch > group.assignment_epoch:
            records: list[Record] = []
            self._assign(records, group, group.members, group.epoch, group.configured, self.around.clock.now_ms())
            self.write_by_timer(group_id, self.change(records))

    def _reconcile(
        self,
        step: _Step,
        member: StreamsMember,
        target_epoch: int,
        target: TasksByRole,
        owned: TasksByRole | None,
    ) -> StreamsMember:
        if member.is_reconciled_to(target_epoch):
            return member
        after = reconcile(step.group, member, target_epoch, target, owned)
        if after == member:
            return member
        step.records.append(changes.current_assignment(step.group.group_id, after))
        self._watch_revocation(step.group.group_id, after)
        return after

    # -- answers ---------------------------------------------------------------------------------------------------

    def _answer(
        self,
        step: _Step,
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
            # A group that this heartbeat makes does not keep its epoch until it is there.
            endpoint_epoch=0 if is_new else group.endpoint_epoch,
            endpoints=endpoints(group, after, self.around.topics) if moved else None,
            missing=list(configured.missing.values()),
        )

    def _finish(self, step: _Step, answer: StreamsAnswer) -> asyncio.Future[StreamsAnswer]:
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
        return future

    # -- to leave, and to be missed --------------------------------------------------------------------------------

    def _leave(self, request: StreamsHeartbeat) -> asyncio.Future[StreamsAnswer]:
        group = self.around.groups.find(request.group_id, StreamsGroup)
        if request.shutdown_application and group.shutdown_by is None:
            group.shutdown_by = request.member_id
        member = group.member(request.member_id)
        _log.info("member leaves", group=group.group_id, member=member.member_id)
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
        _log.info("member fenced", group=group_id, member=member_id, reason=reason)
        self.write_by_timer(group_id, self._removal(group, member))

    # -- timers ----------------------------------------------------------------------------------------------------

    def _restart_session(self, group_id: str, member_id: str) -> None:
        timeout_ms = self.around.settings(group_id).streams_session_timeout_ms
        self.later(
            SESSION, group_id, member_id, timeout_ms, lambda: self._fence(group_id, member_id, "session expired")
        )

    def _watch_revocation(self, group_id: str, member: StreamsMember) -> None:
        """Fence a member that stays too long in an epoch with something to give up."""
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

    def replay(self, key: RecordKey, value: RecordValue | None) -> None:
        replay(self.around.groups, key, value)

    def loaded(self, group: StreamsGroup) -> None:
        for member in group.members.values():
            self._restart_session(group.group_id, member.member_id)
            self._watch_revocation(group.group_id, member)


def _updated(member: StreamsMember, request: StreamsHeartbeat) -> StreamsMember:
    """The member with what the request says of it."""
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
