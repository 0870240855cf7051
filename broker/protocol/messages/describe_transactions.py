# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["DescribeTransactionsRequest", "DescribeTransactionsResponse", "TopicData", "TransactionState"]


class DescribeTransactionsRequest(Request):
    __slots__ = ("transactional_ids",)
    API_KEY = 65
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (Field(name="transactional_ids", kind="string", array=True),)

    def __init__(self, *, transactional_ids: Sequence[str] = ()) -> None:
        self.transactional_ids = transactional_ids


class TopicData(Message):
    __slots__ = (
        "topic",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="topic", kind="string"),
        Field(name="partitions", kind="int32", array=True),
    )

    def __init__(self, *, topic: str = "", partitions: Sequence[int] = ()) -> None:
        self.topic = topic
        self.partitions = partitions


class TransactionState(Message):
    __slots__ = (
        "error_code",
        "transactional_id",
        "transaction_state",
        "transaction_timeout_ms",
        "transaction_start_time_ms",
        "producer_id",
        "producer_epoch",
        "topics",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="transactional_id", kind="string"),
        Field(name="transaction_state", kind="string"),
        Field(name="transaction_timeout_ms", kind="int32"),
        Field(name="transaction_start_time_ms", kind="int64"),
        Field(name="producer_id", kind="int64"),
        Field(name="producer_epoch", kind="int16"),
        Field(name="topics", kind=TopicData, array=True),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: Sequence[TopicData] = (),
    ) -> None:
        self.error_code = error_code
        self.transactional_id = transactional_id
        self.transaction_state = transaction_state
        self.transaction_timeout_ms = transaction_timeout_ms
        self.transaction_start_time_ms = transaction_start_time_ms
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.topics = topics


class DescribeTransactionsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "transaction_states",
    )
    API_KEY = 65
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="transaction_states", kind=TransactionState, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, transaction_states: Sequence[TransactionState] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.transaction_states = transaction_states
