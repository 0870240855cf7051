# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "AddPartitionsToTxnPartitionResult",
    "AddPartitionsToTxnRequest",
    "AddPartitionsToTxnResponse",
    "AddPartitionsToTxnResult",
    "AddPartitionsToTxnTopic",
    "AddPartitionsToTxnTopicResult",
    "AddPartitionsToTxnTransaction",
]


class AddPartitionsToTxnTopic(Message):
    __slots__ = (
        "name",
        "partitions",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="partitions", kind="int32", array=True),
    )

    def __init__(self, *, name: str = "", partitions: Sequence[int] = ()) -> None:
        self.name = name
        self.partitions = partitions


class AddPartitionsToTxnPartitionResult(Message):
    __slots__ = (
        "partition_index",
        "partition_error_code",
    )
    FIELDS: ClassVar = (
        Field(name="partition_index", kind="int32"),
        Field(name="partition_error_code", kind="int16"),
    )

    def __init__(self, *, partition_index: int = 0, partition_error_code: int = 0) -> None:
        self.partition_index = partition_index
        self.partition_error_code = partition_error_code


class AddPartitionsToTxnTopicResult(Message):
    __slots__ = (
        "name",
        "results_by_partition",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="results_by_partition", kind=AddPartitionsToTxnPartitionResult, array=True),
    )

    def __init__(
        self, *, name: str = "", results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = ()
    ) -> None:
        self.name = name
        self.results_by_partition = results_by_partition


class AddPartitionsToTxnTransaction(Message):
    __slots__ = (
        "transactional_id",
        "producer_id",
        "producer_epoch",
        "verify_only",
        "topics",
    )
    FIELDS: ClassVar = (
        Field(name="transactional_id", kind="string", since=4),
        Field(name="producer_id", kind="int64", since=4),
        Field(name="producer_epoch", kind="int16", since=4),
        Field(name="verify_only", kind="bool", since=4),
        Field(name="topics", kind=AddPartitionsToTxnTopic, array=True, since=4),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: Sequence[AddPartitionsToTxnTopic] = (),
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.verify_only = verify_only
        self.topics = topics


class AddPartitionsToTxnRequest(Request):
    __slots__ = (
        "v3_and_below_transactional_id",
        "v3_and_below_producer_id",
        "v3_and_below_producer_epoch",
        "v3_and_below_topics",
        "transactions",
    )
    API_KEY = 24
    FLEXIBLE_SINCE = 3
    FIELDS: ClassVar = (
        Field(name="v3_and_below_transactional_id", kind="string", until=3),
        Field(name="v3_and_below_producer_id", kind="int64", until=3),
        Field(name="v3_and_below_producer_epoch", kind="int16", until=3),
        Field(name="v3_and_below_topics", kind=AddPartitionsToTxnTopic, array=True, until=3),
        Field(name="transactions", kind=AddPartitionsToTxnTransaction, array=True, since=4),
    )

    def __init__(
        self,
        *,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = (),
        transactions: Sequence[AddPartitionsToTxnTransaction] = (),
    ) -> None:
        self.v3_and_below_transactional_id = v3_and_below_transactional_id
        self.v3_and_below_producer_id = v3_and_below_producer_id
        self.v3_and_below_producer_epoch = v3_and_below_producer_epoch
        self.v3_and_below_topics = v3_and_below_topics
        self.transactions = transactions


class AddPartitionsToTxnResult(Message):
    __slots__ = (
        "transactional_id",
        "topic_results",
    )
    FIELDS: ClassVar = (
        Field(name="transactional_id", kind="string", since=4),
        Field(name="topic_results", kind=AddPartitionsToTxnTopicResult, array=True, since=4),
    )

    def __init__(
        self, *, transactional_id: str = "", topic_results: Sequence[AddPartitionsToTxnTopicResult] = ()
    ) -> None:
        self.transactional_id = transactional_id
        self.topic_results = topic_results


class AddPartitionsToTxnResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "results_by_topic_v3_and_below",
        "error_code",
        "results_by_transaction",
    )
    API_KEY = 24
    FLEXIBLE_SINCE = 3
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="results_by_topic_v3_and_below", kind=AddPartitionsToTxnTopicResult, array=True, until=3),
        Field(name="error_code", kind="int16", since=4),
        Field(name="results_by_transaction", kind=AddPartitionsToTxnResult, array=True, since=4),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = (),
        error_code: int = 0,
        results_by_transaction: Sequence[AddPartitionsToTxnResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results_by_topic_v3_and_below = results_by_topic_v3_and_below
        self.error_code = error_code
        self.results_by_transaction = results_by_transaction
