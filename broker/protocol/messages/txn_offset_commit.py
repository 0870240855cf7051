# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "TxnOffsetCommitRequest",
    "TxnOffsetCommitRequestPartition",
    "TxnOffsetCommitRequestTopic",
    "TxnOffsetCommitResponse",
    "TxnOffsetCommitResponsePartition",
    "TxnOffsetCommitResponseTopic",
]


class TxnOffsetCommitRequestPartition(Message):
    __slots__ = (
        "partition_index",
        "committed_offset",
        "committed_leader_epoch",
        "committed_metadata",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32"),
        Field(name="committed_offset", kind="int64"),
        Field(name="committed_leader_epoch", kind="int32", since=2),
        Field(name="committed_metadata", kind="string", null_since=0),
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


class TxnOffsetCommitRequestTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind=TxnOffsetCommitRequestPartition, array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[TxnOffsetCommitRequestPartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class TxnOffsetCommitRequest(Request):
    __slots__ = (
        "transactional_id",
        "group_id",
        "producer_id",
        "producer_epoch",
        "generation_id",
        "member_id",
        "group_instance_id",
        "topics",
    )
    API_KEY = 28
    FLEXIBLE_SINCE = 3
    FIELDS: ClassVar = (
        Field(name="transactional_id", kind="string"),
        Field(name="group_id", kind="string"),
        Field(name="producer_id", kind="int64"),
        Field(name="producer_epoch", kind="int16"),
        Field(name="generation_id", kind="int32", since=3),
        Field(name="member_id", kind="string", since=3),
        Field(name="group_instance_id", kind="string", since=3, null_since=3),
        Field(name="topics", kind=TxnOffsetCommitRequestTopic, array=True),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        group_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        generation_id: int = -1,
        member_id: str = "",
        group_instance_id: str | None = None,
        topics: Sequence[TxnOffsetCommitRequestTopic] = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.group_id = group_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.generation_id = generation_id
        self.member_id = member_id
        self.group_instance_id = group_instance_id
        self.topics = topics


class TxnOffsetCommitResponsePartition(Message):
    __slots__ = (
        "partition_index",
        "error_code",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32"),
        Field(name="error_code", kind="int16"),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class TxnOffsetCommitResponseTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind=TxnOffsetCommitResponsePartition, array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[TxnOffsetCommitResponsePartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class TxnOffsetCommitResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 28
    FLEXIBLE_SINCE = 3
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="topics", kind=TxnOffsetCommitResponseTopic, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[TxnOffsetCommitResponseTopic] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics
