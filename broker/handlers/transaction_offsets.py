"""TxnOffsetCommit: offsets that are committed together with a transaction's records."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final, Protocol

from broker.api.parts import Common, WithGroups, WithLogs, WithSettings, WithTransactions
from broker.api.routes import Context, Pending, Routes
from broker.coordinator.committed_offset import CommittedOffset, TopicPartition
from broker.coordinator.journal import OFFSETS_TOPIC
from broker.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    InvalidGroupId,
    InvalidProducerEpoch,
    InvalidTxnState,
    ProducerFenced,
    TransactionAbortable,
    UnknownTopicOrPartition,
)
from broker.protocol.api import ApiKey
from broker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from broker.security.access import Operation, ResourceType
from broker.transactions import EPOCH_BUMP, Producer

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithGroups, WithLogs, WithSettings, WithTransactions, Protocol):
    """The parts of a broker that these handlers use."""


_ADDS_SINCE: Final = 5
"""From this version on (``transaction.version`` 2) clients need no AddOffsetsToTxn first."""
_ABORTABLE_SINCE: Final = 4
_LOADING_SINCE: Final = 2
"""Earlier clients may fail permanently on COORDINATOR_LOAD_IN_PROGRESS (KAFKA-7296)."""

_Results = Mapping[TopicPartition, BrokerError | None]


@routes.handles(ApiKey.TXN_OFFSET_COMMIT, versions=range(6))
def txn_offset_commit(context: Context[_Parts], request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse | Pending:
    """Commit a group's offsets within a transaction. They take effect when the transaction is committed.

    v2 leader epochs · v3 flexible, the member that commits (KIP-447) · v4 TRANSACTION_ABORTABLE · v5 joins the
    transaction without AddOffsetsToTxn (KIP-890)
    """
    try:
        context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
        context.require(Operation.READ, ResourceType.GROUP, request.group_id)
        if not request.group_id:
            raise InvalidGroupId("The group id is empty.")
    except BrokerError as error:
        return _response(context, request, dict.fromkeys(_named(request), error))
    refused: dict[TopicPartition, BrokerError | None] = {}
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for topic in request.topics:
        for partition in topic.partitions:
            where = (topic.name, partition.partition_index)
            try:
                context.require(Operation.READ, ResourceType.TOPIC, topic.name)
            except BrokerError as error:
                refused[where] = error
                continue
            if context.broker.logs.get(*where) is None:
                refused[where] = UnknownTopicOrPartition()
            else:
                offsets[where] = CommittedOffset(
                    partition.committed_offset, partition.committed_leader_epoch, partition.committed_metadata or ""
                )
    if not offsets:
        return _response(context, request, refused)
    return _Commit(context, request, offsets, refused).outcome()


class _Commit:
    """Offsets for a transaction. The group's partition has to be part of it before they are written."""

    __slots__ = ("_context", "_done", "_offsets", "_producer", "_refused", "_request")

    def __init__(
        self,
        context: Context[_Parts],
        request: TxnOffsetCommitRequest,
        offsets: dict[TopicPartition, CommittedOffset],
        refused: _Results,
    ) -> None:
        self._context = context
        self._request = request
        self._offsets = offsets
        self._refused = refused
        self._producer = Producer(request.producer_id, request.producer_epoch)
        self._done: asyncio.Future[_Results] = asyncio.get_running_loop().create_future()

    def outcome(self) -> Pending:
        self._admit()
        return Pending(self._done, lambda results: _response(self._context, self._request, results))

    def _admit(self) -> None:
        """Check that the group's partition is part of the transaction, or add it."""
        broker, request, producer = self._context.broker, self._request, self._producer
        partition = (OFFSETS_TOPIC, broker.groups.partition(request.group_id))
        log = broker.logs.get(*partition)
        if log is not None and log.producers.in_transaction(*producer):
            self._admitted(None)
        elif self._context.version >= _ADDS_SINCE:
            broker.transactions.add_partitions(
                request.transactional_id, producer, [partition], self._admitted, version=EPOCH_BUMP
            )
        elif not broker.settings.transaction_partition_verification:
            self._admitted(None)
        else:
            try:
                verified = broker.transactions.verify_partitions(request.transactional_id, producer, [partition])
                self._admitted(verified[partition])
            except BrokerError as error:
                self._admitted(error)

    def _admitted(self, error: BrokerError | None) -> None:
        if error is not None:
            self._finish(dict.fromkeys(self._offsets, _answer(self._context, error)))
            return
        self._context.broker.groups.commit_transaction_offsets(
            self._request.group_id,
            self._offsets,
            producer=self._producer,
            generation=self._request.generation_id,
            member_id=self._request.member_id,
            instance_id=self._request.group_instance_id,
        ).add_done_callback(self._written)

    def _written(self, written: asyncio.Future[dict[TopicPartition, BrokerError | None]]) -> None:
        if written.cancelled():
            self._done.cancel()
            return
        failure = written.exception()
        if isinstance(failure, BrokerError):
            self._finish(dict.fromkeys(self._offsets, failure))
        elif failure is None:
            self._finish(written.result())
        elif not self._done.done():
            self._done.set_exception(failure)

    def _finish(self, results: _Results) -> None:
        if not self._done.done():
            self._done.set_result({**results, **self._refused})


def _answer(context: Context[_Parts], error: BrokerError) -> BrokerError:
    """The coordinator's error in the terms of TxnOffsetCommit."""
    if isinstance(error, ProducerFenced):
        return InvalidProducerEpoch(error.message)
    if isinstance(error, TransactionAbortable) and context.version < _ABORTABLE_SINCE:
        return InvalidTxnState(error.message)
    return error


def _named(request: TxnOffsetCommitRequest) -> list[TopicPartition]:
    return [(topic.name, partition.partition_index) for topic in request.topics for partition in topic.partitions]


def _response(context: Context[_Parts], request: TxnOffsetCommitRequest, results: _Results) -> TxnOffsetCommitResponse:
    def code(where: TopicPartition) -> int:
        error = results[where]
        if isinstance(error, CoordinatorLoadInProgress) and context.version < _LOADING_SINCE:
            return CoordinatorNotAvailable.code
        return 0 if error is None else error.code

    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index,
                        error_code=code((topic.name, partition.partition_index)),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
