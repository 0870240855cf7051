"""One operation on a streams group: its topology, the group's epoch, the target tasks, and the next step towards them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from broker.errors import InvalidRequest
from broker.groups.classic.group import Group
from broker.groups.modern.group import metadata_hash
from broker.groups.modern.records import Record
from broker.groups.modern.service import METADATA_REFRESH_INTERVAL_MS, Surroundings
from broker.groups.modern.target import may_assign
from broker.groups.streams import changes
from broker.groups.streams.configured import ConfiguredTopology, Status, StatusCode, configure
from broker.groups.streams.group import NOT_VALIDATED, StreamsGroup
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.reconciliation import reconcile
from broker.groups.streams.records import StreamsGroupTopologyValue
from broker.groups.streams.requests import check_owned
from broker.groups.streams.sticky_assignor import StreamsMemberSpec, StreamsSpec, SubtopologySpec, assign_tasks
from broker.groups.streams.tasks import NO_TASKS, TasksByRole
from broker.groups.streams.topology import required_topics, same
from broker.groups.streams.values import StreamsHeartbeat
from tidegate.kit.logs import get_logger

__all__ = ["Step", "Topology", "assign", "assignment_configs"]

logger = get_logger(__name__)


class Topology(NamedTuple):
    """The group's topology, the same configured for the existing topics, and the hash of these topics."""

    value: StreamsGroupTopologyValue
    configured: ConfiguredTopology
    metadata_hash: int
    changed: bool


class Step:
    """One operation on a group: its input, and the records and statuses that it collects."""

    __slots__ = ("_around", "group", "made_way", "moved", "records", "status", "waits_for_members")

    def __init__(self, around: Surroundings, group: StreamsGroup, made_way: Group | None = None) -> None:
        self._around = around
        self.group = group
        self.made_way = made_way
        """The empty classic group that this one replaces."""
        self.waits_for_members = False
        """The group is new, and more members may join before tasks are assigned."""
        self.records: list[Record] = []
        self.status: list[Status] = []
        self.moved: StreamsMember | None = None
        """The member, if reconciliation changed it."""

    def configure(self, request: StreamsHeartbeat, now_ms: int) -> Topology:
        """The group's topology, configured for the existing topics."""
        group, topology = self.group, request.topology
        first = group.topology is None
        if group.topology is None:
            if topology is None:
                raise InvalidRequest(f"Group {group.group_id} has no topology yet: join with one.")
            value = topology
            self.records.append(changes.topology(group.group_id, topology))
        else:
            value = group.topology
            if topology is not None and topology.epoch >= value.epoch and not same(topology, value):
                raise InvalidRequest("Topology updates are not supported yet.")
        configured, new_hash = group.configured, group.metadata_hash
        if not first and configured is not None and not group.is_refresh_due(now_ms):
            return Topology(value, configured, new_hash, changed=False)
        new_hash = metadata_hash(required_topics(value), self._around.topics)
        changed = new_hash != group.metadata_hash
        if first or changed or configured is None:
            configured = group.configured = configure(value, self._around.topics)
        return Topology(value, configured, new_hash, changed)

    def note_epoch(self, topology: Topology, request: StreamsHeartbeat, *, bump: bool, now_ms: int) -> int:
        """The group's epoch; the next one if members, topics, or the inputs of the assignment changed."""
        group = self.group
        validated = NOT_VALIDATED
        if topology.configured.is_ready:
            validated = topology.value.epoch
            check_owned(request.owned, topology.configured)
        configs = assignment_configs(self._around, group.group_id)
        if not bump and validated == group.validated_epoch and configs == group.assignment_configs:
            return group.epoch
        epoch = group.epoch + 1
        self.records.append(changes.group_epoch(group.group_id, epoch, topology.metadata_hash, validated, configs))
        group.refresh_at(now_ms + METADATA_REFRESH_INTERVAL_MS, epoch)
        logger.info("group epoch", group=group.group_id, epoch=epoch, validated=validated)
        return epoch

    def renew_target(
        self, member: StreamsMember, epoch: int, configured: ConfiguredTopology, now_ms: int
    ) -> tuple[int, TasksByRole]:
        """The epoch of the target assignment, and the member's part of it."""
        group = self.group
        if self.waits_for_members:
            self.status.append(
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
            group.assigned_at_ms, self._around.settings(group.group_id).streams_assignment_interval_ms, now_ms
        ):
            self.status.append(
                Status(StatusCode.ASSIGNMENT_DELAYED, "Assignment delayed due to the configured assignment interval.")
            )
            return group.assignment_epoch, present
        members = {**group.members, member.member_id: member}
        targets = assign(self._around, self.records, group, members, epoch, configured, now_ms)
        return epoch, targets[member.member_id]

    def reconcile(
        self,
        member: StreamsMember,
        target_epoch: int,
        target: TasksByRole,
        owned: TasksByRole | None,
    ) -> StreamsMember:
        if member.is_reconciled_to(target_epoch):
            return member
        after = reconcile(self.group, member, target_epoch, target, owned)
        if after == member:
            return member
        self.records.append(changes.current_assignment(self.group.group_id, after))
        self.moved = after
        return after


def assignment_configs(around: Surroundings, group_id: str) -> Mapping[str, str]:
    """The assignor's configuration. It is stored with the group, so that a change is noticed."""
    return {"num.standby.replicas": str(around.settings(group_id).streams_num_standby_replicas)}


def assign(
    around: Surroundings,
    records: list[Record],
    group: StreamsGroup,
    members: Mapping[str, StreamsMember],
    epoch: int,
    configured: ConfiguredTopology,
    now_ms: int,
) -> Mapping[str, TasksByRole]:
    """Compute the target tasks and record the changes. No tasks are assigned while topics are missing or don't fit."""
    targets: Mapping[str, TasksByRole] = dict.fromkeys(members, NO_TASKS)
    if configured.is_ready and configured.subtopologies is not None:
        spec = StreamsSpec(
            {
                member_id: StreamsMemberSpec(member.process_id, group.target.get(member_id, NO_TASKS))
                for member_id, member in members.items()
            },
            {
                name: SubtopologySpec(subtopology.tasks, subtopology.is_stateful)
                for name, subtopology in configured.subtopologies.items()
            },
            int(assignment_configs(around, group.group_id)["num.standby.replicas"]),
        )
        targets = assign_tasks(spec)
    for member_id, tasks in targets.items():
        if tasks != group.target.get(member_id):
            records.append(changes.target(group.group_id, member_id, tasks))
    records.append(changes.assignment_epoch(group.group_id, epoch, now_ms))
    logger.info("target assignment", group=group.group_id, epoch=epoch, ready=configured.is_ready)
    return targets
