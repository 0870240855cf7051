# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "EpochEndOffset",
    "OffsetForLeaderEpochRequest",
    "OffsetForLeaderEpochResponse",
    "OffsetForLeaderPartition",
    "OffsetForLeaderTopic",
    "OffsetForLeaderTopicResult",
]


class OffsetForLeaderPartition(Message):
    __slots__ = (
        "partition",
        "current_leader_epoch",
        "leader_epoch",
    )
    FIELDS: ClassVar = (
        Field(name="partition", kind="int32", since=2),
        Field(name="current_leader_epoch", kind="int32", since=2),
        Field(name="leader_epoch", kind="int32", since=2),
    )

    def __init__(self, *, partition: int = 0, current_leader_epoch: int = -1, leader_epoch: int = 0) -> None:
        self.partition = partition
        self.current_leader_epoch = current_leader_epoch
        self.leader_epoch = leader_epoch


class OffsetForLeaderTopic(Message):
    __slots__ = (
        "topic",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic", kind="string", since=2),
        Field(name="partitions", kind=OffsetForLeaderPartition, array=True, since=2),
    )

    def __init__(self, *, topic: str = "", partitions: Sequence[OffsetForLeaderPartition] = ()) -> None:
        self.topic = topic
        self.partitions = partitions


class OffsetForLeaderEpochRequest(Request):
    __slots__ = (
        "replica_id",
        "topics",
    )
    API_KEY = 23
    FLEXIBLE_SINCE = 4
    FIELDS: ClassVar = (
        Field(name="replica_id", kind="int32", since=3),
        Field(name="topics", kind=OffsetForLeaderTopic, array=True, since=2),
    )

    def __init__(self, *, replica_id: int = -2, topics: Sequence[OffsetForLeaderTopic] = ()) -> None:
        self.replica_id = replica_id
        self.topics = topics


class EpochEndOffset(Message):
    __slots__ = (
        "error_code",
        "partition",
        "leader_epoch",
        "end_offset",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16", since=2),
        Field(name="partition", kind="int32", since=2),
        Field(name="leader_epoch", kind="int32", since=2),
        Field(name="end_offset", kind="int64", since=2),
    )

    def __init__(
        self, *, error_code: int = 0, partition: int = 0, leader_epoch: int = -1, end_offset: int = -1
    ) -> None:
        self.error_code = error_code
        self.partition = partition
        self.leader_epoch = leader_epoch
        self.end_offset = end_offset


class OffsetForLeaderTopicResult(Message):
    __slots__ = (
        "topic",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic", kind="string", since=2),
        Field(name="partitions", kind=EpochEndOffset, array=True, since=2),
    )

    def __init__(self, *, topic: str = "", partitions: Sequence[EpochEndOffset] = ()) -> None:
        self.topic = topic
        self.partitions = partitions


class OffsetForLeaderEpochResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 23
    FLEXIBLE_SINCE = 4
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=2),
        Field(name="topics", kind=OffsetForLeaderTopicResult, array=True, since=2),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[OffsetForLeaderTopicResult] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics
