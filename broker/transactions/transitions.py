"""The state machine of a transactional id: each step returns the next value to write, or raises the error for the
client.

No clock, no log. It has Kafka's rules for both versions of the protocol: in the first a producer keeps its epoch across
transactions; in the second (KIP-890) each end raises it, so that late requests can't enter the next transaction.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Final

from broker.coordinator.committed_offset import TopicPartition
from broker.errors import ConcurrentTransactions, InvalidPidMapping, InvalidTxnState, ProducerFenced
from broker.transactions.values import (
    EPOCH_BUMP,
    LAST_EPOCH,
    MAX_EPOCH,
    NO_EPOCH,
    NO_PRODUCER_ID,
    Producer,
    Transaction,
    TransactionState,
)

__all__ = ["added", "check_initialiser", "check_producer", "completed", "ended", "fenced", "initialised"]

NewProducerId = Callable[[], int]

_PREPARED: Final = {True: TransactionState.PREPARE_COMMIT, False: TransactionState.PREPARE_ABORT}
_COMPLETE: Final = {
    TransactionState.PREPARE_COMMIT: TransactionState.COMPLETE_COMMIT,
    TransactionState.PREPARE_ABORT: TransactionState.COMPLETE_ABORT,
}


# InitProducerId


def check_initialiser(transaction: Transaction, expected: Producer | None) -> None:
    """Whether a caller that claims the identity ``expected`` may be the producer now (KIP-360); raises ProducerFenced."""
    if expected is None or transaction.epoch == NO_EPOCH or expected.id == transaction.producer_id:
        return
    # A retry of a request that assigned a new producer id, because the old one's epochs were used up.
    if expected.id == transaction.previous_producer_id and expected.epoch >= LAST_EPOCH:
        return
    raise ProducerFenced(
        f"Producer {expected.id} with epoch {expected.epoch} is not the present one, {transaction.producer_id}."
    )


def initialised(
    transaction: Transaction, *, timeout_ms: int, expected: Producer | None, now_ms: int, new_producer_id: NewProducerId
) -> Transaction:
    """A producer starts or restarts, with a raised epoch, or a new id if the epochs are used up.

    The transactional id's last transaction must be over. Raises ProducerFenced, ConcurrentTransactions.
    """
    check_initialiser(transaction, expected)
    if transaction.state.is_prepared:
        raise ConcurrentTransactions("The last transaction is being ended.")
    fresh = replace(
        transaction,
        previous_producer_id=transaction.producer_id,
        timeout_ms=timeout_ms,
        state=TransactionState.EMPTY,
        partitions=frozenset(),
        updated_ms=now_ms,
        started_ms=-1,
    )
    if transaction.epochs_exhausted and (expected is None or expected.epoch == transaction.epoch):
        last = NO_EPOCH if expected is None else transaction.epoch
        return replace(fresh, producer_id=new_producer_id(), epoch=0, last_epoch=last)
    if expected is None:
        return replace(fresh, epoch=transaction.epoch + 1, last_epoch=NO_EPOCH)
    if transaction.epoch == NO_EPOCH or (expected.epoch == transaction.epoch and not transaction.epochs_exhausted):
        return replace(fresh, epoch=transaction.epoch + 1, last_epoch=transaction.epoch)
    if expected.epoch == transaction.last_epoch:
        return fresh  # a retry: the answer was lost
    raise ProducerFenced(f"Epoch {expected.epoch} is not the present one, {transaction.epoch}.")


def fenced(transaction: Transaction, *, now_ms: int, version: int, new_producer_id: NewProducerId) -> Transaction:
    """Abort an ongoing transaction and fence its producer: it timed out, or another instance starts.

    This may use the epoch one above the last that producers get. In the second version the id is then replaced; in the
    first, InitProducerId notices later.
    """
    if version >= EPOCH_BUMP:
        return _prepared(transaction, commit=False, now_ms=now_ms, new_producer_id=new_producer_id, empty=False)
    return replace(
        transaction,
        previous_producer_id=transaction.producer_id,
        epoch=min(transaction.epoch + 1, MAX_EPOCH),
        last_epoch=NO_EPOCH,
        state=TransactionState.PREPARE_ABORT,
        updated_ms=now_ms,
        client_version=0,
    )


# Within a transaction


def check_producer(transaction: Transaction, producer: Producer) -> None:
    """Raises InvalidPidMapping or ProducerFenced for anyone but the current producer."""
    if transaction.producer_id != producer.id:
        raise InvalidPidMapping(f"The producer id is {transaction.producer_id}, not {producer.id}.")
    if transaction.epoch != producer.epoch:
        raise ProducerFenced(f"The producer's epoch is {transaction.epoch}, not {producer.epoch}.")


def added(
    transaction: Transaction, producer: Producer, partitions: Collection[TopicPartition], *, now_ms: int, version: int
) -> Transaction | None:
    """The transaction with more partitions, begun if there was none; None if it has them all already."""
    check_producer(transaction, producer)
    if transaction.state.is_prepared:
        raise ConcurrentTransactions("The last transaction is being ended.")
    ongoing = transaction.state is TransactionState.ONGOING
    if ongoing and transaction.partitions.issuperset(partitions):
        return None
    return replace(
        transaction,
        previous_producer_id=transaction.producer_id,
        state=TransactionState.ONGOING,
        partitions=transaction.partitions.union(partitions),
        updated_ms=now_ms,
        started_ms=transaction.started_ms if ongoing else now_ms,
        client_version=version,
    )


# EndTxn


def ended(
    transaction: Transaction,
    producer: Producer,
    *,
    commit: bool,
    now_ms: int,
    version: int,
    new_producer_id: NewProducerId,
) -> Transaction | None:
    """The transaction with its outcome decided; None if the request repeats a completed one."""
    if version < EPOCH_BUMP:
        return _ended_in_the_first_version(transaction, producer, commit=commit, now_ms=now_ms)
    overflowed = (
        transaction.previous_producer_id == producer.id and producer.epoch == LAST_EPOCH and transaction.epoch == 0
    )
    bumped = transaction.epoch == producer.epoch + 1
    state = transaction.state
    if transaction.producer_id != producer.id and not overflowed:
        raise InvalidPidMapping(f"The producer id is {transaction.producer_id}, not {producer.id}.")
    current = producer.epoch == transaction.epoch
    if state.is_prepared:
        valid = bumped
    elif state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT):
        valid = current or bumped or overflowed
    else:
        valid = current
    if not valid:
        raise ProducerFenced(f"The producer's epoch is {transaction.epoch}, not {producer.epoch}.")
    if state is TransactionState.ONGOING:
        return _prepared(transaction, commit=commit, now_ms=now_ms, new_producer_id=new_producer_id, empty=False)
    if state.is_prepared or bumped or overflowed:
        _check_repeated(state, commit=commit)
        return None
    if commit:
        raise InvalidTxnState(f"There is nothing to commit: the state is {state.title}.")
    # A producer that does not know whether its transaction began may abort anyway, and gets its new epoch.
    return _prepared(transaction, commit=False, now_ms=now_ms, new_producer_id=new_producer_id, empty=True)


def _ended_in_the_first_version(
    transaction: Transaction, producer: Producer, *, commit: bool, now_ms: int
) -> Transaction | None:
    check_producer(transaction, producer)
    if transaction.state is not TransactionState.ONGOING:
        _check_repeated(transaction.state, commit=commit)
        return None
    return replace(
        transaction,
        previous_producer_id=transaction.producer_id,
        state=_PREPARED[commit],
        updated_ms=now_ms,
        client_version=0,
    )


def _check_repeated(state: TransactionState, *, commit: bool) -> None:
    outcome = _PREPARED[commit]
    if state is outcome:
        raise ConcurrentTransactions("The transaction is being ended.")
    if state is not _COMPLETE[outcome]:
        raise InvalidTxnState(f"It cannot be {'committed' if commit else 'aborted'}: the state is {state.title}.")


def _prepared(
    transaction: Transaction, *, commit: bool, now_ms: int, new_producer_id: NewProducerId, empty: bool
) -> Transaction:
    return replace(
        transaction,
        previous_producer_id=transaction.producer_id,
        next_producer_id=new_producer_id() if transaction.epochs_exhausted else NO_PRODUCER_ID,
        epoch=min(transaction.epoch + 1, MAX_EPOCH),
        last_epoch=transaction.epoch,
        state=_PREPARED[commit],
        updated_ms=now_ms,
        started_ms=now_ms if empty else transaction.started_ms,
        client_version=EPOCH_BUMP,
    )


def completed(transaction: Transaction, *, now_ms: int) -> Transaction:
    """The transaction after its markers, with the new producer id, if any."""
    over = replace(
        transaction,
        previous_producer_id=transaction.producer_id,
        next_producer_id=NO_PRODUCER_ID,
        state=_COMPLETE[transaction.state],
        partitions=frozenset(),
        updated_ms=now_ms,
    )
    if transaction.client_version >= EPOCH_BUMP and transaction.next_producer_id != NO_PRODUCER_ID:
        return replace(over, producer_id=transaction.next_producer_id, epoch=0)
    return over
