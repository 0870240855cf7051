"""The permitted transitions between states: the tables of Kafka's coordinator, for both versions of the protocol."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from broker.errors import BrokerError, ConcurrentTransactions, InvalidPidMapping, InvalidTxnState, ProducerFenced
from broker.transactions import Producer, Transaction, TransactionState
from broker.transactions.transitions import added, completed, ended, fenced, initialised

EMPTY, ONGOING = TransactionState.EMPTY, TransactionState.ONGOING
PREPARE_COMMIT, PREPARE_ABORT = TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT
COMPLETE_COMMIT, COMPLETE_ABORT = TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT
LAST = 32766


def transaction(state: TransactionState = EMPTY, epoch: int = 5, **fields: object) -> Transaction:
    base = Transaction(producer_id=1, previous_producer_id=1, epoch=epoch, timeout_ms=10, state=state, updated_ms=0)
    return replace(base, **fields)  # type: ignore[arg-type]


def end(
    current: Transaction, epoch: int, *, commit: bool, version: int = 2, producer_id: int = 1
) -> Transaction | None:
    ids = count(100)
    return ended(
        current,
        Producer(producer_id, epoch),
        commit=commit,
        now_ms=7,
        version=version,
        new_producer_id=lambda: next(ids),
    )


def init(current: Transaction, expected: Producer | None = None) -> Transaction:
    ids = count(100)
    return initialised(current, timeout_ms=20, expected=expected, now_ms=7, new_producer_id=lambda: next(ids))


FENCED, INVALID, BUSY, DONE, BUMPED = ProducerFenced, InvalidTxnState, ConcurrentTransactions, "done", "bumped"


@pytest.mark.parametrize(
    ("state", "epoch", "commit", "expected"),
    [
        (EMPTY, 4, False, FENCED),
        (EMPTY, 5, False, BUMPED),
        (EMPTY, 4, True, FENCED),
        (EMPTY, 5, True, INVALID),
        (ONGOING, 4, True, FENCED),
        (ONGOING, 5, True, BUMPED),
        (ONGOING, 5, False, BUMPED),
        (ONGOING, 6, False, FENCED),
        (PREPARE_COMMIT, 4, True, BUSY),
        (PREPARE_COMMIT, 4, False, INVALID),
        (PREPARE_COMMIT, 5, True, FENCED),
        (PREPARE_ABORT, 4, False, BUSY),
        (PREPARE_ABORT, 4, True, INVALID),
        (COMPLETE_ABORT, 4, False, DONE),
        (COMPLETE_ABORT, 5, False, BUMPED),
        (COMPLETE_ABORT, 4, True, INVALID),
        (COMPLETE_ABORT, 5, True, INVALID),
        (COMPLETE_COMMIT, 4, False, INVALID),
        (COMPLETE_COMMIT, 5, False, BUMPED),
        (COMPLETE_COMMIT, 4, True, DONE),
        (COMPLETE_COMMIT, 5, True, INVALID),
        (COMPLETE_COMMIT, 3, True, FENCED),
    ],
)
def test_how_a_transaction_ends_in_the_second_version(
    state: TransactionState, epoch: int, commit: bool, expected: object
) -> None:
    current = transaction(state)
    if isinstance(expected, type) and issubclass(expected, BrokerError):
        with pytest.raises(expected):
            end(current, epoch, commit=commit)
        return
    after = end(current, epoch, commit=commit)
    assert (after is None) == (expected is DONE)
    if after is not None:
        assert (after.epoch, after.last_epoch, after.client_version) == (6, 5, 2)
        assert after.state is (PREPARE_COMMIT if commit else PREPARE_ABORT)
        assert after.started_ms == (7 if state is not ONGOING else -1)
        over = completed(after, now_ms=8)
        assert over.producer == Producer(1, 6)
        assert over.state is (COMPLETE_COMMIT if commit else COMPLETE_ABORT)


@pytest.mark.parametrize(
    ("state", "epoch", "commit", "expected"),
    [
        (EMPTY, 5, True, INVALID),
        (EMPTY, 5, False, INVALID),
        (ONGOING, 5, True, BUMPED),
        (ONGOING, 4, True, FENCED),
        (PREPARE_COMMIT, 5, True, BUSY),
        (PREPARE_COMMIT, 5, False, INVALID),
        (COMPLETE_COMMIT, 5, True, DONE),
        (COMPLETE_COMMIT, 5, False, INVALID),
        (COMPLETE_COMMIT, 4, True, FENCED),
        (COMPLETE_ABORT, 5, False, DONE),
        (COMPLETE_ABORT, 5, True, INVALID),
    ],
)
def test_how_a_transaction_ends_in_the_first_version(
    state: TransactionState, epoch: int, commit: bool, expected: object
) -> None:
    current = transaction(state, partitions=frozenset({("t", 0)}))
    if isinstance(expected, type) and issubclass(expected, BrokerError):
        with pytest.raises(expected):
            end(current, epoch, commit=commit, version=0)
        return
    after = end(current, epoch, commit=commit, version=0)
    assert (after is None) == (expected is DONE)
    if after is not None:
        assert (after.epoch, after.partitions, after.client_version) == (5, frozenset({("t", 0)}), 0)
        assert completed(after, now_ms=8).partitions == frozenset()


def test_a_stranger_ends_nothing() -> None:
    for version in (0, 2):
        with pytest.raises(InvalidPidMapping):
            end(transaction(ONGOING), 5, commit=True, version=version, producer_id=2)


def test_a_producer_whose_epochs_are_used_up_goes_on_under_a_new_id() -> None:
    prepared = end(transaction(ONGOING, epoch=LAST), LAST, commit=True)
    assert prepared is not None
    assert (prepared.producer, prepared.next_producer_id) == (Producer(1, 32767), 100)
    over = completed(prepared, now_ms=8)
    assert (over.producer, over.previous_producer_id, over.next_producer_id) == (Producer(100, 0), 1, -1)
    assert end(over, LAST, commit=True) is None, "it asks again, for its answer was lost"
    with pytest.raises(InvalidTxnState):
        end(over, LAST, commit=False)


def fence(current: Transaction, version: int) -> Transaction:
    return fenced(current, now_ms=7, version=version, new_producer_id=lambda: 100)


@pytest.mark.parametrize("version", [0, 2])
def test_fencing_takes_the_next_epoch(version: int) -> None:
    assert fence(transaction(ONGOING), version).producer == Producer(1, 6)
    for epoch in (LAST, 32767):
        last = fence(transaction(ONGOING, epoch=epoch), version)
        assert last.producer == Producer(1, 32767)
        over = completed(last, now_ms=8)
        assert over.producer == (Producer(100, 0) if version == 2 else Producer(1, 32767))
        assert init(over).producer == (Producer(100, 1) if version == 2 else Producer(100, 0))


def test_a_new_instance_gets_the_next_epoch() -> None:
    for state in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT):
        after = init(transaction(state))
        assert (after.producer, after.last_epoch, after.state, after.timeout_ms) == (Producer(1, 6), -1, EMPTY, 20)
    assert init(transaction(epoch=-1)).epoch == 0
    assert init(transaction(epoch=LAST)).producer == Producer(100, 0)
    with pytest.raises(ConcurrentTransactions):
        init(transaction(PREPARE_ABORT))


def test_an_instance_goes_on_after_an_error() -> None:
    after = init(transaction(), Producer(1, 5))
    assert (after.producer, after.last_epoch) == (Producer(1, 6), 5)
    assert init(after, Producer(1, 5)).producer == Producer(1, 6), "a retry gets the same"
    for stale in (Producer(1, 4), Producer(2, 5)):
        with pytest.raises(ProducerFenced):
            init(after, stale)
    rotated = init(transaction(epoch=LAST), Producer(1, LAST))
    assert (rotated.producer, rotated.last_epoch) == (Producer(100, 0), LAST)
    assert init(rotated, Producer(1, LAST)).producer == Producer(100, 0)


def test_partitions_are_added() -> None:
    first, there = ("t", 0), ("t", 1)
    begun = added(transaction(COMPLETE_COMMIT, started_ms=1), Producer(1, 5), [first], now_ms=7, version=2)
    assert begun is not None
    assert (begun.state, begun.partitions, begun.started_ms) == (ONGOING, frozenset({first}), 7)
    assert added(begun, Producer(1, 5), [first], now_ms=8, version=2) is None
    more = added(begun, Producer(1, 5), [first, there], now_ms=8, version=2)
    assert more is not None
    assert (more.partitions, more.started_ms, more.updated_ms) == (frozenset({first, there}), 7, 8)
    for producer, error in ((Producer(2, 5), InvalidPidMapping), (Producer(1, 6), ProducerFenced)):
        with pytest.raises(error):
            added(begun, producer, [there], now_ms=8, version=2)
    with pytest.raises(ConcurrentTransactions):
        added(transaction(PREPARE_COMMIT), Producer(1, 5), [first], now_ms=7, version=0)
