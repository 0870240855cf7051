"""The records of consumer groups (KIP-848) in ``__consumer_offsets``: the definitions of Kafka's group coordinator."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar, Final

from broker.groups.modern.records import (
    GroupKey,
    MemberKey,
    RecordKey,
    RecordTypes,
    RecordValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
)
from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message

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


class ConsumerGroupMetadataKey(GroupKey):
    __slots__ = ()
    API_KEY = 3


class ConsumerGroupMetadataValue(RecordValue):
    __slots__ = ("epoch", "metadata_hash")
    API_KEY = 3
    FIELDS: ClassVar = (
        Field(name="epoch", kind="int32"),
        Field(name="metadata_hash", kind="int64", tag=0),
    )

    def __init__(self, *, epoch: int = 0, metadata_hash: int = 0) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash


class ConsumerGroupPartitionMetadataKey(GroupKey):
    __slots__ = ()
    API_KEY = 4


class PartitionMetadata(Message):
    __slots__ = ("partition", "racks")
    FIELDS: ClassVar = (
        Field(name="partition", kind="int32"),
        Field(name="racks", kind="string", array=True),
    )

    def __init__(self, *, partition: int = 0, racks: Sequence[str] = ()) -> None:
        self.partition = partition
        self.racks = racks


class TopicMetadata(Message):
    __slots__ = ("num_partitions", "partition_metadata", "topic_id", "topic_name")
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid"),
        Field(name="topic_name", kind="string"),
        Field(name="num_partitions", kind="int32"),
        Field(name="partition_metadata", kind=PartitionMetadata, array=True),
    )

    def __init__(
        self,
        *,
        topic_id: uuid.UUID = ZERO_UUID,
        topic_name: str = "",
        num_partitions: int = 0,
        partition_metadata: Sequence[PartitionMetadata] = (),
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.num_partitions = num_partitions
        self.partition_metadata = partition_metadata


class ConsumerGroupPartitionMetadataValue(RecordValue):
    __slots__ = ("topics",)
    API_KEY = 4
    FIELDS: ClassVar = (Field(name="topics", kind=TopicMetadata, array=True),)

    def __init__(self, *, topics: Sequence[TopicMetadata] = ()) -> None:
        self.topics = topics


class ConsumerGroupMemberMetadataKey(MemberKey):
    __slots__ = ()
    API_KEY = 5


class ClassicProtocol(Message):
    __slots__ = ("metadata", "name")
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="metadata", kind="bytes"),
    )

    def __init__(self, *, name: str = "", metadata: bytes = b"") -> None:
        self.name = name
        self.metadata = metadata


class ClassicMemberMetadata(Message):
    __slots__ = ("session_timeout_ms", "supported_protocols")
    FIELDS: ClassVar = (
        Field(name="session_timeout_ms", kind="int32"),
        Field(name="supported_protocols", kind=ClassicProtocol, array=True),
    )

    def __init__(self, *, session_timeout_ms: int = 0, supported_protocols: Sequence[ClassicProtocol] = ()) -> None:
        self.session_timeout_ms = session_timeout_ms
        self.supported_protocols = supported_protocols


_ABSENT: Final = ClassicMemberMetadata()
"""What Kafka takes an absent field for; that a member is of the consumer protocol is written as an explicit null."""


class ConsumerGroupMemberMetadataValue(RecordValue):
    __slots__ = (
        "classic_member_metadata",
        "client_host",
        "client_id",
        "instance_id",
        "rack_id",
        "rebalance_timeout_ms",
        "server_assignor",
        "subscribed_topic_names",
        "subscribed_topic_regex",
    )
    API_KEY = 5
    FIELDS: ClassVar = (
        Field(name="instance_id", kind="string", null_since=0),
        Field(name="rack_id", kind="string", null_since=0),
        Field(name="client_id", kind="string"),
        Field(name="client_host", kind="string"),
        Field(name="subscribed_topic_names", kind="string", array=True),
        Field(name="subscribed_topic_regex", kind="string", null_since=0),
        Field(name="rebalance_timeout_ms", kind="int32"),
        Field(name="server_assignor", kind="string", null_since=0),
        Field(name="classic_member_metadata", kind=ClassicMemberMetadata, null_since=0, tag=0),
    )

    def __init__(
        self,
        *,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: Sequence[str] = (),
        subscribed_topic_regex: str | None = None,
        rebalance_timeout_ms: int = -1,
        server_assignor: str | None = None,
        classic_member_metadata: ClassicMemberMetadata | None = _ABSENT,
    ) -> None:
        self.instance_id = instance_id
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = subscribed_topic_names
        self.subscribed_topic_regex = subscribed_topic_regex
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.server_assignor = server_assignor
        self.classic_member_metadata = classic_member_metadata


class ConsumerGroupTargetAssignmentMetadataKey(GroupKey):
    __slots__ = ()
    API_KEY = 6


class ConsumerGroupTargetAssignmentMetadataValue(TargetAssignmentMetadataValue):
    __slots__ = ()
    API_KEY = 6


class ConsumerGroupTargetAssignmentMemberKey(MemberKey):
    __slots__ = ()
    API_KEY = 7


class ConsumerGroupTargetAssignmentMemberValue(TargetAssignmentMemberValue):
    __slots__ = ()
    API_KEY = 7


class ConsumerGroupCurrentMemberAssignmentKey(MemberKey):
    __slots__ = ()
    API_KEY = 8


class TopicPartitions(Message):
    __slots__ = ("assignment_epochs", "partitions", "topic_id")
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid"),
        Field(name="partitions", kind="int32", array=True),
        Field(name="assignment_epochs", kind="int32", array=True, null_since=0, tag=0),
    )

    def __init__(
        self,
        *,
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: Sequence[int] = (),
        assignment_epochs: Sequence[int] | None = (),
    ) -> None:
        self.topic_id = topic_id
        self.partitions = partitions
        self.assignment_epochs = assignment_epochs


class ConsumerGroupCurrentMemberAssignmentValue(RecordValue):
    __slots__ = (
        "assigned_partitions",
        "member_epoch",
        "partitions_pending_revocation",
        "previous_member_epoch",
        "state",
    )
    API_KEY = 8
    FIELDS: ClassVar = (
        Field(name="member_epoch", kind="int32"),
        Field(name="previous_member_epoch", kind="int32"),
        Field(name="state", kind="int8"),
        Field(name="assigned_partitions", kind=TopicPartitions, array=True),
        Field(name="partitions_pending_revocation", kind=TopicPartitions, array=True),
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: Sequence[TopicPartitions] = (),
        partitions_pending_revocation: Sequence[TopicPartitions] = (),
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = assigned_partitions
        self.partitions_pending_revocation = partitions_pending_revocation


class ConsumerGroupRegularExpressionKey(RecordKey):
    __slots__ = ("group_id", "regular_expression")
    API_KEY = 16
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="regular_expression", kind="string"),
    )

    def __init__(self, *, group_id: str = "", regular_expression: str = "") -> None:
        self.group_id = group_id
        self.regular_expression = regular_expression


class ConsumerGroupRegularExpressionValue(RecordValue):
    __slots__ = ("timestamp", "topics", "version")
    API_KEY = 16
    FIELDS: ClassVar = (
        Field(name="topics", kind="string", array=True),
        Field(name="version", kind="int64"),
        Field(name="timestamp", kind="int64"),
    )

    def __init__(self, *, topics: Sequence[str] = (), version: int = 0, timestamp: int = 0) -> None:
        self.topics = topics
        self.version = version
        self.timestamp = timestamp


RECORDS: Final[RecordTypes] = {
    ConsumerGroupMetadataKey.API_KEY: (ConsumerGroupMetadataKey, ConsumerGroupMetadataValue),
    ConsumerGroupPartitionMetadataKey.API_KEY: (ConsumerGroupPartitionMetadataKey, ConsumerGroupPartitionMetadataValue),
    ConsumerGroupMemberMetadataKey.API_KEY: (ConsumerGroupMemberMetadataKey, ConsumerGroupMemberMetadataValue),
    ConsumerGroupTargetAssignmentMetadataKey.API_KEY: (
        ConsumerGroupTargetAssignmentMetadataKey,
        ConsumerGroupTargetAssignmentMetadataValue,
    ),
    ConsumerGroupTargetAssignmentMemberKey.API_KEY: (
        ConsumerGroupTargetAssignmentMemberKey,
        ConsumerGroupTargetAssignmentMemberValue,
    ),
    ConsumerGroupCurrentMemberAssignmentKey.API_KEY: (
        ConsumerGroupCurrentMemberAssignmentKey,
        ConsumerGroupCurrentMemberAssignmentValue,
    ),
    ConsumerGroupRegularExpressionKey.API_KEY: (ConsumerGroupRegularExpressionKey, ConsumerGroupRegularExpressionValue),
}
"""What is in the log, by the type number its keys begin with."""
