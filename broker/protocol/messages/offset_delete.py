# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "OffsetDeleteRequest",
    "OffsetDeleteRequestPartition",
    "OffsetDeleteRequestTopic",
    "OffsetDeleteResponse",
    "OffsetDeleteResponsePartition",
    "OffsetDeleteResponseTopic",
]


class OffsetDeleteRequestPartition(Message):
    __slots__ = ("partition_index",)
    FIELDS: ClassVar = (Field(name="partition_index", kind="int32"),)

    def __init__(self, *, partition_index: int = 0) -> None:
        self.partition_index = partition_index


class OffsetDeleteRequestTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind=OffsetDeleteRequestPartition, array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[OffsetDeleteRequestPartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class OffsetDeleteRequest(Request):
    __slots__ = (
        "group_id",
        "topics",
    )
    API_KEY = 47
    FLEXIBLE_SINCE = 32768
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="topics", kind=OffsetDeleteRequestTopic, array=True),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[OffsetDeleteRequestTopic] = ()) -> None:
        self.group_id = group_id
        self.topics = topics


class OffsetDeleteResponsePartition(Message):
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


class OffsetDeleteResponseTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind=OffsetDeleteResponsePartition, array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[OffsetDeleteResponsePartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class OffsetDeleteResponse(Response):
    __slots__ = (
        "error_code",
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 47
    FLEXIBLE_SINCE = 32768
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="topics", kind=OffsetDeleteResponseTopic, array=True),
    )

    def __init__(
        self, *, error_code: int = 0, throttle_time_ms: int = 0, topics: Sequence[OffsetDeleteResponseTopic] = ()
    ) -> None:
        self.error_code = error_code
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics
