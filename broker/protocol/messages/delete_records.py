# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "DeleteRecordsPartition",
    "DeleteRecordsPartitionResult",
    "DeleteRecordsRequest",
    "DeleteRecordsResponse",
    "DeleteRecordsTopic",
    "DeleteRecordsTopicResult",
]


class DeleteRecordsPartition(Message):
    __slots__ = (
        "partition_index",
        "offset",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32"),
        Field(name="offset", kind="int64"),
    )

    def __init__(self, *, partition_index: int = 0, offset: int = 0) -> None:
        self.partition_index = partition_index
        self.offset = offset


class DeleteRecordsTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind=DeleteRecordsPartition, array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[DeleteRecordsPartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class DeleteRecordsRequest(Request):
    __slots__ = (
        "topics",
        "timeout_ms",
    )
    API_KEY = 21
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="topics", kind=DeleteRecordsTopic, array=True),
        Field(name="timeout_ms", kind="int32"),
    )

    def __init__(self, *, topics: Sequence[DeleteRecordsTopic] = (), timeout_ms: int = 0) -> None:
        self.topics = topics
        self.timeout_ms = timeout_ms


class DeleteRecordsPartitionResult(Message):
    __slots__ = (
        "partition_index",
        "low_watermark",
        "error_code",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32"),
        Field(name="low_watermark", kind="int64"),
        Field(name="error_code", kind="int16"),
    )

    def __init__(self, *, partition_index: int = 0, low_watermark: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.low_watermark = low_watermark
        self.error_code = error_code


class DeleteRecordsTopicResult(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind=DeleteRecordsPartitionResult, array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[DeleteRecordsPartitionResult] = ()) -> None:
        self.name = name
        self.partitions = partitions


class DeleteRecordsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 21
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="topics", kind=DeleteRecordsTopicResult, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[DeleteRecordsTopicResult] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics
