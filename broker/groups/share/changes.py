"""The records that change share groups."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from broker.groups.modern.member import Partitions
from broker.groups.modern.records import Record, TopicPartition
from broker.groups.share.member import ShareMember
from broker.groups.share.records import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
    TopicInfo,
    TopicPartitions,
    TopicPartitionsInfo,
)
from broker.groups.share.values import TopicState

__all__ = [
    "assignment_epoch",
    "current_assignment",
    "group_epoch",
    "group_tombstones",
    "member_tombstones",
    "partition_states",
    "subscription",
    "target",
]


def subscription(group_id: str, member: ShareMember) -> Record:
    """The record of a member's identity and subscription."""
    return (
        ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ShareGroupMemberMetadataValue(
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
        ),
    )


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Record:
    return (
        ShareGroupMetadataKey(group_id=group_id),
        ShareGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target(group_id: str, member_id: str, partitions: Partitions) -> Record:
    stored = [TopicPartition(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in partitions.items()]
    return (
        ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ShareGroupTargetAssignmentMemberValue(topic_partitions=stored),
    )


def assignment_epoch(group_id: str, epoch: int, at_ms: int) -> Record:
    return (
        ShareGroupTargetAssignmentMetadataKey(group_id=group_id),
        ShareGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=at_ms),
    )


def current_assignment(group_id: str, member: ShareMember) -> Record:
    stored = [
        TopicPartitions(topic_id=topic_id, partitions=sorted(numbers)) for topic_id, numbers in member.assigned.items()
    ]
    return (
        ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ShareGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=member.state,
            assigned_partitions=stored,
        ),
    )


def partition_states(
    group_id: str,
    initializing: Mapping[UUID, TopicState],
    initialized: Mapping[UUID, TopicState],
    deleting: Mapping[UUID, str],
) -> Record:
    """The record of the partitions for which the group has state."""
    return (
        ShareGroupStatePartitionMetadataKey(group_id=group_id),
        ShareGroupStatePartitionMetadataValue(
            initializing_topics=_infos(initializing),
            initialized_topics=_infos(initialized),
            deleting_topics=[TopicInfo(topic_id=topic_id, topic_name=name) for topic_id, name in deleting.items()],
        ),
    )


def _infos(topics: Mapping[UUID, TopicState]) -> list[TopicPartitionsInfo]:
    return [
        TopicPartitionsInfo(topic_id=topic_id, topic_name=state.name, partitions=sorted(state.partitions))
        for topic_id, state in topics.items()
    ]


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    return [
        (ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, members: Iterable[str]) -> list[Record]:
    ids = list(members)
    return [
        *((ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=name), None) for name in ids),
        *((ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=name), None) for name in ids),
        (ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *((ShareGroupMemberMetadataKey(group_id=group_id, member_id=name), None) for name in ids),
        (ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        (ShareGroupMetadataKey(group_id=group_id), None),
    ]
