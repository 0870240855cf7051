# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "InitializeShareGroupStateRequest",
    "InitializeShareGroupStateResponse",
    "InitializeStateData",
    "InitializeStateResult",
    "PartitionData",
    "PartitionResult",
]


class PartitionData(Message):
    __slots__ = (
        "partition",
        "state_epoch",
        "start_offset",
    )
    FIELDS: ClassVar = (
        Field(name="partition", kind="int32"),
        Field(name="state_epoch", kind="int32"),
        Field(name="start_offset", kind="int64"),
    )

    def __init__(self, *, partition: int = 0, state_epoch: int = 0, start_offset: int = 0) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.start_offset = start_offset


class InitializeStateData(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid"),
        Field(name="partitions", kind=PartitionData, array=True),
    )

    def __init__(self, *, topic_id: uuid.UUID = ZERO_UUID, partitions: Sequence[PartitionData] = ()) -> None:
        self.topic_id = topic_id
        self.partitions = partitions


class InitializeShareGroupStateRequest(Request):
    __slots__ = (
        "group_id",
        "topics",
    )
    API_KEY = 83
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="topics", kind=InitializeStateData, array=True),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[InitializeStateData] = ()) -> None:
        self.group_id = group_id
        self.topics = topics


class PartitionResult(Message):
    __slots__ = (
        "partition",
        "error_code",
        "error_message",
    )
    FIELDS: ClassVar = (
        Field(name="partition", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
    )

    def __init__(self, *, partition: int = 0, error_code: int = 0, error_message: str | None = None) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message


class InitializeStateResult(Message):
    __slots__ = (
        "topic_id",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic_id", kind="uuid"),
        Field(name="partitions", kind=PartitionResult, array=True),
    )

    def __init__(self, *, topic_id: uuid.UUID = ZERO_UUID, partitions: Sequence[PartitionResult] = ()) -> None:
        self.topic_id = topic_id
        self.partitions = partitions


class InitializeShareGroupStateResponse(Response):
    __slots__ = ("results",)
    API_KEY = 83
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (Field(name="results", kind=InitializeStateResult, array=True),)

    def __init__(self, *, results: Sequence[InitializeStateResult] = ()) -> None:
        self.results = results
