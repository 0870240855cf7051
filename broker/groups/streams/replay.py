"""Builds streams groups by applying their records in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed

from broker.coordinator.namespace import GroupNamespace
from broker.coordinator.records import RecordValue
from broker.errors import CorruptMessage
from broker.groups.classic.group import Group
from broker.groups.modern.group import DELETED_EPOCH
from broker.groups.modern.member import LEAVING, MemberState
from broker.groups.modern.records import GroupRecordKey
from broker.groups.streams.group import StreamsGroup
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.records import (
    CurrentMemberAssignmentTaskIds,
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
    StreamsGroupTopologyValue,
    TaskIds,
)
from broker.groups.streams.tasks import NOTHING, Assigned, TaskEpochs, Tasks, TasksByRole

__all__ = ["replay"]


def replay(groups: GroupNamespace, key: GroupRecordKey, value: RecordValue | None) -> None:
    """Apply one record. A tombstone for something that does not exist changes nothing.

    Raises CorruptMessage if the id names a group of another type.
    """
    group = _group(groups, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        _forget(groups, group, key)
    else:
        _set(group, key, value)


def _group(groups: GroupNamespace, group_id: str, *, create: bool) -> StreamsGroup | None:
    existing_group = groups.get(group_id)
    if isinstance(existing_group, StreamsGroup):
        return existing_group
    if not create:
        return None
    if existing_group is not None and not (isinstance(existing_group, Group) and existing_group.is_simple):
        raise CorruptMessage(f"Group {group_id} is not a streams group, but has records of one.")
    group = StreamsGroup(group_id)
    groups.put(group)
    return group


def _set(group: StreamsGroup, key: GroupRecordKey, value: RecordValue) -> None:
    match key, value:
        case StreamsGroupMemberMetadataKey(), StreamsGroupMemberMetadataValue():
            endpoint = value.user_endpoint
            member = group.members.get(key.member_id) or StreamsMember(member_id=key.member_id)
            group.put_member(
                changed(
                    member,
                    instance_id=value.instance_id,
                    rack_id=value.rack_id,
                    client_id=value.client_id,
                    client_host=value.client_host,
                    rebalance_timeout_ms=value.rebalance_timeout_ms,
                    topology_epoch=value.topology_epoch,
                    process_id=value.process_id,
                    endpoint=None if endpoint is None else (endpoint.host, endpoint.port),
                    tags={tag.key: tag.value for tag in value.client_tags},
                )
            )
        case StreamsGroupCurrentMemberAssignmentKey(), StreamsGroupCurrentMemberAssignmentValue():
            member = group.members.get(key.member_id) or StreamsMember(member_id=key.member_id)
            epoch = value.member_epoch
            group.put_member(
                changed(
                    member,
                    epoch=epoch,
                    previous_epoch=value.previous_member_epoch,
                    state=MemberState.of(value.state),
                    assigned=Assigned(
                        _epochs(value.active_tasks, epoch), _tasks(value.standby_tasks), _tasks(value.warmup_tasks)
                    ),
                    revoking=Assigned(
                        _epochs(value.active_tasks_pending_revocation, epoch),
                        _tasks(value.standby_tasks_pending_revocation),
                        _tasks(value.warmup_tasks_pending_revocation),
                    ),
                )
            )
        case StreamsGroupTargetAssignmentMemberKey(), StreamsGroupTargetAssignmentMemberValue():
            tasks = TasksByRole(_tasks(value.active_tasks), _tasks(value.standby_tasks), _tasks(value.warmup_tasks))
            group.put_target(key.member_id, tasks)
        case StreamsGroupTargetAssignmentMetadataKey(), StreamsGroupTargetAssignmentMetadataValue():
            group.assignment_epoch = value.assignment_epoch
            group.assigned_at_ms = value.assignment_timestamp
        case StreamsGroupMetadataKey(), StreamsGroupMetadataValue():
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
            group.validated_epoch = value.validated_topology_epoch
            group.assignment_configs = {setting.key: setting.value for setting in value.last_assignment_configs or ()}
        case StreamsGroupTopologyKey(), StreamsGroupTopologyValue():
            group.topology = value
            group.subscriptions_changed()


def _forget(groups: GroupNamespace, group: StreamsGroup, key: GroupRecordKey) -> None:
    match key:
        case StreamsGroupMemberMetadataKey(member_id=member_id):
            group.remove_member(member_id)
        case StreamsGroupCurrentMemberAssignmentKey(member_id=member_id):
            member = group.members.get(member_id)
            if member is not None:
                group.put_member(
                    changed(member, epoch=LEAVING, previous_epoch=LEAVING, assigned=NOTHING, revoking=NOTHING)
                )
        case StreamsGroupTargetAssignmentMemberKey(member_id=member_id):
            group.remove_target(member_id)
        case StreamsGroupTargetAssignmentMetadataKey():
            group.assignment_epoch, group.assigned_at_ms = DELETED_EPOCH, 0
        case StreamsGroupTopologyKey():
            group.topology = None
            group.subscriptions_changed()
        case StreamsGroupMetadataKey():
            groups.remove(group.group_id)


def _tasks(stored: Sequence[TaskIds] | Sequence[CurrentMemberAssignmentTaskIds]) -> Tasks:
    return {item.subtopology_id: frozenset(item.partitions) for item in stored}


def _epochs(stored: Sequence[CurrentMemberAssignmentTaskIds], member_epoch: int) -> TaskEpochs:
    """Epochs of tasks. Records of Kafka before 4.2 have none; the member's epoch then counts for its tasks."""
    result = {}
    for task_ids in stored:
        epochs = task_ids.assignment_epochs
        if epochs is None or len(epochs) != len(task_ids.partitions):
            epochs = [max(member_epoch, 0)] * len(task_ids.partitions)
        result[task_ids.subtopology_id] = dict(zip(task_ids.partitions, epochs, strict=True))
    return result
