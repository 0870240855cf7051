# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "WritableTxnMarker",
    "WritableTxnMarkerPartitionResult",
    "WritableTxnMarkerResult",
    "WritableTxnMarkerTopic",
    "WritableTxnMarkerTopicResult",
    "WriteTxnMarkersRequest",
    "WriteTxnMarkersResponse",
]


class WritableTxnMarkerTopic(Message):
    __slots__ = (
        "name",
        "partition_indexes",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=1),
        Field(name="partition_indexes", kind="int32", array=True, since=1),
    )

    def __init__(self, *, name: str = "", partition_indexes: Sequence[int] = ()) -> None:
        self.name = name
        self.partition_indexes = partition_indexes


class WritableTxnMarker(Message):
    __slots__ = (
        "producer_id",
        "producer_epoch",
        "transaction_result",
        "topics",
        "coordinator_epoch",
        "transaction_version",
    )
    FIELDS: ClassVar = (
        Field(name="producer_id", kind="int64", since=1),
        Field(name="producer_epoch", kind="int16", since=1),
        Field(name="transaction_result", kind="bool", since=1),
        Field(name="topics", kind=WritableTxnMarkerTopic, array=True, since=1),
        Field(name="coordinator_epoch", kind="int32", since=1),
        Field(name="transaction_version", kind="int8", since=2),
    )

    def __init__(
        self,
        *,
        producer_id: int = 0,
        producer_epoch: int = 0,
        transaction_result: bool = False,
        topics: Sequence[WritableTxnMarkerTopic] = (),
        coordinator_epoch: int = 0,
        transaction_version: int = 0,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.transaction_result = transaction_result
        self.topics = topics
        self.coordinator_epoch = coordinator_epoch
        self.transaction_version = transaction_version


class WriteTxnMarkersRequest(Request):
    __slots__ = ("markers",)
    API_KEY = 27
    FLEXIBLE_SINCE = 1
    FIELDS: ClassVar = (Field(name="markers", kind=WritableTxnMarker, array=True, since=1),)

    def __init__(self, *, markers: Sequence[WritableTxnMarker] = ()) -> None:
        self.markers = markers


class WritableTxnMarkerPartitionResult(Message):
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


class WritableTxnMarkerTopicResult(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=1),
        Field(name="partitions", kind=WritableTxnMarkerPartitionResult, array=True, since=1),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[WritableTxnMarkerPartitionResult] = ()) -> None:
        self.name = name
        self.partitions = partitions


class WritableTxnMarkerResult(Message):
    __slots__ = (
        "producer_id",
        "topics",
    )
    FIELDS: ClassVar = (
        Field(name="producer_id", kind="int64", since=1),
        Field(name="topics", kind=WritableTxnMarkerTopicResult, array=True, since=1),
    )

    def __init__(self, *, producer_id: int = 0, topics: Sequence[WritableTxnMarkerTopicResult] = ()) -> None:
        self.producer_id = producer_id
        self.topics = topics


class WriteTxnMarkersResponse(Response):
    __slots__ = ("markers",)
    API_KEY = 27
    FLEXIBLE_SINCE = 1
    FIELDS: ClassVar = (Field(name="markers", kind=WritableTxnMarkerResult, array=True, since=1),)

    def __init__(self, *, markers: Sequence[WritableTxnMarkerResult] = ()) -> None:
        self.markers = markers
