"""Produce in a transaction: partitions have to be part of the transaction before records are appended (KIP-890).

For clients with ``transaction.version`` 2 Produce adds the partitions, which takes a write by the coordinator at each
partition's first batch. For other clients it only checks, so that late records of a producer don't stay in a partition
that never gets a marker.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Final, Protocol

from broker.api.later import Later
from broker.api.parts import Common, WithLogs, WithSettings, WithTransactions
from broker.api.routes import Context, Pending
from broker.coordinator.committed_offset import TopicPartition
from broker.errors import (
    BrokerError,
    ConcurrentTransactions,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    CorruptMessage,
    InvalidPidMapping,
    InvalidProducerEpoch,
    InvalidTxnState,
    NotCoordinator,
    NotEnoughReplicas,
    ProducerFenced,
    TransactionAbortable,
)
from broker.protocol.produce import ProduceRequest, ProduceResponse
from broker.protocol.records import NO_PRODUCER_ID, BatchHeader
from broker.security.access import Operation, ResourceType
from broker.storage.partitions import INTERNAL_TOPICS
from broker.transactions import EPOCH_BUMP, Producer

__all__ = ["Admission", "admitted"]


class _Parts(Common, WithLogs, WithSettings, WithTransactions, Protocol):
    """The parts of a broker that these handlers use."""


_ADDS_SINCE: Final = 12
_ABORTABLE_SINCE: Final = 11
_RETRIABLE: Final = (CoordinatorLoadInProgress, CoordinatorNotAvailable, NotCoordinator)

_NamedPartition = tuple[str | uuid.UUID, int]
"""A partition by the topic's name or id, as in the request."""
_Outcome = ProduceResponse | Pending | None


class Admission:
    """The partitions of a request that may be appended to, and the ``transaction.version`` of each."""

    __slots__ = ("_refused", "_version")

    def __init__(self, version: int) -> None:
        self._version = version
        self._refused: dict[_NamedPartition, BrokerError] = {}

    def refuse(self, partitions: Iterable[_NamedPartition], error: BrokerError) -> None:
        self._refused.update(dict.fromkeys(partitions, error))

    def version_for(self, topic: str | uuid.UUID, partition: int) -> int:
        """Raises the error if the partition may not be appended to."""
        error = self._refused.get((topic, partition))
        if error is not None:
            raise error
        return self._version


_Produce = Callable[[ProduceRequest, Admission], _Outcome]


def admitted(context: Context[_Parts], request: ProduceRequest, produce: _Produce) -> _Outcome:
    """``produce`` a transactional request once all its partitions are part of the transaction."""
    admission = Admission(EPOCH_BUMP if context.version >= _ADDS_SINCE else 0)
    transactional = list(_transactional(request))
    try:
        if transactional:
            context.require(Operation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id or "")
        producer, missing = _unknown(context, request, transactional)
    except BrokerError as error:
        admission.refuse((named for named, _ in transactional), error)
        return produce(request, admission)
    if missing and context.version >= _ADDS_SINCE:
        return _Addition(context, request, missing, admission, produce).outcome(producer)
    if missing and context.broker.settings.transaction_partition_verification:
        _verify(context, request, producer, missing, admission)
    return produce(request, admission)


def _transactional(request: ProduceRequest) -> Iterable[tuple[_NamedPartition, Producer]]:
    """The partitions that get transactional records, each with the producer.

    Malformed batches are left out; the log refuses them.
    """
    for topic, partitions in request.topics:
        for partition in partitions:
            try:
                header = BatchHeader.parse(partition.records)
            except CorruptMessage:
                continue
            if header.is_transactional and header.producer_id != NO_PRODUCER_ID:
                yield (topic, partition.partition), Producer(header.producer_id, header.producer_epoch)


