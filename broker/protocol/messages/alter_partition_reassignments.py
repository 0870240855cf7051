# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "AlterPartitionReassignmentsRequest",
    "AlterPartitionReassignmentsResponse",
    "ReassignablePartition",
    "ReassignablePartitionResponse",
    "ReassignableTopic",
    "ReassignableTopicResponse",
]


class ReassignablePartition(Message):
    __slots__ = (
        "partition_index",
        "replicas",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32"),
        Field(name="replicas", kind="int32", array=True, null_since=0),
    )

    def __init__(self, *, partition_index: int = 0, replicas: Sequence[int] | None = None) -> None:
        self.partition_index = partition_index
        self.replicas = replicas


class ReassignableTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind=ReassignablePartition, array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[ReassignablePartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class AlterPartitionReassignmentsRequest(Request):
    __slots__ = (
        "timeout_ms",
        "allow_replication_factor_change",
        "topics",
    )
    API_KEY = 45
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="timeout_ms", kind="int32"),
        Field(name="allow_replication_factor_change", kind="bool", since=1),
        Field(name="topics", kind=ReassignableTopic, array=True),
    )

    def __init__(
        self,
        *,
        timeout_ms: int = 60000,
        allow_replication_factor_change: bool = True,
        topics: Sequence[ReassignableTopic] = (),
    ) -> None:
        self.timeout_ms = timeout_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.topics = topics


class ReassignablePartitionResponse(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


class ReassignableTopicResponse(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind=ReassignablePartitionResponse, array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[ReassignablePartitionResponse] = ()) -> None:
        self.name = name
        self.partitions = partitions


class AlterPartitionReassignmentsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "allow_replication_factor_change",
        "error_code",
        "error_message",
        "responses",
    )
    API_KEY = 45
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="allow_replication_factor_change", kind="bool", since=1),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="responses", kind=ReassignableTopicResponse, array=True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        allow_replication_factor_change: bool = True,
        error_code: int = 0,
        error_message: str | None = "",
        responses: Sequence[ReassignableTopicResponse] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.allow_replication_factor_change = allow_replication_factor_change
        self.error_code = error_code
        self.error_message = error_message
        self.responses = responses
