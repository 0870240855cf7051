# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "DescribeProducersRequest",
    "DescribeProducersResponse",
    "PartitionResponse",
    "ProducerState",
    "TopicRequest",
    "TopicResponse",
]


class TopicRequest(Message):
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


class DescribeProducersRequest(Request):
    __slots__ = ("topics",)
    API_KEY = 61
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (Field(name="topics", kind=TopicRequest, array=True),)

    def __init__(self, *, topics: Sequence[TopicRequest] = ()) -> None:
        self.topics = topics


class ProducerState(Message):
    __slots__ = (
        "producer_id",
        "producer_epoch",
        "last_sequence",
        "last_timestamp",
        "coordinator_epoch",
        "current_txn_start_offset",
    )
    FIELDS: ClassVar = (
        Field(name="producer_id", kind="int64"),
        Field(name="producer_epoch", kind="int32"),
        Field(name="last_sequence", kind="int32"),
        Field(name="last_timestamp", kind="int64"),
        Field(name="coordinator_epoch", kind="int32"),
        Field(name="current_txn_start_offset", kind="int64"),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        last_sequence: int = -1,
        last_timestamp: int = -1,
        coordinator_epoch: int = 0,
        current_txn_start_offset: int = -1,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.last_sequence = last_sequence
        self.last_timestamp = last_timestamp
        self.coordinator_epoch = coordinator_epoch
        self.current_txn_start_offset = current_txn_start_offset


class PartitionResponse(Message):
    __slots__ = (
        "partition_index",
        "error_code",
        "error_message",
        "active_producers",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="active_producers", kind=ProducerState, array=True),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        active_producers: Sequence[ProducerState] = (),
    ) -> None:
        self.partition_index = partition_index
        self.error_code = error_code
        self.error_message = error_message
        self.active_producers = active_producers


class TopicResponse(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind=PartitionResponse, array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[PartitionResponse] = ()) -> None:
        self.name = name
        self.partitions = partitions


class DescribeProducersResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "topics",
    )
    API_KEY = 61
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="topics", kind=TopicResponse, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, topics: Sequence[TopicResponse] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.topics = topics
