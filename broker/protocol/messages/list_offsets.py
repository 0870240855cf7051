# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "ListOffsetsPartition",
    "ListOffsetsPartitionResponse",
    "ListOffsetsRequest",
    "ListOffsetsResponse",
    "ListOffsetsTopic",
    "ListOffsetsTopicResponse",
]


class ListOffsetsPartition(Message):
    __slots__ = (
        "partition_index",
        "current_leader_epoch",
        "timestamp",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32", since=1),
        Field(name="current_leader_epoch", kind="int32", since=4),
        Field(name="timestamp", kind="int64", since=1),
    )

    def __init__(self, *, partition_index: int = 0, current_leader_epoch: int = -1, timestamp: int = 0) -> None:
        self.partition_index = partition_index
        self.current_leader_epoch = current_leader_epoch
        self.timestamp = timestamp


class ListOffsetsTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=1),
        Field(name="partitions", kind=ListOffsetsPartition, array=True, since=1),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[ListOffsetsPartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class ListOffsetsRequest(Request):
    __slots__ = (
        "replica_id",
        "isolation_level",
        "topics",
        "timeout_ms",
    )
    API_KEY = 2
    FLEXIBLE_SINCE = 6
    FIELDS: ClassVar = (
        Field(name="replica_id", kind="int32", since=1),
        Field(name="isolation_level", kind="int8", since=2),
        Field(name="topics", kind=ListOffsetsTopic, array=True, since=1),
        Field(name="timeout_ms", kind="int32", since=10),
    )

    def __init__(
        self,
        *,
        replica_id: int = 0,
        isolation_level: int = 0,
        topics: Sequence[ListOffsetsTopic] = (),
        timeout_ms: int = 0,
    ) -> None:
        self.replica_id = replica_id
        self.isolation_level = isolation_level
        self.topics = topics
        self.timeout_ms = timeout_ms


class ListOffsetsPartitionResponse(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "timestamp",
        "offset",
        "leader_epoch",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32", since=1),
        Field(name="error_code", kind="int16", since=1),
        Field(name="timestamp", kind="int64", since=1),
        Field(name="offset", kind="int64", since=1),
        Field(name="leader_epoch", kind="int32", since=4),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        timestamp: int = -1,
        offset: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.timestamp = timestamp
        self.offset = offset
        self.leader_epoch = leader_epoch


class ListOffsetsTopicResponse(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=1),
        Field(name="partitions", kind=ListOffsetsPartitionResponse, array=True, since=1),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[ListOffsetsPartitionResponse] = ()) -> None:
        self.name = name
        self.partitions = partitions


class ListOffsetsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 2
    FLEXIBLE_SINCE = 6
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=2),
        Field(name="topics", kind=ListOffsetsTopicResponse, array=True, since=1),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[ListOffsetsTopicResponse] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics
