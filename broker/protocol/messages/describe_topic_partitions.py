# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "Cursor",
    "DescribeTopicPartitionsRequest",
    "DescribeTopicPartitionsResponse",
    "DescribeTopicPartitionsResponsePartition",
    "DescribeTopicPartitionsResponseTopic",
    "ResponseCursor",
    "TopicRequest",
]


class TopicRequest(Message):
    __slots__ = ("name",)
    FIELDS: ClassVar = (Field(name="name", kind="string"),)

    def __init__(self, *, name: str = "") -> None:
        self.name = name


class Cursor(Message):
    __slots__ = (
        "topic_name",
        "partition_index",
    )
    FIELDS: ClassVar = (
        Field(name="topic_name", kind="string"),
        Field(name="partition_index", kind="int32"),
    )

    def __init__(self, *, topic_name: str = "", partition_index: int = 0) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsRequest(Request):
    __slots__ = (
        "topics",
        "response_partition_limit",
        "cursor",
    )
    API_KEY = 75
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="topics", kind=TopicRequest, array=True),
        Field(name="response_partition_limit", kind="int32"),
        Field(name="cursor", kind=Cursor, null_since=0),
    )

    def __init__(
        self, *, topics: Sequence[TopicRequest] = (), response_partition_limit: int = 2000, cursor: Cursor | None = None
    ) -> None:
        self.topics = topics
        self.response_partition_limit = response_partition_limit
        self.cursor = cursor


class DescribeTopicPartitionsResponsePartition(Message):
    __slots__ = (
        "error_code",
        "partition_index",
        "leader_id",
        "leader_epoch",
        "replica_nodes",
        "isr_nodes",
        "eligible_leader_replicas",
        "last_known_elr",
        "offline_replicas",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="partition_index", kind="int32"),
        Field(name="leader_id", kind="int32"),
        Field(name="leader_epoch", kind="int32"),
        Field(name="replica_nodes", kind="int32", array=True),
        Field(name="isr_nodes", kind="int32", array=True),
        Field(name="eligible_leader_replicas", kind="int32", array=True, null_since=0),
        Field(name="last_known_elr", kind="int32", array=True, null_since=0),
        Field(name="offline_replicas", kind="int32", array=True),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        partition_index: int = 0,
        leader_id: int = 0,
        leader_epoch: int = -1,
        replica_nodes: Sequence[int] = (),
        isr_nodes: Sequence[int] = (),
        eligible_leader_replicas: Sequence[int] | None = None,
        last_known_elr: Sequence[int] | None = None,
        offline_replicas: Sequence[int] = (),
    ) -> None:
        self.error_code = error_code
        self.partition_index = partition_index
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch
        self.replica_nodes = replica_nodes
        self.isr_nodes = isr_nodes
        self.eligible_leader_replicas = eligible_leader_replicas
        self.last_known_elr = last_known_elr
        self.offline_replicas = offline_replicas


class DescribeTopicPartitionsResponseTopic(Message):
    __slots__ = (
        "error_code",
        "name",
        "topic_id",
        "is_internal",
        "partitions",
        "topic_authorized_operations",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="name", kind="string", null_since=0),
        Field(name="topic_id", kind="uuid"),
        Field(name="is_internal", kind="bool"),
        Field(name="partitions", kind=DescribeTopicPartitionsResponsePartition, array=True),
        Field(name="topic_authorized_operations", kind="int32"),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        name: str | None = "",
        topic_id: uuid.UUID = ZERO_UUID,
        is_internal: bool = False,
        partitions: Sequence[DescribeTopicPartitionsResponsePartition] = (),
        topic_authorized_operations: int = -2147483648,
    ) -> None:
        self.error_code = error_code
        self.name = name
        self.topic_id = topic_id
        self.is_internal = is_internal
        self.partitions = partitions
        self.topic_authorized_operations = topic_authorized_operations


class ResponseCursor(Message):
    __slots__ = (
        "topic_name",
        "partition_index",
    )
    FIELDS: ClassVar = (
        Field(name="topic_name", kind="string"),
        Field(name="partition_index", kind="int32"),
    )

    def __init__(self, *, topic_name: str = "", partition_index: int = 0) -> None:
        self.topic_name = topic_name
        self.partition_index = partition_index


class DescribeTopicPartitionsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "topics",
        "next_cursor",
    )
    API_KEY = 75
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="topics", kind=DescribeTopicPartitionsResponseTopic, array=True),
        Field(name="next_cursor", kind=ResponseCursor, null_since=0),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        topics: Sequence[DescribeTopicPartitionsResponseTopic] = (),
        next_cursor: ResponseCursor | None = None,
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics
        self.next_cursor = next_cursor
