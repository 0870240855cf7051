"""The records of share groups (KIP-932) in ``__consumer_offsets``: the definitions of Kafka's group coordinator."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar, Final

from broker.groups.modern.records import (
    GroupKey,
    MemberKey,
    RecordTypes,
    RecordValue,
    TargetAssignmentMemberValue,
    TargetAssignmentMetadataValue,
)
from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message

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


class ShareGroupMemberMetadataKey(MemberKey):
    __slots__ = ()
    API_KEY = 10


class ShareGroupMemberMetadataValue(RecordValue):
    __slots__ = ("client_host", "client_id", "rack_id", "subscribed_topic_names")
    API_KEY = 10
    FIELDS: ClassVar = (
        Field(name="rack_id", kind="string", null_since=0),
        Field(name="client_id", kind="string"),
        Field(name="client_host", kind="string"),
        Field(name="subscribed_topic_names", kind="string", array=True),
    )

    def __init__(
        self,
        *,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        subscribed_topic_names: Sequence[str] = (),
    ) -> None:
        self.rack_id = rack_id
        self.client_id = client_id
        self.client_host = client_host
        self.subscribed_topic_names = subscribed_topic_names


class ShareGroupMetadataKey(GroupKey):
    __slots__ = ()
    API_KEY = 11


class ShareGroupMetadataValue(RecordValue):
    __slots__ = ("epoch", "metadata_hash")
    API_KEY = 11
    FIELDS: ClassVar = (
        Field(name="epoch", kind="int32"),
        Field(name="metadata_hash", kind="int64"),
    )

    def __init__(self, *, epoch: int = 0, metadata_hash: int = 0) -> None:
        self.epoch = epoch
        self.metadata_hash = metadata_hash


class ShareGroupTargetAssignmentMetadataKey(GroupKey):
    __slots__ = ()
    API_KEY = 12


class ShareGroupTargetAssignmentMetadataValue(TargetAssignmentMetadataValue):
    __slots__ = ()
    API_KEY = 12


class ShareGroupTargetAssignmentMemberKey(MemberKey):
    __slots__ = ()
    API_KEY = 13


class ShareGroupTargetAssignmentMemberValue(TargetAssignmentMemberValue):
    __slots__ = ()
    API_KEY = 13


class ShareGroupCurrentMemberAssignmentKey(MemberKey):
    __slots__ = ()
    API_KEY = 14


class TopicPartitions(Message):
    __slots__ = ("partitions", "topic_id")
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid"),
        Field(name="partitions", kind="int32", array=True),
    )

    def __init__(self, *, topic_id: uuid.UUID = ZERO_UUID, partitions: Sequence[int] = ()) -> None:
        self.topic_id = topic_id
        self.partitions = partitions


class ShareGroupCurrentMemberAssignmentValue(RecordValue):
    __slots__ = ("assigned_partitions", "member_epoch", "previous_member_epoch", "state")
    API_KEY = 14
    FIELDS: ClassVar = (
        Field(name="member_epoch", kind="int32"),
        Field(name="previous_member_epoch", kind="int32"),
        Field(name="state", kind="int8"),
        Field(name="assigned_partitions", kind=TopicPartitions, array=True),
    )

    def __init__(
        self,
        *,
        member_epoch: int = 0,
        previous_member_epoch: int = 0,
        state: int = 0,
        assigned_partitions: Sequence[TopicPartitions] = (),
    ) -> None:
        self.member_epoch = member_epoch
        self.previous_member_epoch = previous_member_epoch
        self.state = state
        self.assigned_partitions = assigned_partitions


class ShareGroupStatePartitionMetadataKey(GroupKey):
    __slots__ = ()
    API_KEY = 15


class TopicPartitionsInfo(Message):
    __slots__ = ("partitions", "topic_id", "topic_name")
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid"),
        Field(name="topic_name", kind="string"),
        Field(name="partitions", kind="int32", array=True),
    )

    def __init__(
        self, *, topic_id: uuid.UUID = ZERO_UUID, topic_name: str = "", partitions: Sequence[int] = ()
    ) -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name
        self.partitions = partitions


class TopicInfo(Message):
    __slots__ = ("topic_id", "topic_name")
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid"),
        Field(name="topic_name", kind="string"),
    )

    def __init__(self, *, topic_id: uuid.UUID = ZERO_UUID, topic_name: str = "") -> None:
        self.topic_id = topic_id
        self.topic_name = topic_name


class ShareGroupStatePartitionMetadataValue(RecordValue):
    __slots__ = ("deleting_topics", "initialized_topics", "initializing_topics")
    API_KEY = 15
    FIELDS: ClassVar = (
        Field(name="initializing_topics", kind=TopicPartitionsInfo, array=True),
        Field(name="initialized_topics", kind=TopicPartitionsInfo, array=True),
        Field(name="deleting_topics", kind=TopicInfo, array=True),
    )

    def __init__(
        self,
        *,
        initializing_topics: Sequence[TopicPartitionsInfo] = (),
        initialized_topics: Sequence[TopicPartitionsInfo] = (),
        deleting_topics: Sequence[TopicInfo] = (),
    ) -> None:
        self.initializing_topics = initializing_topics
        self.initialized_topics = initialized_topics
        self.deleting_topics = deleting_topics


RECORDS: Final[RecordTypes] = {
    ShareGroupMemberMetadataKey.API_KEY: (ShareGroupMemberMetadataKey, ShareGroupMemberMetadataValue),
    ShareGroupMetadataKey.API_KEY: (ShareGroupMetadataKey, ShareGroupMetadataValue),
    ShareGroupTargetAssignmentMetadataKey.API_KEY: (
        ShareGroupTargetAssignmentMetadataKey,
        ShareGroupTargetAssignmentMetadataValue,
    ),
    ShareGroupTargetAssignmentMemberKey.API_KEY: (
        ShareGroupTargetAssignmentMemberKey,
        ShareGroupTargetAssignmentMemberValue,
    ),
    ShareGroupCurrentMemberAssignmentKey.API_KEY: (
        ShareGroupCurrentMemberAssignmentKey,
        ShareGroupCurrentMemberAssignmentValue,
    ),
    ShareGroupStatePartitionMetadataKey.API_KEY: (
        ShareGroupStatePartitionMetadataKey,
        ShareGroupStatePartitionMetadataValue,
    ),
}
"""What is in the log, by the type number its keys begin with."""
