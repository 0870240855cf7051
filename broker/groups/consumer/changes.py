"""The records that change consumer groups."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from broker.groups.consumer.member import ClassicMember, ConsumerMember, Epochs
from broker.groups.consumer.records import (
    ClassicMemberMetadata,
    ClassicProtocol,
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
    TopicPartitions,
)
from broker.groups.modern.member import Partitions
from broker.groups.modern.records import Record, TopicPartition

if TYPE_CHECKING:
    from broker.groups.consumer.regex import Resolved

__all__ = [
    "assignment_epoch",
    "classic_member",
    "current_assignment",
    "epochs_from",
    "group_epoch",
    "group_tombstones",
    "member_tombstones",
    "no_regex",
    "no_subscription_record",
    "regex_resolved",
    "subscription",
    "target",
]


def subscription(group_id: str, member: ConsumerMember) -> Record:
    """The record of a member's identity and subscription."""
    classic = None
    if member.classic is not None:
        classic = ClassicMemberMetadata(
            session_timeout_ms=member.classic.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.classic.protocols
            ],
        )
    return (
        ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupMemberMetadataValue(
            instance_id=member.instance_id,
            rack_id=member.rack_id,
            client_id=member.client_id,
            client_host=member.client_host,
            subscribed_topic_names=sorted(member.topics),
            subscribed_topic_regex=member.regex,
            rebalance_timeout_ms=member.rebalance_timeout_ms,
            server_assignor=member.assignor,
            classic_member_metadata=classic,
        ),
    )


def group_epoch(group_id: str, epoch: int, metadata_hash: int) -> Record:
    return (
        ConsumerGroupMetadataKey(group_id=group_id),
        ConsumerGroupMetadataValue(epoch=epoch, metadata_hash=metadata_hash),
    )


def target(group_id: str, member_id: str, partitions: Partitions) -> Record:
    return (
        ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id),
        ConsumerGroupTargetAssignmentMemberValue(
            topic_partitions=[
                TopicPartition(topic_id=topic_id, partitions=sorted(numbers))
                for topic_id, numbers in sorted(partitions.items())
            ]
        ),
    )


def assignment_epoch(group_id: str, epoch: int, at_ms: int) -> Record:
    return (
        ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=epoch, assignment_timestamp=at_ms),
    )


def current_assignment(group_id: str, member: ConsumerMember) -> Record:
    """The record of a member's current assignment and epochs."""
    return (
        ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=member.epoch,
            previous_member_epoch=member.previous_epoch,
            state=int(member.state),
            assigned_partitions=_topic_partitions(member.assigned),
            partitions_pending_revocation=_topic_partitions(member.revoking),
        ),
    )


def _topic_partitions(epochs: Epochs) -> list[TopicPartitions]:
    return [
        TopicPartitions(
            topic_id=topic_id,
            partitions=sorted(partitions),
            assignment_epochs=[partitions[partition] for partition in sorted(partitions)],
        )
        for topic_id, partitions in sorted(epochs.items())
    ]


def epochs_from(stored: Iterable[TopicPartitions], member_epoch: int) -> Epochs:
    """Epochs of partitions.

    Records of Kafka before 4.3 have none; the member's epoch then counts for its partitions.
    """
    result = {}
    for topic_partitions in stored:
        epochs = topic_partitions.assignment_epochs
        if epochs is None or len(epochs) != len(topic_partitions.partitions):
            epochs = [max(member_epoch, 0)] * len(topic_partitions.partitions)
        result[topic_partitions.topic_id] = dict(zip(topic_partitions.partitions, epochs, strict=True))
    return result


def regex_resolved(group_id: str, expression: str, resolved: Resolved) -> Record:
    return (
        ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression),
        ConsumerGroupRegularExpressionValue(
            topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.at_ms
        ),
    )


def no_regex(group_id: str, expression: str) -> Record:
    return ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=expression), None


def no_subscription_record(group_id: str) -> Record:
    return ConsumerGroupPartitionMetadataKey(group_id=group_id), None


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """A member's tombstones in the required order: its subscription goes last."""
    return [
        (ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None),
        (ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None),
        (ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None),
    ]


def group_tombstones(group_id: str, member_ids: Iterable[str], expressions: Iterable[str]) -> Iterator[Record]:
    """Tombstones for all records of a group; the group itself goes last."""
    members = list(member_ids)
    for member_id in members:
        yield ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None
    for member_id in members:
        yield ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None
    yield ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None
    for member_id in members:
        yield ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None
    for expression in expressions:
        yield no_regex(group_id, expression)
    yield no_subscription_record(group_id)
    yield ConsumerGroupMetadataKey(group_id=group_id), None


def classic_member(stored: ClassicMemberMetadata | None) -> ClassicMember | None:
    if stored is None:
        return None
    protocols = tuple(
        (supported_protocol.name, bytes(supported_protocol.metadata))
        for supported_protocol in stored.supported_protocols
    )
    return ClassicMember(stored.session_timeout_ms, protocols)
