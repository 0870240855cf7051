# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "OffsetCommitRequest",
    "OffsetCommitRequestPartition",
    "OffsetCommitRequestTopic",
    "OffsetCommitResponse",
    "OffsetCommitResponsePartition",
    "OffsetCommitResponseTopic",
]


class OffsetCommitRequestPartition(Message):
    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "committed_metadata",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32", since=2),
        Field(name="committed_offset", kind="int64", since=2),
        Field(name="committed_leader_epoch", kind="int32", since=6),
        Field(name="committed_metadata", kind="string", since=2, null_since=2),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        committed_offset: int = 0,
        committed_leader_epoch: int = -1,
        committed_metadata: str | None = "",
    ) -> None:
        self.partition_index = partition_index
        self.committed_offset = committed_offset
        self.committed_leader_epoch = committed_leader_epoch
        self.committed_metadata = committed_metadata


class OffsetCommitRequestTopic(Message):
    __slots__ = (
        "name",
        "topic_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=2, until=9),
        Field(name="topic_id", kind="uuid", since=10),
        Field(name="partitions", kind=OffsetCommitRequestPartition, array=True, since=2),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: Sequence[OffsetCommitRequestPartition] = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class OffsetCommitRequest(Request):
    __slots__ = (
        "group_id",
        "generation_id_or_member_epoch",
        "member_id",
        "retention_time_ms",
        "group_instance_id",
        "topics",
    )
    API_KEY = 8
    FLEXIBLE_SINCE = 8
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string", since=2),
        Field(name="generation_id_or_member_epoch", kind="int32", since=2),
        Field(name="member_id", kind="string", since=2),
        Field(name="retention_time_ms", kind="int64", since=2, until=4),
        Field(name="group_instance_id", kind="string", since=7, null_since=7),
        Field(name="topics", kind=OffsetCommitRequestTopic, array=True, since=2),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        generation_id_or_member_epoch: int = -1,
        member_id: str = "",
        retention_time_ms: int = -1,
        group_instance_id: str | None = None,
        topics: Sequence[OffsetCommitRequestTopic] = (),
    ) -> None:
        self.group_id = group_id
        self.generation_id_or_member_epoch = generation_id_or_member_epoch
        self.member_id = member_id
        self.retention_time_ms = retention_time_ms
        self.group_instance_id = group_instance_id
        self.topics = topics


class OffsetCommitResponsePartition(Message):
    __slots__ = (
        "partition_index",
        "error_code",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32", since=2),
        Field(name="error_code", kind="int16", since=2),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class OffsetCommitResponseTopic(Message):
    __slots__ = (
        "name",
        "topic_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=2, until=9),
        Field(name="topic_id", kind="uuid", since=10),
        Field(name="partitions", kind=OffsetCommitResponsePartition, array=True, since=2),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: Sequence[OffsetCommitResponsePartition] = (),
    ) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions


class OffsetCommitResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 8
    FLEXIBLE_SINCE = 8
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=3),
        Field(name="topics", kind=OffsetCommitResponseTopic, array=True, since=2),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[OffsetCommitResponseTopic] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics
