# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "ListPartitionReassignmentsRequest",
    "ListPartitionReassignmentsResponse",
    "ListPartitionReassignmentsTopics",
    "OngoingPartitionReassignment",
    "OngoingTopicReassignment",
]


class ListPartitionReassignmentsTopics(Message):
    __slots__ = (
        "name",
        "partition_indexes",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partition_indexes", kind="int32", array=True),
    )

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name = name
        self.partition_indexes = partition_indexes


class ListPartitionReassignmentsRequest(Request):
    __slots__ = (
        "timeout_ms",
        "topics",
    )
    API_KEY = 46
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="timeout_ms", kind="int32"),
        Field(name="topics", kind=ListPartitionReassignmentsTopics, array=True, null_since=0),
    )

    def __init__(
        self, *, timeout_ms: int = 60000, topics: Sequence[ListPartitionReassignmentsTopics] | None = ()
    ) -> None:
        self.timeout_ms = timeout_ms
        self.topics = topics


class OngoingPartitionReassignment(Message):
    __slots__ = (
        "partition_index",
        "replicas",
        "adding_replicas",
        "removing_replicas",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32"),
        Field(name="replicas", kind="int32", array=True),
        Field(name="adding_replicas", kind="int32", array=True),
        Field(name="removing_replicas", kind="int32", array=True),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        replicas: Sequence[int] = (),
        adding_replicas: Sequence[int] = (),
        removing_replicas: Sequence[int] = (),
    ) -> None:
        self.partition_index = partition_index
        self.replicas = replicas
        self.adding_replicas = adding_replicas
        self.removing_replicas = removing_replicas


class OngoingTopicReassignment(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind=OngoingPartitionReassignment, array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[OngoingPartitionReassignment] = ()) -> None:
        self.name = name
        self.partitions = partitions


class ListPartitionReassignmentsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "topics",
    )
    API_KEY = 46
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="topics", kind=OngoingTopicReassignment, array=True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        topics: Sequence[OngoingTopicReassignment] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.topics = topics
