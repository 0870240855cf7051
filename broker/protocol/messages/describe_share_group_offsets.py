# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "DescribeShareGroupOffsetsRequest",
    "DescribeShareGroupOffsetsRequestGroup",
    "DescribeShareGroupOffsetsRequestTopic",
    "DescribeShareGroupOffsetsResponse",
    "DescribeShareGroupOffsetsResponseGroup",
    "DescribeShareGroupOffsetsResponsePartition",
    "DescribeShareGroupOffsetsResponseTopic",
]


class DescribeShareGroupOffsetsRequestTopic(Message):
    __slots__ = (
        "topic_name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_name", kind="string"),
        Field(name="partitions", kind="int32", array=True),
    )

    def __init__(self, *, topic_name: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic_name = topic_name
        self.partitions = partitions


class DescribeShareGroupOffsetsRequestGroup(Message):
    __slots__ = (
        "group_id",
        "topics",
    )
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="topics", kind=DescribeShareGroupOffsetsRequestTopic, array=True, null_since=0),
    )

    def __init__(
        self, *, group_id: str = "", topics: Sequence[DescribeShareGroupOffsetsRequestTopic] | None = ()
    ) -> None:
        self.group_id = group_id
        self.topics = topics


class DescribeShareGroupOffsetsRequest(Request):
    __slots__ = ("groups",)
    API_KEY = 90
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (Field(name="groups", kind=DescribeShareGroupOffsetsRequestGroup, array=True),)

    def __init__(self, *, groups: Sequence[DescribeShareGroupOffsetsRequestGroup] = ()) -> None:
        self.groups = groups


class DescribeShareGroupOffsetsResponsePartition(Message):
    __slots__ = (
        "partition_index",
        "start_offset",
        "leader_epoch",
        "lag",
        "error_code",
        "error_message",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32"),
        Field(name="start_offset", kind="int64"),
        Field(name="leader_epoch", kind="int32"),
        Field(name="lag", kind="int64", since=1),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        start_offset: int = 0,
        leader_epoch: int = 0,
        lag: int = -1,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset
        self.leader_epoch = leader_epoch
        self.lag = lag
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponseTopic(Message):
    __slots__ = (
        "topic_name",
        "topic_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_name", kind="string"),
        Field(name="topic_id", kind="uuid"),
        Field(name="partitions", kind=DescribeShareGroupOffsetsResponsePartition, array=True),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: Sequence[DescribeShareGroupOffsetsResponsePartition] = (),
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = partitions


class DescribeShareGroupOffsetsResponseGroup(Message):
    __slots__ = (
        "group_id",
        "topics",
        "error_code",
        "error_message",
    )
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="topics", kind=DescribeShareGroupOffsetsResponseTopic, array=True),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        topics: Sequence[DescribeShareGroupOffsetsResponseTopic] = (),
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.group_id = group_id
        self.topics = topics
        self.error_code = error_code
        self.error_message = error_message


class DescribeShareGroupOffsetsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "groups",
    )
    API_KEY = 90
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="groups", kind=DescribeShareGroupOffsetsResponseGroup, array=True),
    )

    def __init__(
        self, *, throttle_time_ms: int = 0, groups: Sequence[DescribeShareGroupOffsetsResponseGroup] = ()
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.groups = groups
