# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "DescribableLogDirTopic",
    "DescribeLogDirsPartition",
    "DescribeLogDirsRequest",
    "DescribeLogDirsResponse",
    "DescribeLogDirsResult",
    "DescribeLogDirsTopic",
]


class DescribableLogDirTopic(Message):
    __slots__ = (
        "topic",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic", kind="string", since=1),
        Field(name="partitions", kind="int32", array=True, since=1),
    )

    def __init__(self, *, topic: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic = topic
        self.partitions = partitions


class DescribeLogDirsRequest(Request):
    __slots__ = ("topics",)
    API_KEY = 35
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (Field(name="topics", kind=DescribableLogDirTopic, array=True, since=1, null_since=1),)

    def __init__(self, *, topics: Sequence[DescribableLogDirTopic] | None = ()) -> None:
        self.topics = topics


class DescribeLogDirsPartition(Message):
    __slots__ = (
        "partition_index",
        "partition_size",
        "offset_lag",
        "is_future_key",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32", since=1),
        Field(name="partition_size", kind="int64", since=1),
        Field(name="offset_lag", kind="int64", since=1),
        Field(name="is_future_key", kind="bool", since=1),
    )

    def __init__(
        self, *, partition_index: int = 0, partition_size: int = 0, offset_lag: int = 0, is_future_key: bool = False
    ) -> None:
        self.partition_index = partition_index
        self.partition_size = partition_size
        self.offset_lag = offset_lag
        self.is_future_key = is_future_key


class DescribeLogDirsTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=1),
        Field(name="partitions", kind=DescribeLogDirsPartition, array=True, since=1),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[DescribeLogDirsPartition] = ()) -> None:
        self.name = name
        self.partitions = partitions


class DescribeLogDirsResult(Message):
    __slots__ = (
        "error_code",
        "log_dir",
        "topics",
        "total_bytes",
        "usable_bytes",
        "is_cordoned",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16", since=1),
        Field(name="log_dir", kind="string", since=1),
        Field(name="topics", kind=DescribeLogDirsTopic, array=True, since=1),
        Field(name="total_bytes", kind="int64", since=4),
        Field(name="usable_bytes", kind="int64", since=4),
        Field(name="is_cordoned", kind="bool", since=5),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        log_dir: str = "",
        topics: Sequence[DescribeLogDirsTopic] = (),
        total_bytes: int = -1,
        usable_bytes: int = -1,
        is_cordoned: bool = False,
    ) -> None:
        self.error_code = error_code
        self.log_dir = log_dir
        self.topics = topics
        self.total_bytes = total_bytes
        self.usable_bytes = usable_bytes
        self.is_cordoned = is_cordoned


class DescribeLogDirsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "results",
    )
    API_KEY = 35
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="error_code", kind="int16", since=3),
        Field(name="results", kind=DescribeLogDirsResult, array=True, since=1),
    )

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, results: Sequence[DescribeLogDirsResult] = ()
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.results = results