def _unknown(
    context: Context[_Parts], request: ProduceRequest, transactional: list[tuple[_NamedPartition, Producer]]
) -> tuple[Producer, dict[TopicPartition, _NamedPartition]]:
    """The producer, and the partitions where it has no open transaction yet.

    All partitions are returned while a step of its transaction is being written: requests may be waiting for it, and
    later ones must not overtake them in any partition.
    """
    broker = context.broker
    busy = context.version >= _ADDS_SINCE and broker.transactions.is_busy(request.transactional_id or "")
    missing: dict[TopicPartition, _NamedPartition] = {}
    for named, producer in transactional:
        if producer != transactional[0][1]:
            raise InvalidPidMapping("The records of a transaction are from more than one producer.")
        topic, partition = named
        name = broker.topics.name_of(topic) if isinstance(topic, uuid.UUID) else topic
        log = None if name is None else broker.logs.get(name, partition)
        if log is None or name is None or name in INTERNAL_TOPICS:
            continue
        if log.producers.in_transaction(*producer) and not busy:
            continue
        if broker.authorizer is None or context.allows(Operation.WRITE, ResourceType.TOPIC, name):
            missing[name, partition] = named
    return transactional[0][1] if transactional else Producer(-1, -1), missing


def _verify(
    context: Context[_Parts],
    request: ProduceRequest,
    producer: Producer,
    missing: dict[TopicPartition, _NamedPartition],
    admission: Admission,
) -> None:
    try:
        result = context.broker.transactions.verify_partitions(request.transactional_id or "", producer, missing)
    except BrokerError as error:
        admission.refuse(missing.values(), _answer(context, error))
        return
    for where, refusal in result.items():
        if refusal is not None:
            admission.refuse([missing[where]], _answer(context, refusal))


class _Addition:
    """Adds partitions to a transaction, which may take a write by the coordinator; then carries out the request."""

    __slots__ = ("_admission", "_context", "_later", "_missing", "_produce", "_request", "_result")

    def __init__(
        self,
        context: Context[_Parts],
        request: ProduceRequest,
        missing: dict[TopicPartition, _NamedPartition],
        admission: Admission,
        produce: _Produce,
    ) -> None:
        self._context = context
        self._request = request
        self._missing = missing
        self._admission = admission
        self._produce = produce
        self._later: Later | None = None
        """For when the coordinator has to wait for the disk."""
        self._result: Callable[[], _Outcome] | None = None
        """For when it does not have to wait."""

    def outcome(self, producer: Producer) -> _Outcome:
        """Ask the coordinator, and produce at once or when it has the partitions on disk."""
        self._context.broker.transactions.add_partitions(
            self._request.transactional_id or "", producer, self._missing.keys(), self._added, version=EPOCH_BUMP
        )
        if self._result is not None:
            return self._result()
        self._request = self._request.copied()
        self._later = Later(self._context, answers=self._request.acks != 0)
        return self._later.outcome

    def _added(self, error: BrokerError | None) -> None:
        if error is not None:
            self._admission.refuse(self._missing.values(), _answer(self._context, error))
        if self._later is None:
            self._result = self._carry_out
        else:
            self._later.decide(self._carry_out)

    def _carry_out(self) -> _Outcome:
        return self._produce(self._request, self._admission)


def _answer(context: Context[_Parts], error: BrokerError) -> BrokerError:
    """The coordinator's error in the terms of Produce, which clients of the version know."""
    if isinstance(error, ProducerFenced):
        return InvalidProducerEpoch(error.message)
    if isinstance(error, TransactionAbortable) and context.version < _ABORTABLE_SINCE:
        return InvalidTxnState(error.message)
    if isinstance(error, ConcurrentTransactions) and context.version >= _ADDS_SINCE:
        return error
    if isinstance(error, (ConcurrentTransactions, *_RETRIABLE)):
        # Older producers may not know the error. On this one they retry, without looking for another leader.
        return NotEnoughReplicas(f"The transaction could not be looked up: {error.message}")
    return error
