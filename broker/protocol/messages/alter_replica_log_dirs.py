# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "AlterReplicaLogDir",
    "AlterReplicaLogDirPartitionResult",
    "AlterReplicaLogDirTopic",
    "AlterReplicaLogDirTopicResult",
    "AlterReplicaLogDirsRequest",
    "AlterReplicaLogDirsResponse",
]


class AlterReplicaLogDirTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=1),
        Field(name="partitions", kind="int32", array=True, since=1),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[int] = ()) -> None:
        self.name = name
        self.partitions = partitions


class AlterReplicaLogDir(Message):
    __slots__ = (
        "path",
        "topics",
    )
    FIELDS: ClassVar = (
        Field(name="path", kind="string", since=1),
        Field(name="topics", kind=AlterReplicaLogDirTopic, array=True, since=1),
    )

    def __init__(self, *, path: str = "", topics: Sequence[AlterReplicaLogDirTopic] = ()) -> None:
        self.path = path
        self.topics = topics


class AlterReplicaLogDirsRequest(Request):
    __slots__ = ("dirs",)
    API_KEY = 34
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (Field(name="dirs", kind=AlterReplicaLogDir, array=True, since=1),)

    def __init__(self, *, dirs: Sequence[AlterReplicaLogDir] = ()) -> None:
        self.dirs = dirs


class AlterReplicaLogDirPartitionResult(Message):
    __slots__ = (
        "partition_index",
        "error_code",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32", since=1),
        Field(name="error_code", kind="int16", since=1),
    )

    def __init__(self, *, partition_index: int = 0, error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.error_code = error_code


class AlterReplicaLogDirTopicResult(Message):
    __slots__ = (
        "topic_name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_name", kind="string", since=1),
        Field(name="partitions", kind=AlterReplicaLogDirPartitionResult, array=True, since=1),
    )

    def __init__(self, *, topic_name: str = "", partitions: Sequence[AlterReplicaLogDirPartitionResult] = ()) -> None:
        self.topic_name = topic_name
        self.partitions = partitions


class AlterReplicaLogDirsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    API_KEY = 34
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="results", kind=AlterReplicaLogDirTopicResult, array=True, since=1),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[AlterReplicaLogDirTopicResult] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results
