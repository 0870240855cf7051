"""The records of consumer groups (KIP-848) in ``__consumer_offsets``: the definitions of Kafka's group coordinator."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from broker.coordinator.records import RecordValue
from broker.groups.modern.records import (
    GroupKey,
    GroupRecordKey,
    MemberKey,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
    record_types,
)
from broker.protocol.declare import structure, wire
from broker.protocol.schema import Message

__all__ = [
    "RECORDS",
    "ClassicMemberMetadata",
    "ClassicProtocol",
    "ConsumerGroupCurrentMemberAssignmentKey",
    "ConsumerGroupCurrentMemberAssignmentValue",
    "ConsumerGroupMemberMetadataKey",
    "ConsumerGroupMemberMetadataValue",
    "ConsumerGroupMetadataKey",
    "ConsumerGroupMetadataValue",
    "ConsumerGroupPartitionMetadataKey",
    "ConsumerGroupPartitionMetadataValue",
    "ConsumerGroupRegularExpressionKey",
    "ConsumerGroupRegularExpressionValue",
    "ConsumerGroupTargetAssignmentMemberKey",
    "ConsumerGroupTargetAssignmentMemberValue",
    "ConsumerGroupTargetAssignmentMetadataKey",
    "ConsumerGroupTargetAssignmentMetadataValue",
    "PartitionMetadata",
    "TopicMetadata",
    "TopicPartitions",
]


@structure
class ConsumerGroupMetadataKey(GroupKey):
    API_KEY = 3


@structure
class ConsumerGroupMetadataValue(RecordValue):
    epoch: int = wire("int32")
    metadata_hash: int = wire("int64", tag=0)


@structure
class ConsumerGroupPartitionMetadataKey(GroupKey):
    API_KEY = 4


@structure
class PartitionMetadata(Message):
    partition: int = wire("int32")
    racks: Sequence[str] = wire("string", array=True)


@structure
class TopicMetadata(Message):
    topic_id: uuid.UUID = wire("uuid")
    topic_name: str = wire("string")
    num_partitions: int = wire("int32")
    partition_metadata: Sequence[PartitionMetadata] = wire(PartitionMetadata, array=True)


@structure
class ConsumerGroupPartitionMetadataValue(RecordValue):
    topics: Sequence[TopicMetadata] = wire(TopicMetadata, array=True)


@structure
class ConsumerGroupMemberMetadataKey(MemberKey):
    API_KEY = 5


@structure
class ClassicProtocol(Message):
    name: str = wire("string")
    metadata: bytes = wire("bytes")


@structure
class ClassicMemberMetadata(Message):
    session_timeout_ms: int = wire("int32", default=0)
    supported_protocols: Sequence[ClassicProtocol] = wire(ClassicProtocol, array=True, default=())


_ABSENT: Final = ClassicMemberMetadata()
"""The value that Kafka assumes for an absent field.

A member of the consumer protocol is written as an explicit null.
"""


@structure
class ConsumerGroupMemberMetadataValue(RecordValue):
    instance_id: str | None = wire("string", null_since=0, default=None)
    rack_id: str | None = wire("string", null_since=0, default=None)
    client_id: str = wire("string")
    client_host: str = wire("string")
    subscribed_topic_names: Sequence[str] = wire("string", array=True)
    subscribed_topic_regex: str | None = wire("string", null_since=0, default=None)
    rebalance_timeout_ms: int = wire("int32", default=-1)
    server_assignor: str | None = wire("string", null_since=0, default=None)
    classic_member_metadata: ClassicMemberMetadata | None = wire(
        ClassicMemberMetadata, null_since=0, tag=0, default=_ABSENT
    )


@structure
class ConsumerGroupTargetAssignmentMetadataKey(GroupKey):
    API_KEY = 6


@structure
class ConsumerGroupTargetAssignmentMetadataValue(TargetAssignmentMetadataValue):
    pass


@structure
class ConsumerGroupTargetAssignmentMemberKey(MemberKey):
    API_KEY = 7


@structure
class ConsumerGroupTargetAssignmentMemberValue(TargetAssignmentMemberValue):
    pass


@structure
class ConsumerGroupCurrentMemberAssignmentKey(MemberKey):
    API_KEY = 8


@structure
class TopicPartitions(Message):
    topic_id: uuid.UUID = wire("uuid")
    partitions: Sequence[int] = wire("int32", array=True)
    assignment_epochs: Sequence[int] | None = wire("int32", array=True, null_since=0, tag=0)


@structure
class ConsumerGroupCurrentMemberAssignmentValue(RecordValue):
    member_epoch: int = wire("int32")
    previous_member_epoch: int = wire("int32")
    state: int = wire("int8")
    assigned_partitions: Sequence[TopicPartitions] = wire(TopicPartitions, array=True)
    partitions_pending_revocation: Sequence[TopicPartitions] = wire(TopicPartitions, array=True)


@structure
class ConsumerGroupRegularExpressionKey(GroupRecordKey):
    API_KEY = 16
    regular_expression: str = wire("string")


@structure
class ConsumerGroupRegularExpressionValue(RecordValue):
    topics: Sequence[str] = wire("string", array=True)
    version: int = wire("int64")
    timestamp: int = wire("int64")


RECORDS: Final = record_types(
    (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    (ConsumerGroupTargetAssignmentMetadataKey, ConsumerGroupTargetAssignmentMetadataValue),
    (ConsumerGroupTargetAssignmentMemberKey, ConsumerGroupTargetAssignmentMemberValue),
    (ConsumerGroupCurrentMemberAssignmentKey, ConsumerGroupCurrentMemberAssignmentValue),
    (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
)
"""The record types of consumer groups, by the type number in their keys."""
