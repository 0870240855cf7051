"""The coordinator in time: what waits for what, what a restart finishes, what takes too long."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from broker.errors import (
    ConcurrentTransactions,
    InvalidPidMapping,
    InvalidRequest,
    InvalidTxnState,
    InvalidTxnTimeout,
    KafkaStorageError,
    NotCoordinator,
    ProducerFenced,
    TransactionAbortable,
    TransactionalIdNotFound,
    UnknownServerError,
)
from broker.transactions import Producer, TransactionState, transitions
from tests.support.groups import failure, value
from tests.support.transactions import Coordinator

HERE, THERE = ("t", 0), ("t", 1)


@pytest.fixture
def one() -> Iterator[Coordinator]:
    made = Coordinator()
    yield made
    made.clock.close()


def state(one: Coordinator, name: str = "x") -> TransactionState:
    return one.coordinator.describe(name).transaction.state


def test_a_transaction_from_begin_to_end(one: Coordinator) -> None:
    producer = value(one.init())
    assert producer == Producer(0, 0)
    value(one.add(producer, HERE, THERE))
    for where in (HERE, THERE):
        assert one.markers.partition(where).append(producer, "record")
    after = value(one.end(producer, commit=True))
    assert after == Producer(0, 1)
    assert one.markers.partition(HERE).committed() == ["record"]
    assert state(one) is TransactionState.COMPLETE_COMMIT


def test_nothing_is_answered_before_it_is_durable(one: Coordinator) -> None:
    one.log.held = True
    init = one.init()
    assert not init.done()
    one.log.release()
    producer = value(init)
    added = one.add(producer, HERE)
    again = one.add(producer, THERE)
    assert not added.done()
    one.log.release()
    value(added)
    assert not again.done(), "it is in a write of its own"
    one.log.release()
    value(again)
    ended = one.end(producer, commit=True)
    one.markers.held = True
    assert not one.markers.partitions, "a marker says what is decided, so that has to be durable first"
    one.log.release()
    assert set(one.markers.partitions) == {HERE, THERE}
    assert not ended.done()
    one.markers.release()
    assert value(ended) == Producer(0, 1)


def test_while_a_transaction_ends_others_are_to_come_again(one: Coordinator) -> None:
    producer = value(one.init())
    value(one.add(producer, HERE))
    one.markers.held = True
    ended = one.end(producer, commit=True)
    for request in (one.init(), one.add(Producer(0, 1), HERE), one.end(producer, commit=True)):
        assert isinstance(failure(request), ConcurrentTransactions)
    with pytest.raises(ConcurrentTransactions):
        one.coordinator.verify_partitions("x", Producer(0, 1), [HERE])
    one.markers.release()
    value(ended)
    assert value(one.end(producer, commit=True)) == Producer(0, 1), "repeated, because its answer was lost"


def test_a_new_instance_aborts_the_transaction_of_the_one_before(one: Coordinator) -> None:
    before = value(one.init())
    value(one.add(before, HERE))
    one.markers.partition(HERE).append(before, "record")
    assert isinstance(failure(one.init()), ConcurrentTransactions)
    after = value(one.init())
    assert after == Producer(0, 2)
    assert one.markers.partition(HERE).entries[-1] == (Producer(0, 1), False)
    for request in (one.add(before, HERE), one.end(before, commit=True)):
        assert isinstance(failure(request), ProducerFenced)


def test_what_was_decided_is_finished_after_a_restart(one: Coordinator) -> None:
    producer = value(one.init())
    value(one.add(producer, HERE))
    one.markers.partition(HERE).append(producer, "record")
    one.markers.held = True
    ended = one.end(producer, commit=True)
    one.coordinator.stop()
    one.markers.release()
    assert isinstance(failure(ended), NotCoordinator)
    one.markers.held = False
    one.coordinator = one.reload()
    assert state(one) is TransactionState.COMPLETE_COMMIT
    assert one.markers.partition(HERE).committed() == ["record"]
    assert value(one.init()) == Producer(0, 2)


def test_an_open_transaction_outlives_a_restart_but_not_its_timeout(one: Coordinator) -> None:
    producer = value(one.init(timeout_ms=30_000))
    value(one.add(producer, HERE))
    one.restart()
    one.clock.advance(20_000)
    assert state(one) is TransactionState.ONGOING
    value(one.add(producer, THERE))
    one.clock.advance(20_001)
    assert state(one) is TransactionState.COMPLETE_ABORT
    assert one.markers.partition(THERE).entries == [(Producer(0, 1), False)]
    assert isinstance(failure(one.end(producer, commit=True)), InvalidTxnState)
    assert isinstance(failure(one.add(producer, THERE)), ProducerFenced)


def test_markers_that_cannot_be_written_are_tried_again(one: Coordinator) -> None:
    producer = value(one.init())
    value(one.add(producer, HERE, THERE))
    one.markers.broken = {THERE}
    ended = one.end(producer, commit=True)
    one.clock.advance(5_000)
    assert not ended.done()
    assert isinstance(failure(one.init()), ConcurrentTransactions)
    one.markers.broken = set()
    one.clock.advance(1_000)
    assert value(ended) == Producer(0, 1)
    assert len(one.markers.partition(HERE).entries) == 1, "once is enough"


def test_a_log_that_refuses_changes_nothing(one: Coordinator) -> None:
    producer = value(one.init())
    one.log.refusal = KafkaStorageError("full")
    assert isinstance(failure(one.add(producer, HERE)), NotCoordinator)
    assert isinstance(failure(one.init("new")), NotCoordinator)
    one.log.refusal = None
    with pytest.raises(TransactionalIdNotFound):
        one.coordinator.describe("new")
    value(one.add(producer, HERE))
    one.log.refusal = KafkaStorageError("full")
    assert isinstance(failure(one.end(producer, commit=True)), NotCoordinator)
    one.log.refusal = None
    assert state(one) is TransactionState.ONGOING
    assert value(one.end(producer, commit=True)) == Producer(0, 1)


def test_requests_are_carried_out_in_their_order(one: Coordinator) -> None:
    producer = value(one.init())
    one.log.held = True
    steps = [one.add(producer, ("t", number)) for number in range(5)]
    ended = one.end(producer, commit=True)
    order: list[int] = []
    for number, step in enumerate(steps):
        step.add_done_callback(lambda _, number=number: order.append(number))  # type: ignore[misc]
    for _ in range(8):
        one.log.release()
    assert order == [0, 1, 2, 3, 4]
    assert value(ended) == Producer(0, 1)
    assert len(one.markers.partitions) == 5


def test_a_step_that_fails_for_an_unforeseen_reason_does_not_keep_those_behind_it_waiting(
    one: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = value(one.init())
    one.log.held = True
    first, bad, last = (one.add(producer, ("t", number)) for number in range(3))
    added = transitions.added

    def failing(*arguments: Any, **more: Any) -> Any:
        if ("t", 1) in arguments[2]:
            raise RuntimeError("a fault of ours")
        return added(*arguments, **more)

    monkeypatch.setattr(transitions, "added", failing)
    for _ in range(4):
        one.log.release()
    assert value(first) is None
    assert isinstance(failure(bad), UnknownServerError)
    assert value(last) is None


def test_ids_nobody_uses_expire() -> None:
    coordinator = Coordinator(
        transactional_id_expiration_ms="100000", transaction_remove_expired_transaction_cleanup_interval_ms="30000"
    )
    value(coordinator.init("idle"))
    busy = value(coordinator.init("busy", timeout_ms=900_000))
    coordinator.clock.advance(90_000)
    value(coordinator.add(busy, HERE, name="busy"))
    assert len(coordinator.coordinator.list_transactions()) == 2
    coordinator.clock.advance(30_000)
    assert [each.transactional_id for each in coordinator.coordinator.list_transactions()] == ["busy"]
    coordinator.restart()
    assert [each.transactional_id for each in coordinator.coordinator.list_transactions()] == ["busy"]
    assert isinstance(failure(coordinator.add(Producer(0, 0), HERE, name="idle")), InvalidPidMapping)
    assert value(coordinator.init("idle")).id == 2, "a new producer id, so that nothing of old is taken for its own"
    coordinator.clock.close()


def test_what_no_producer_can_ask_for(one: Coordinator) -> None:
    assert isinstance(failure(one.init("")), InvalidRequest)
    for timeout_ms in (0, -1, 900_001):
        assert isinstance(failure(one.init(timeout_ms=timeout_ms)), InvalidTxnTimeout)
    assert isinstance(failure(one.add(Producer(0, 0), HERE)), InvalidPidMapping)
    assert isinstance(failure(one.end(Producer(0, 0), commit=True)), InvalidPidMapping)


def test_partitions_are_verified(one: Coordinator) -> None:
    producer = value(one.init())
    value(one.add(producer, HERE, version=0))
    verified = one.coordinator.verify_partitions("x", producer, [HERE, THERE])
    assert verified[HERE] is None
    assert isinstance(verified[THERE], TransactionAbortable)
    with pytest.raises(ProducerFenced):
        one.coordinator.verify_partitions("x", Producer(0, 1), [HERE])


def test_transactions_are_listed(one: Coordinator) -> None:
    first = value(one.init("first"))
    value(one.init("second"))
    value(one.add(first, HERE, name="first"))
    one.clock.advance(5_000)

    def names(**filters: object) -> list[str]:
        return [each.transactional_id for each in one.coordinator.list_transactions(**filters)]  # type: ignore[arg-type]

    assert names() == ["first", "second"]
    assert names(states=[TransactionState.ONGOING]) == ["first"]
    assert names(states=[]) == []
    assert names(producer_ids=[1]) == ["second"]
    assert names(matches="second".__eq__) == ["second"]
    assert "first" not in names(longer_than_ms=5_000)
    assert "first" in names(longer_than_ms=4_999)
    assert one.coordinator.counts()[TransactionState.ONGOING] == 1
