# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "AlterShareGroupOffsetsRequest",
    "AlterShareGroupOffsetsRequestPartition",
    "AlterShareGroupOffsetsRequestTopic",
    "AlterShareGroupOffsetsResponse",
    "AlterShareGroupOffsetsResponsePartition",
    "AlterShareGroupOffsetsResponseTopic",
]


class AlterShareGroupOffsetsRequestPartition(Message):
    __slots__ = (
        "partition_index",
        "start_offset",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32"),
        Field(name="start_offset", kind="int64"),
    )

    def __init__(self, *, partition_index: int = 0, start_offset: int = 0) -> None:
        self.partition_index = partition_index
        self.start_offset = start_offset


class AlterShareGroupOffsetsRequestTopic(Message):
    __slots__ = (
        "topic_name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_name", kind="string"),
        Field(name="partitions", kind=AlterShareGroupOffsetsRequestPartition, array=True),
    )

    def __init__(
        self, *, topic_name: str = "", partitions: Sequence[AlterShareGroupOffsetsRequestPartition] = ()
    ) -> None:
        self.topic_name = topic_name
        self.partitions = partitions


class AlterShareGroupOffsetsRequest(Request):
    __slots__ = (
        "group_id",
        "topics",
    )
    API_KEY = 91
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="topics", kind=AlterShareGroupOffsetsRequestTopic, array=True),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[AlterShareGroupOffsetsRequestTopic] = ()) -> None:
        self.group_id = group_id
        self.topics = topics


class AlterShareGroupOffsetsResponsePartition(Message):
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

    def __init__(self, *, partition_index: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message


class AlterShareGroupOffsetsResponseTopic(Message):
    __slots__ = (
        "topic_name",
        "topic_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_name", kind="string"),
        Field(name="topic_id", kind="uuid"),
        Field(name="partitions", kind=AlterShareGroupOffsetsResponsePartition, array=True),
    )

    def __init__(
        self,
        *,
        topic_name: str = "",
        topic_id: uuid.UUID = ZERO_UUID,
        partitions: Sequence[AlterShareGroupOffsetsResponsePartition] = (),
    ) -> None:
        self.topic_name = topic_name
        self.topic_id = topic_id
        self.partitions = partitions


class AlterShareGroupOffsetsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "responses",
    )
    API_KEY = 91
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="responses", kind=AlterShareGroupOffsetsResponseTopic, array=True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        responses: Sequence[AlterShareGroupOffsetsResponseTopic] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.responses = responses
