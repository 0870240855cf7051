"""The records that change streams groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from broker.groups.modern.records import Record
from broker.groups.streams.member import StreamsMember
from broker.groups.streams.records import (
    CurrentMemberAssignmentTaskIds,
    Endpoint,
    KeyValue,
    LastAssignmentConfig,
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
from broker.groups.streams.tasks import TaskEpochs, Tasks, TasksByRole

__all__ = [
    "assignment_epoch",
    "current_assignment",
    "group_epoch",
    "group_tombstones",
    "member_tombstones",
    "metadata",
    "target",
    "topology",
]


def metadata(group_id: str, member: StreamsMember) -> Record:
    """The record of a member's identity."""
    endpoint = member.endpoint
    return (
        StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        StreamsGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            topology_epoch=member.topology_epoch,
            process_id=member.process_id,
            user_endpoint=None if endpoint is None else Endpoint(host=endpoint[0], port=endpoint[1]),
            client_tags=[KeyValue(key=key, value=value) for key, value in sorted(member.tags.items())],
        ),
    )


def topology(group_id: str, value: StreamsGroupTopologyValue) -> Record:
    return StreamsGroupTopologyKey(group_id=group_id), value


def group_epoch(
    group_id: str, epoch: int, metadata_hash: int, validated_epoch: int, configs: Mapping[str, str]
) -> Record:
    """``validated_epoch`` is the epoch of the topology that was validated against the topics; -1 for none."""
    return (
        StreamsGroupMetadataKey(group_id=group_id),
        StreamsGroupMetadataValue(
            epoch=epoch,
            metadata_hash=metadata_hash,
            validated_topology_epoch=validated_epoch,
            last_assignment_configs=[
                LastAssignmentConfig(key=key, value=value) for key, value in sorted(configs.items())
            ],
        ),
    )


def target(group_id: str, member_id: str, tasks: TasksByRole) -> Record:
    return (
        StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        StreamsGroupTargetAssignmentMemberValue(
            active_tasks=_task_ids(tasks.active),
            standby_tasks=_task_ids(tasks.standby),
            warmup_tasks=_task_ids(tasks.warmup),
        ),
    )


def _task_ids(tasks: Tasks) -> list[TaskIds]:
    return [TaskIds(subtopology_id=name, partitions=sorted(numbers)) for name, numbers in sorted(tasks.items())]


def assignment_epoch(group_id: str, epoch: int, at_ms: int) -> Record:
    return (
        StreamsGroupTargetAssignmentMetadataKey(group_id=group_id),
        StreamsGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=at_ms),
    )


def current_assignment(group_id: str, member: StreamsMember) -> Record:
    """The record of a member's current assignment and epochs."""
    has, gives = member.assigned, member.revoking
    return (
        StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        StreamsGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=int(member.state),
            active_tasks=_with_epochs(has.active),
            standby_tasks=_without_epochs(has.standby),
            warmup_tasks=_without_epochs(has.warmup),
            active_tasks_pending_revocation=_with_epochs(gives.active),
            standby_tasks_pending_revocation=_without_epochs(gives.standby),
            warmup_tasks_pending_revocation=_without_epochs(gives.warmup),
        ),
    )


def _with_epochs(tasks: TaskEpochs) -> list[CurrentMemberAssignmentTaskIds]:
    return [
        CurrentMemberAssignmentTaskIds(
            subtopology_id=name,
            partitions=sorted(epochs),
            assignment_epochs=[epochs[epoch] for epoch in sorted(epochs)],
        )
        for name, epochs in sorted(tasks.items())
    ]


def _without_epochs(tasks: Tasks) -> list[CurrentMemberAssignmentTaskIds]:
    return [
        CurrentMemberAssignmentTaskIds(subtopology_id=name, partitions=sorted(numbers))
        for name, numbers in sorted(tasks.items())
    ]


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """A member's tombstones in the required order: its metadata goes last."""
    return [
        (StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str]) -> Iterator[Record]:
    members = list(member_ids)
    for member_id in members:
        yield StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None
    for member_id in members:
        yield StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
    yield StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None
    for member_id in members:
        yield StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None
    yield StreamsGroupMetadataKey(group_id=group_id), None
    yield StreamsGroupTopologyKey(group_id=group_id), None
