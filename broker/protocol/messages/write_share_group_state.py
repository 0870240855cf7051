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
    "StateBatch",
    "WriteShareGroupStateRequest",
    "WriteShareGroupStateResponse",
    "WriteStateData",
    "WriteStateResult",
]


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


class PartitionData(Message):
    __slots__ = (
        "partition",
        "state_epoch",
        "leader_epoch",
        "start_offset",
        "delivery_complete_count",
        "state_batches",
    )
    FIELDS: ClassVar = (
        Field(name="partition", kind="int32"),
        Field(name="state_epoch", kind="int32"),
        Field(name="leader_epoch", kind="int32"),
        Field(name="start_offset", kind="int64"),
        Field(name="delivery_complete_count", kind="int32", since=1),
        Field(name="state_batches", kind=StateBatch, array=True),
    )

    def __init__(
        self,
        *,
        partition: int = 0,
        state_epoch: int = 0,
        leader_epoch: int = 0,
        start_offset: int = 0,
        delivery_complete_count: int = -1,
        state_batches: Sequence[StateBatch] = (),
    ) -> None:
        self.partition = partition
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch
        self.start_offset = start_offset
        self.delivery_complete_count = delivery_complete_count
        self.state_batches = state_batches


class WriteStateData(Message):
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


class WriteShareGroupStateRequest(Request):
    __slots__ = (
        "group_id",
        "topics",
    )
    API_KEY = 85
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="group_id", kind="string"),
        Field(name="topics", kind=WriteStateData, array=True),
    )

    def __init__(self, *, group_id: str = "", topics: Sequence[WriteStateData] = ()) -> None:
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


class WriteStateResult(Message):
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


class WriteShareGroupStateResponse(Response):
    __slots__ = ("results",)
    API_KEY = 85
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (Field(name="results", kind=WriteStateResult, array=True),)

    def __init__(self, *, results: Sequence[WriteStateResult] = ()) -> None:
        self.results = results
