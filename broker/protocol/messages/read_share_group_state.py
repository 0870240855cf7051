# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "PartitionData",
    "PartitionResult",
    "ReadShareGroupStateRequest",
    "ReadShareGroupStateResponse",
    "ReadStateData",
    "ReadStateResult",
    "StateBatch",
]


class PartitionData(Message):
    __slots__ = (
        "partition",
        "leader_epoch",
    )
    FIELDS: ClassVar = (
        Field(name="partition", kind="int32"),
        Field(name="leader_epoch", kind="int32"),
    )

    def __init__(self, *, partition: int = 0, leader_epoch: int = 0) -> None:
        self.partition = partition
        self.leader_epoch = leader_epoch


class ReadStateData(Message):
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


class ReadShareGroupStateRequest(Request):
    __slots__ = (
        "group_id",
        "topics",
    )
    API_KEY = 84
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="topics", kind=ReadStateData, array=True),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[ReadStateData] = ()) -> None:
        self.group_id = group_id
        self.topics = topics


class StateBatch(Message):
    __slots__ = (
        "first_offset",
        "last_offset",
        "delivery_state",
        "delivery_count",
    )
    FIELDS: ClassVar = (
        Field(name="first_offset", kind="int64"),
        Field(name="last_offset", kind="int64"),
        Field(name="delivery_state", kind="int8"),
        Field(name="delivery_count", kind="int16"),
    )

    def __init__(
        self, *, first_offset: int = 0, last_offset: int = 0, delivery_state: int = 0, delivery_count: int = 0
    ) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.delivery_state = delivery_state
        self.delivery_count = delivery_count


class PartitionResult(Message):
    __slots__ = (
        "partition",
        "error_code",
        "error_message",
        "state_epoch",
        "start_offset",
        "state_batches",
    )
    FIELDS: ClassVar = (
        Field(name="partition", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="state_epoch", kind="int32"),
        Field(name="start_offset", kind="int64"),
        Field(name="state_batches", kind=StateBatch, array=True),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        state_epoch: int = 0,
        start_offset: int = 0,
        state_batches: Sequence[StateBatch] = (),
    ) -> None:
        self.partition = partition
        self.error_code = error_code
        self.error_message = error_message
        self.state_epoch = state_epoch
        self.start_offset = start_offset
        self.state_batches = state_batches


class ReadStateResult(Message):
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


class ReadShareGroupStateResponse(Response):
    __slots__ = ("results",)
    API_KEY = 84
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (Field(name="results", kind=ReadStateResult, array=True),)

    def __init__(self, *, results: Sequence[ReadStateResult] = ()) -> None:
        self.results = results
