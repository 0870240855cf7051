"""Builds consumer groups by applying their records in order."""

from __future__ import annotations

from dataclasses import replace as changed

from broker.coordinator.namespace import GroupNamespace
from broker.coordinator.records import RecordValue
from broker.errors import CorruptMessage
from broker.groups.classic.group import Group
from broker.groups.consumer.changes import classic_member, epochs_from
from broker.groups.consumer.group import ConsumerGroup
from broker.groups.consumer.member import ConsumerMember
from broker.groups.consumer.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from broker.groups.consumer.regex import Resolved
from broker.groups.modern.group import DELETED_EPOCH
from broker.groups.modern.member import LEAVING, MemberState, partitions_from
from broker.groups.modern.records import GroupRecordKey

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


def _group(groups: GroupNamespace, group_id: str, *, create: bool) -> ConsumerGroup | None:
    existing_group = groups.get(group_id)
    if isinstance(existing_group, ConsumerGroup):
        return existing_group
    # A group that only stores offsets of consumers without a group has no record, so the new group replaces it.
    if not create or (
        existing_group is not None and not (isinstance(existing_group, Group) and existing_group.is_simple)
    ):
        if create:
            raise CorruptMessage(f"Group {group_id} is not a consumer group, but has records of one.")
        return None
    group = ConsumerGroup(group_id)
    groups.put(group)
    return group


def _set(group: ConsumerGroup, key: GroupRecordKey, value: RecordValue) -> None:
    match key, value:
        case ConsumerGroupMemberMetadataKey(), ConsumerGroupMemberMetadataValue():
            member = group.members.get(key.member_id) or ConsumerMember(member_id=key.member_id)
            group.put_member(
                changed(
                    member,
                    instance_id=value.instance_id,
                    rack_id=value.rack_id,
                    client_id=value.client_id,
                    client_host=value.client_host,
                    topics=frozenset(value.subscribed_topic_names),
                    regex=value.subscribed_topic_regex,
                    rebalance_timeout_ms=value.rebalance_timeout_ms,
                    assignor=value.server_assignor,
                    classic=classic_member(value.classic_member_metadata),
                )
            )
        case ConsumerGroupCurrentMemberAssignmentKey(), ConsumerGroupCurrentMemberAssignmentValue():
            member = group.members.get(key.member_id) or ConsumerMember(member_id=key.member_id)
            group.put_member(
                changed(
                    member,
                    epoch=value.member_epoch,
                    previous_epoch=value.previous_member_epoch,
                    state=MemberState.of(value.state),
                    assigned=epochs_from(value.assigned_partitions, value.member_epoch),
                    revoking=epochs_from(value.partitions_pending_revocation, value.member_epoch),
                )
            )
        case ConsumerGroupTargetAssignmentMemberKey(), ConsumerGroupTargetAssignmentMemberValue():
            group.put_target(key.member_id, partitions_from(value.topic_partitions))
        case ConsumerGroupTargetAssignmentMetadataKey(), ConsumerGroupTargetAssignmentMetadataValue():
            group.assignment_epoch = value.assignment_epoch
            group.assigned_at_ms = value.assignment_timestamp
        case ConsumerGroupMetadataKey(), ConsumerGroupMetadataValue():
            group.epoch, group.metadata_hash = value.epoch, value.metadata_hash
        case ConsumerGroupRegularExpressionKey(), ConsumerGroupRegularExpressionValue():
            group.regexes[key.regular_expression] = Resolved(frozenset(value.topics), value.version, value.timestamp)
            group.subscriptions_changed()
        case ConsumerGroupPartitionMetadataKey(), _:
            group.had_subscription_record = True


def _forget(groups: GroupNamespace, group: ConsumerGroup, key: GroupRecordKey) -> None:
    match key:
        case ConsumerGroupMemberMetadataKey(member_id=member_id):
            group.remove_member(member_id)
        case ConsumerGroupCurrentMemberAssignmentKey(member_id=member_id):
            member = group.members.get(member_id)
            if member is not None:
                group.put_member(changed(member, epoch=LEAVING, previous_epoch=LEAVING, assigned={}, revoking={}))
        case ConsumerGroupTargetAssignmentMemberKey(member_id=member_id):
            group.remove_target(member_id)
        case ConsumerGroupTargetAssignmentMetadataKey():
            group.assignment_epoch, group.assigned_at_ms = DELETED_EPOCH, 0
        case ConsumerGroupRegularExpressionKey(regular_expression=expression):
            group.regexes.pop(expression, None)
            group.subscriptions_changed()
        case ConsumerGroupPartitionMetadataKey():
            group.had_subscription_record = False
        case ConsumerGroupMetadataKey():
            groups.remove(group.group_id)
