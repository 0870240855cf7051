"""Transactions for producers: add partitions and groups, commit and abort."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from broker.api.parts import Common, WithGroups, WithLogs, WithTransactions
from broker.api.routes import Context, Pending, Routes
from broker.coordinator.committed_offset import TopicPartition
from broker.coordinator.journal import OFFSETS_TOPIC
from broker.errors import (
    BrokerError,
    InvalidProducerEpoch,
    OperationNotAttempted,
    ProducerFenced,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from broker.protocol.api import ApiKey
from broker.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from broker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from broker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from broker.security.access import Operation, ResourceType
from broker.storage.partitions import INTERNAL_TOPICS
from broker.transactions import EPOCH_BUMP, Producer

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithGroups, WithLogs, WithTransactions, Protocol):
    """The parts of a broker that these handlers use."""


_BATCHED_SINCE: Final = 4
"""From this version on AddPartitionsToTxn comes from brokers, for several transactions at once."""
_FENCED_SINCE: Final = 2
"""The first versions whose clients know PRODUCER_FENCED."""
_EPOCH_BUMP_SINCE: Final = 5
"""From this version on EndTxn comes from clients with ``transaction.version`` 2."""

_Results = dict[TopicPartition, BrokerError | None]
_Answered = Callable[[int, _Results], None]


@routes.handles(ApiKey.ADD_PARTITIONS_TO_TXN, versions=range(6))
def add_partitions_to_txn(
    context: Context[_Parts], request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Pending:
    """Add partitions to a transaction, or with `verify_only` only check them; all of them or none.

    Clients with `transaction.version` 2 rely on Produce instead.

    v2 PRODUCER_FENCED · v3 flexible · v4 several transactions, for brokers · v5 TRANSACTION_ABORTABLE
    """
    if context.version >= _BATCHED_SINCE:
        context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
        transactions = list(request.transactions)
    else:
        transactions = [
            AddPartitionsToTxnTransaction(
                transactional_id=request.v3_and_below_transactional_id,
                producer_id=request.v3_and_below_producer_id,
                producer_epoch=request.v3_and_below_producer_epoch,
                topics=request.v3_and_below_topics,
            )
        ]
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    results: dict[int, _Results] = {}

    def answered(index: int, outcome: _Results) -> None:
        results[index] = outcome
        if len(results) == len(transactions) and not done.done():
            done.set_result(None)

    for index, transaction in enumerate(transactions):
        _add_partitions(context, transaction, index, answered)
    if not transactions:
        done.set_result(None)

    def response(_: None) -> AddPartitionsToTxnResponse:
        topics = [_topic_results(context, results[index]) for index in range(len(transactions))]
        if context.version < _BATCHED_SINCE:
            return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics[0])
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=topic)
                for transaction, topic in zip(transactions, topics, strict=True)
            ]
        )

    return Pending(done, response)


def _add_partitions(
    context: Context[_Parts], transaction: AddPartitionsToTxnTransaction, index: int, answered: _Answered
) -> None:
    partitions = [(topic.name, partition) for topic in transaction.topics for partition in topic.partitions]
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    coordinator = context.broker.transactions

    def all_alike(error: BrokerError | None) -> None:
        answered(index, dict.fromkeys(partitions, error))

    try:
        if context.version < _BATCHED_SINCE:
            context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id)
        refused = {where: error for where in partitions if (error := _refusal(context, where)) is not None}
        if refused:
            answered(index, {where: refused.get(where) or OperationNotAttempted() for where in partitions})
        elif transaction.verify_only:
            answered(index, coordinator.verify_partitions(transaction.transactional_id, producer, partitions))
        else:
            coordinator.add_partitions(transaction.transactional_id, producer, partitions, all_alike)
    except BrokerError as error:
        all_alike(error)


def _refusal(context: Context[_Parts], where: TopicPartition) -> BrokerError | None:
    """The error that keeps a partition out of a client's transaction, if any."""
    topic, partition = where
    if context.version < _BATCHED_SINCE and (
        topic in INTERNAL_TOPICS or not context.allows(Operation.WRITE, ResourceType.TOPIC, topic)
    ):
        return TopicAuthorizationFailed()
    return None if context.broker.logs.get(topic, partition) is not None else UnknownTopicOrPartition()


def _topic_results(
    context: Context[_Parts], results: Mapping[TopicPartition, BrokerError | None]
) -> list[AddPartitionsToTxnTopicResult]:
    topics: dict[str, list[AddPartitionsToTxnPartitionResult]] = {}
    for (topic, partition), error in results.items():
        topics.setdefault(topic, []).append(
            AddPartitionsToTxnPartitionResult(partition_index=partition, partition_error_code=_code(context, error))
        )
    return [
        AddPartitionsToTxnTopicResult(name=name, results_by_partition=partition_results)
        for name, partition_results in topics.items()
    ]


def _code(context: Context[_Parts], error: BrokerError | None) -> int:
    if error is None:
        return 0
    fenced = isinstance(error, ProducerFenced) and context.version < _FENCED_SINCE
    return InvalidProducerEpoch.code if fenced else error.code


@routes.handles(ApiKey.ADD_OFFSETS_TO_TXN, versions=range(5))
def add_offsets_to_txn(context: Context[_Parts], request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse | Pending:
    """Add a group's offsets to a transaction; TxnOffsetCommit then writes them.

    v2 PRODUCER_FENCED · v3 flexible · v4 TRANSACTION_ABORTABLE
    """
    context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    context.require(Operation.READ, ResourceType.GROUP, request.group_id)
    done: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def added(error: BrokerError | None) -> None:
        if not done.done():
            done.set_result(_code(context, error))

    context.broker.transactions.add_partitions(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        [(OFFSETS_TOPIC, context.broker.groups.partition(request.group_id))],
        added,
    )
    return Pending(done, lambda code: AddOffsetsToTxnResponse(error_code=code))


@routes.handles(ApiKey.END_TXN, versions=range(6))
def end_txn(context: Context[_Parts], request: EndTxnRequest) -> EndTxnResponse | Pending:
    """Commit or abort. The answer comes when the markers are on disk.

    v2 PRODUCER_FENCED · v3 flexible · v4 TRANSACTION_ABORTABLE · v5 raises the epoch (`transaction.version` 2, KIP-890)
    """
    context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    future = context.broker.transactions.end(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        commit=request.committed,
        version=EPOCH_BUMP if context.version >= _EPOCH_BUMP_SINCE else 0,
    )
    return Pending(
        future,
        lambda producer: EndTxnResponse(producer_id=producer.id, producer_epoch=producer.epoch),
        lambda error: EndTxnResponse(error_code=_code(context, error)),
    )
