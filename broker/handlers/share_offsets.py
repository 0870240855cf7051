"""DescribeShareGroupOffsets: the start offsets of a group's share-partitions, and their lag (KIP-932, KIP-1226)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from broker.api.parts import Common, WithConfig, WithGroups, WithMetadata, WithPartitions, WithShare
from broker.api.routes import Context, Routes
from broker.errors import BrokerError, TopicAuthorizationFailed
from broker.groups.share.service import ShareMembership
from broker.handlers.consumer_groups import require_feature
from broker.handlers.rooms import SERVED
from broker.metadata.image import Topic
from broker.protocol.api import ApiKey
from broker.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
    DescribeShareGroupOffsetsResponsePartition,
    DescribeShareGroupOffsetsResponseTopic,
)
from broker.security.access import Operation, ResourceType
from broker.share_coordinator.values import ShareKey

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithConfig, WithGroups, WithMetadata, WithPartitions, WithShare, Protocol):
    """The parts of a broker that these handlers use."""


_UNKNOWN = -1


@routes.handles(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions=SERVED[ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS])
def describe_share_group_offsets(
    context: Context[_Parts], request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    """Return the start offsets of share-partitions.

    v1 lag (KIP-1226)
    """
    groups = []
    for group in request.groups:
        try:
            require_feature(context, "share.version")
            context.require(Operation.DESCRIBE, ResourceType.GROUP, group.group_id)
            topics = _all(context, group.group_id) if group.topics is None else _named(context, group)
        except BrokerError as error:
            groups.append(
                DescribeShareGroupOffsetsResponseGroup(
                    group_id=group.group_id, error_code=error.code, error_message=error.message
                )
            )
            continue
        groups.append(DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, topics=topics))
    return DescribeShareGroupOffsetsResponse(groups=groups)


def _all(context: Context[_Parts], group_id: str) -> list[DescribeShareGroupOffsetsResponseTopic]:
    """Every partition for which the group has state."""
    initialized = context.broker.groups.service(ShareMembership).initialized(group_id)
    topics = []
    for topic_id, partitions in initialized.items():
        name = context.broker.topics.name_of(topic_id)
        if name is not None and context.allows(Operation.DESCRIBE, ResourceType.TOPIC, name):
            topics.append(_topic(context, group_id, context.broker.metadata.topic(name), sorted(partitions)))
    return topics


def _named(
    context: Context[_Parts], group: DescribeShareGroupOffsetsRequestGroup
) -> list[DescribeShareGroupOffsetsResponseTopic]:
    topics, missing, denied = [], [], []
    for topic in group.topics or ():
        known = context.broker.metadata.topics.get(topic.topic_name)
        if not context.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic.topic_name):
            error = TopicAuthorizationFailed(f"The client may not describe topic {topic.topic_name!r}.")
            denied.append(
                DescribeShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name,
                    partitions=[_nothing(index, error.code, error.message) for index in topic.partitions],
                )
            )
        elif known is None:
            missing.append(
                DescribeShareGroupOffsetsResponseTopic(
                    topic_name=topic.topic_name, partitions=[_nothing(index) for index in topic.partitions]
                )
            )
        else:
            topics.append(_topic(context, group.group_id, known, topic.partitions))
    return [*topics, *missing, *denied]


def _nothing(partition: int, code: int = 0, message: str | None = None) -> DescribeShareGroupOffsetsResponsePartition:
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=partition, start_offset=_UNKNOWN, lag=_UNKNOWN, error_code=code, error_message=message
    )


def _topic(
    context: Context[_Parts], group_id: str, topic: Topic, partitions: Sequence[int]
) -> DescribeShareGroupOffsetsResponseTopic:
    return DescribeShareGroupOffsetsResponseTopic(
        topic_name=topic.name,
        topic_id=topic.id,
        partitions=[_partition(context, ShareKey(group_id, topic.id, partition)) for partition in partitions],
    )


def _partition(context: Context[_Parts], key: ShareKey) -> DescribeShareGroupOffsetsResponsePartition:
    try:
        state = context.broker.share.coordinator.summary(key)
    except BrokerError:
        return _nothing(key.partition)
    lag = _UNKNOWN
    if _UNKNOWN not in (state.start_offset, state.delivery_complete_count):
        log = context.broker.partitions.find(key.topic_id, key.partition)
        # A start offset can be any number that somebody set: subtract with the overflow of Java's long.
        lag = _int64(log.log_end_offset - state.start_offset - state.delivery_complete_count)
    return DescribeShareGroupOffsetsResponsePartition(
        partition_index=key.partition, start_offset=state.start_offset, leader_epoch=state.leader_epoch, lag=lag
    )


def _int64(value: int) -> int:
    """The value wrapped to a signed 64-bit integer."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
