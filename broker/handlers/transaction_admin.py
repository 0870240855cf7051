"""Transactions for administrators: list, describe, and end hanging ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from broker.api.parts import Common, WithMarkers, WithTransactions
from broker.api.routes import Context, Pending, Routes
from broker.coordinator.committed_offset import TopicPartition
from broker.errors import BrokerError, InvalidRegularExpression
from broker.log.partition import PartitionLog
from broker.protocol.api import ApiKey
from broker.protocol.messages import describe_transactions as described
from broker.protocol.messages import list_transactions as listed
from broker.protocol.messages.describe_transactions import DescribeTransactionsRequest, DescribeTransactionsResponse
from broker.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from broker.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from broker.security.access import Operation, ResourceType
from broker.storage.durability import Flushed
from broker.transactions import Marker, Producer, TransactionState
from tidegate.kit.linear_regex import PatternError, compiled

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithMarkers, WithTransactions, Protocol):
    """The parts of a broker that these handlers use."""


@routes.handles(ApiKey.DESCRIBE_TRANSACTIONS, versions=range(1))
def describe_transactions(
    context: Context[_Parts], request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe transactional ids with their producers, and the partitions of their transactions."""
    return DescribeTransactionsResponse(
        transaction_states=[_describe(context, transactional_id) for transactional_id in request.transactional_ids]
    )


def _describe(context: Context[_Parts], transactional_id: str) -> described.TransactionState:
    try:
        context.require(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, transactional_id)
        transaction = context.broker.transactions.describe(transactional_id).transaction
    except BrokerError as error:
        return described.TransactionState(error_code=error.code, transactional_id=transactional_id)
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(transaction.partitions):
        if context.allows(Operation.DESCRIBE, ResourceType.TOPIC, topic):
            topics.setdefault(topic, []).append(partition)
    return described.TransactionState(
        transactional_id=transactional_id,
        transaction_state=transaction.state.title,
        transaction_timeout_ms=transaction.timeout_ms,
        transaction_start_time_ms=transaction.started_ms,
        producer_id=transaction.producer_id,
        producer_epoch=transaction.epoch,
        topics=[described.TopicData(topic=name, partitions=partitions) for name, partitions in topics.items()],
    )


@routes.handles(ApiKey.LIST_TRANSACTIONS, versions=range(3))
def list_transactions(context: Context[_Parts], request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List transactional ids, by state, producer, duration, or a pattern of the id.

    v1 duration (KIP-994) · v2 pattern in RE2 syntax (KIP-1152)
    """
    matches = _matcher(request.transactional_id_pattern)
    known = {state.title: state for state in TransactionState}
    states = [known[name] for name in request.state_filters if name in known]
    listed_transactions = context.broker.transactions.list_transactions(
        states=states if request.state_filters else None,
        producer_ids=request.producer_id_filters,
        longer_than_ms=request.duration_filter,
        matches=matches,
    )
    return ListTransactionsResponse(
        unknown_state_filters=[name for name in request.state_filters if name not in known],
        transaction_states=[
            listed.TransactionState(
                transactional_id=listed_transaction.transactional_id,
                producer_id=listed_transaction.producer_id,
                transaction_state=listed_transaction.state.title,
            )
            for listed_transaction in listed_transactions
            if context.allows(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, listed_transaction.transactional_id)
        ],
    )


def _matcher(pattern: str | None) -> Callable[[str], bool]:
    if not pattern:
        return lambda _: True
    try:
        expression = compiled(pattern)
    except PatternError as error:
        raise InvalidRegularExpression(f"{pattern!r} is not a regular expression in RE2's syntax: {error}") from error
    return lambda text: expression.fullmatch(text) is not None


@routes.handles(ApiKey.WRITE_TXN_MARKERS, versions=range(1, 3))
def write_txn_markers(context: Context[_Parts], request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse | Pending:
    """End transactions in single partitions, without their coordinator: for administrators to abort hanging ones.

    v1 flexible · v2 transaction version (KIP-1228)
    """
    refusal = None
    if not context.allows(Operation.ALTER, ResourceType.CLUSTER, "kafka-cluster"):
        try:
            context.require(Operation.CLUSTER_ACTION, ResourceType.CLUSTER)
        except BrokerError as error:
            refusal = error
    results: list[tuple[int, TopicPartition, PartitionLog | BrokerError]] = []
    for txn_marker in request.markers:
        marker = Marker(
            Producer(txn_marker.producer_id, txn_marker.producer_epoch),
            commit=txn_marker.transaction_result,
            version=txn_marker.transaction_version,
            coordinator_epoch=txn_marker.coordinator_epoch,
        )
        for topic in txn_marker.topics:
            for index in topic.partition_indexes:
                where = topic.name, index
                if refusal is not None:
                    results.append((txn_marker.producer_id, where, refusal))
                    continue
                try:
                    results.append((txn_marker.producer_id, where, context.broker.markers.append(marker, *where)))
                except BrokerError as error:
                    results.append((txn_marker.producer_id, where, error))
    durable = context.broker.markers.durable(item for _, _, item in results if isinstance(item, PartitionLog))
    if durable is None:
        return _written(request, results, {})
    return Pending(durable, lambda flushed: _written(request, results, flushed))


def _written(
    request: WriteTxnMarkersRequest,
    results: list[tuple[int, TopicPartition, PartitionLog | BrokerError]],
    flushed: Flushed,
) -> WriteTxnMarkersResponse:
    """Results by producer, as in Kafka: markers of one producer share a result."""
    producers: dict[int, dict[str, dict[int, int]]] = {marker.producer_id: {} for marker in request.markers}
    for producer_id, (topic, index), outcome in results:
        error = outcome if isinstance(outcome, BrokerError) else flushed.get(outcome)
        producers[producer_id].setdefault(topic, {})[index] = 0 if error is None else error.code
    return WriteTxnMarkersResponse(
        markers=[
            WritableTxnMarkerResult(
                producer_id=producer_id,
                topics=[
                    WritableTxnMarkerTopicResult(
                        name=topic,
                        partitions=[
                            WritableTxnMarkerPartitionResult(partition_index=index, error_code=code)
                            for index, code in codes.items()
                        ],
                    )
                    for topic, codes in topics.items()
                ],
            )
            for producer_id, topics in producers.items()
        ]
    )
