"""Builds share groups by applying their records in order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace as changed
from uuid import UUID

from broker.coordinator.namespace import GroupNamespace
from broker.coordinator.records import RecordValue
from broker.errors import CorruptMessage
from broker.groups.classic.group import Group
from broker.groups.modern.group import DELETED_EPOCH
from broker.groups.modern.member import LEAVING, MemberState, partitions_from
from broker.groups.modern.records import GroupRecordKey
from broker.groups.share.group import ShareGroup
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
    TopicPartitionsInfo,
)
from broker.groups.share.values import TopicState

__all__ = ["replay"]


def replay(groups: GroupNamespace, key: GroupRecordKey, value: RecordValue | None, now_ms: int) -> None:
    """Apply one record. A tombstone for something that does not exist changes nothing.

    Raises CorruptMessage if the id names a group of another type.
    """
    group = _group(groups, key.group_id, create=value is not None)
    if group is None:
        return
    if value is None:
        _forget(groups, group, key)
    else:
        _set(group, key, value, now_ms)


def _group(groups: GroupNamespace, group_id: str, *, create: bool) -> ShareGroup | None:
    existing_group = groups.get(group_id)
    if isinstance(existing_group, ShareGroup):
        return existing_group
    if not create or (
        existing_group is not None and not (isinstance(existing_group, Group) and existing_group.is_simple)
    ):
        if create:
            raise CorruptMessage(f"Group {group_id} is not a share group, but has records of one.")
        return None
    group = ShareGroup(group_id)
    groups.put(group)
    return group


def _set(group: ShareGroup, key: GroupRecordKey, value: RecordValue, now_ms: int) -> None:
    match key, value:
        case ShareGroupMemberMetadataKey(), ShareGroupMemberMetadataValue():
            member = group.members.get(key.member_id) or ShareMember(member_id=key.member_id)
            group.put_member(
                changed(
                    member,
                    rack_id=value.rack_id,
                    client_id=value.client_id,
                    client_host=value.client_host,
                    topics=frozenset(value.subscribed_topic_names),
                )
            )
        case ShareGroupCurrentMemberAssignmentKey(), ShareGroupCurrentMemberAssignmentValue():
            member = group.members.get(key.member_id) or ShareMember(member_id=key.member_id)
            group.put_member(
                changed(
                    member,
                    epoch=value.member_epoch,
                    previous_epoch=value.previous_member_epoch,
                    state=MemberState.of(value.state),
                    assigned=partitions_from(value.assigned_partitions),
                )
            )
        case ShareGroupTargetAssignmentMemberKey(), ShareGroupTargetAssignmentMemberValue():
            group.put_target(key.member_id, partitions_from(value.topic_partitions))
        case ShareGroupTargetAssignmentMetadataKey(), ShareGroupTargetAssignmentMetadataValue():
            group.assignment_epoch = value.assignment_epoch
            group.assigned_at_ms = value.assignment_timestamp
        case ShareGroupMetadataKey(), ShareGroupMetadataValue():
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        case ShareGroupStatePartitionMetadataKey(), ShareGroupStatePartitionMetadataValue():
            group.initializing = _states(value.initializing_topics, now_ms)
            group.initialized = _states(value.initialized_topics, now_ms)
            group.deleting = {
                deleting_topic.topic_id: deleting_topic.topic_name for deleting_topic in value.deleting_topics
            }


def _states(topics: Sequence[TopicPartitionsInfo], now_ms: int) -> dict[UUID, TopicState]:
    return {topic.topic_id: TopicState(topic.topic_name, frozenset(topic.partitions), now_ms) for topic in topics}


def _forget(groups: GroupNamespace, group: ShareGroup, key: GroupRecordKey) -> None:
    match key:
        case ShareGroupMemberMetadataKey(member_id=member_id):
            group.remove_member(member_id)
        case ShareGroupCurrentMemberAssignmentKey(member_id=member_id):
            member = group.members.get(member_id)
            if member is not None:
                group.put_member(changed(member, epoch=LEAVING, previous_epoch=LEAVING, assigned={}))
        case ShareGroupTargetAssignmentMemberKey(member_id=member_id):
            group.remove_target(member_id)
        case ShareGroupTargetAssignmentMetadataKey():
            group.assignment_epoch, group.assigned_at_ms = DELETED_EPOCH, 0
        case ShareGroupStatePartitionMetadataKey():
            group.initializing, group.initialized, group.deleting = {}, {}, {}
        case ShareGroupMetadataKey():
            groups.remove(group.group_id)
