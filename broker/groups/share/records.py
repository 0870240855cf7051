"""The records of share groups (KIP-932) in ``__consumer_offsets``: the definitions of Kafka's group coordinator."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from broker.coordinator.records import RecordValue
from broker.groups.modern.records import (
    GroupKey,
    MemberKey,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    record_types,
)
from broker.protocol.declare import structure, wire
from broker.protocol.schema import Message

__all__ = [
    "RECORDS",
    "ShareGroupCurrentMemberAssignmentKey",
    "ShareGroupCurrentMemberAssignmentValue",
    "ShareGroupMemberMetadataKey",
    "ShareGroupMemberMetadataValue",
    "ShareGroupMetadataKey",
    "ShareGroupMetadataValue",
    "ShareGroupStatePartitionMetadataKey",
    "ShareGroupStatePartitionMetadataValue",
    "ShareGroupTargetAssignmentMemberKey",
    "ShareGroupTargetAssignmentMemberValue",
    "ShareGroupTargetAssignmentMetadataKey",
    "ShareGroupTargetAssignmentMetadataValue",
    "TopicInfo",
    "TopicPartitions",
    "TopicPartitionsInfo",
]


@structure
class ShareGroupMemberMetadataKey(MemberKey):
    API_KEY = 10


@structure
class ShareGroupMemberMetadataValue(RecordValue):
    rack_id: str | None = wire("string", null_since=0, default=None)
    client_id: str = wire("string")
    client_host: str = wire("string")
    subscribed_topic_names: Sequence[str] = wire("string", array=True)


@structure
class ShareGroupMetadataKey(GroupKey):
    API_KEY = 11


@structure
class ShareGroupMetadataValue(RecordValue):
    epoch: int = wire("int32")
    metadata_hash: int = wire("int64")


@structure
class ShareGroupTargetAssignmentMetadataKey(GroupKey):
    API_KEY = 12


@structure
class ShareGroupTargetAssignmentMetadataValue(TargetAssignmentMetadataValue):
    pass


@structure
class ShareGroupTargetAssignmentMemberKey(MemberKey):
    API_KEY = 13


@structure
class ShareGroupTargetAssignmentMemberValue(TargetAssignmentMemberValue):
    pass


@structure
class ShareGroupCurrentMemberAssignmentKey(MemberKey):
    API_KEY = 14


@structure
class TopicPartitions(Message):
    topic_id: uuid.UUID = wire("uuid")
    partitions: Sequence[int] = wire("int32", array=True)


@structure
class ShareGroupCurrentMemberAssignmentValue(RecordValue):
    member_epoch: int = wire("int32")
    previous_member_epoch: int = wire("int32")
    state: int = wire("int8")
    assigned_partitions: Sequence[TopicPartitions] = wire(TopicPartitions, array=True)


@structure
class ShareGroupStatePartitionMetadataKey(GroupKey):
    API_KEY = 15


@structure
class TopicPartitionsInfo(Message):
    topic_id: uuid.UUID = wire("uuid")
    topic_name: str = wire("string")
    partitions: Sequence[int] = wire("int32", array=True)


@structure
class TopicInfo(Message):
    topic_id: uuid.UUID = wire("uuid")
    topic_name: str = wire("string")


@structure
class ShareGroupStatePartitionMetadataValue(RecordValue):
    initializing_topics: Sequence[TopicPartitionsInfo] = wire(TopicPartitionsInfo, array=True)
    initialized_topics: Sequence[TopicPartitionsInfo] = wire(TopicPartitionsInfo, array=True)
    deleting_topics: Sequence[TopicInfo] = wire(TopicInfo, array=True)


RECORDS: Final = record_types(
    (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    (ShareGroupMetadataKey, ShareGroupMetadataValue),
    (ShareGroupTargetAssignmentMetadataKey, ShareGroupTargetAssignmentMetadataValue),
    (ShareGroupTargetAssignmentMemberKey, ShareGroupTargetAssignmentMemberValue),
    (ShareGroupCurrentMemberAssignmentKey, ShareGroupCurrentMemberAssignmentValue),
    (ShareGroupStatePartitionMetadataKey, ShareGroupStatePartitionMetadataValue),
)
"""The record types of share groups, by the type number in their keys."""
