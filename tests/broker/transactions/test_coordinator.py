"""The transaction coordinator over time: waiting, completion after a restart, timeouts."""

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
def rig() -> Iterator[Coordinator]:
    made = Coordinator()
    yield made
    made.clock.close()


def state(rig: Coordinator, name: str = "x") -> TransactionState:
    return rig.coordinator.describe(name).transaction.state


def test_a_transaction_from_begin_to_end(rig: Coordinator) -> None:
    producer = value(rig.init())
    assert producer == Producer(0, 0)
    value(rig.add(producer, HERE, THERE))
    for where in (HERE, THERE):
        assert rig.markers.partition(where).append(producer, "record")
    after = value(rig.end(producer, commit=True))
    assert after == Producer(0, 1)
    assert rig.markers.partition(HERE).committed() == ["record"]
    assert state(rig) is TransactionState.COMPLETE_COMMIT


def test_answers_are_sent_only_after_the_write_is_durable(rig: Coordinator) -> None:
    rig.log.held = True
    init = rig.init()
    assert not init.done()
    rig.log.release()
    producer = value(init)
    added = rig.add(producer, HERE)
    again = rig.add(producer, THERE)
    assert not added.done()
    rig.log.release()
    value(added)
    assert not again.done(), "it is in a write of its own"
    rig.log.release()
    value(again)
    ended = rig.end(producer, commit=True)
    rig.markers.held = True
    assert not rig.markers.partitions, "a marker says what is decided, so that has to be durable first"
    rig.log.release()
    assert set(rig.markers.partitions) == {HERE, THERE}
    assert not ended.done()
    rig.markers.release()
    assert value(ended) == Producer(0, 1)


def test_while_a_transaction_ends_others_are_to_come_again(rig: Coordinator) -> None:
    producer = value(rig.init())
    value(rig.add(producer, HERE))
    rig.markers.held = True
    ended = rig.end(producer, commit=True)
    for request in (rig.init(), rig.add(Producer(0, 1), HERE), rig.end(producer, commit=True)):
        assert isinstance(failure(request), ConcurrentTransactions)
    with pytest.raises(ConcurrentTransactions):
        rig.coordinator.verify_partitions("x", Producer(0, 1), [HERE])
    rig.markers.release()
    value(ended)
    assert value(rig.end(producer, commit=True)) == Producer(0, 1), "repeated, because its answer was lost"


def test_a_new_instance_aborts_the_transaction_of_the_one_before(rig: Coordinator) -> None:
    before = value(rig.init())
    value(rig.add(before, HERE))
    rig.markers.partition(HERE).append(before, "record")
    assert isinstance(failure(rig.init()), ConcurrentTransactions)
    after = value(rig.init())
    assert after == Producer(0, 2)
    assert rig.markers.partition(HERE).entries[-1] == (Producer(0, 1), False)
    for request in (rig.add(before, HERE), rig.end(before, commit=True)):
        assert isinstance(failure(request), ProducerFenced)


def test_a_decided_transaction_is_finished_after_a_restart(rig: Coordinator) -> None:
    producer = value(rig.init())
    value(rig.add(producer, HERE))
    rig.markers.partition(HERE).append(producer, "record")
    rig.markers.held = True
    ended = rig.end(producer, commit=True)
    rig.coordinator.stop()
    rig.markers.release()
    assert isinstance(failure(ended), NotCoordinator)
    rig.markers.held = False
    rig.coordinator = rig.reload()
    assert state(rig) is TransactionState.COMPLETE_COMMIT
    assert rig.markers.partition(HERE).committed() == ["record"]
    assert value(rig.init()) == Producer(0, 2)


def test_an_open_transaction_outlives_a_restart_but_not_its_timeout(rig: Coordinator) -> None:
    producer = value(rig.init(timeout_ms=30_000))
    value(rig.add(producer, HERE))
    rig.restart()
    rig.clock.advance(20_000)
    assert state(rig) is TransactionState.ONGOING
    value(rig.add(producer, THERE))
    rig.clock.advance(20_001)
    assert state(rig) is TransactionState.COMPLETE_ABORT
    assert rig.markers.partition(THERE).entries == [(Producer(0, 1), False)]
    assert isinstance(failure(rig.end(producer, commit=True)), InvalidTxnState)
    assert isinstance(failure(rig.add(producer, THERE)), ProducerFenced)


def test_markers_that_cannot_be_written_are_tried_again(rig: Coordinator) -> None:
    producer = value(rig.init())
    value(rig.add(producer, HERE, THERE))
    rig.markers.broken = {THERE}
    ended = rig.end(producer, commit=True)
    rig.clock.advance(5_000)
    assert not ended.done()
    assert isinstance(failure(rig.init()), ConcurrentTransactions)
    rig.markers.broken = set()
    rig.clock.advance(1_000)
    assert value(ended) == Producer(0, 1)
    assert len(rig.markers.partition(HERE).entries) == 1, "once is enough"


def test_a_log_that_refuses_changes_nothing(rig: Coordinator) -> None:
    producer = value(rig.init())
    rig.log.refusal = KafkaStorageError("full")
    assert isinstance(failure(rig.add(producer, HERE)), NotCoordinator)
    assert isinstance(failure(rig.init("new")), NotCoordinator)
    rig.log.refusal = None
    with pytest.raises(TransactionalIdNotFound):
        rig.coordinator.describe("new")
    value(rig.add(producer, HERE))
    rig.log.refusal = KafkaStorageError("full")
    assert isinstance(failure(rig.end(producer, commit=True)), NotCoordinator)
    rig.log.refusal = None
    assert state(rig) is TransactionState.ONGOING
    assert value(rig.end(producer, commit=True)) == Producer(0, 1)


def test_requests_are_carried_out_in_their_order(rig: Coordinator) -> None:
    producer = value(rig.init())
    rig.log.held = True
    steps = [rig.add(producer, ("t", number)) for number in range(5)]
    ended = rig.end(producer, commit=True)
    order: list[int] = []
    for number, step in enumerate(steps):
        step.add_done_callback(lambda _, number=number: order.append(number))  # type: ignore[misc]
    for _ in range(8):
        rig.log.release()
    assert order == [0, 1, 2, 3, 4]
    assert value(ended) == Producer(0, 1)
    assert len(rig.markers.partitions) == 5


def test_a_step_that_fails_for_an_unforeseen_reason_does_not_keep_those_behind_it_waiting(
    rig: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = value(rig.init())
    rig.log.held = True
    first, bad, last = (rig.add(producer, ("t", number)) for number in range(3))
    added = transitions.added

    def failing(*arguments: Any, **more: Any) -> Any:
        if ("t", 1) in arguments[2]:
            raise RuntimeError("a fault of ours")
        return added(*arguments, **more)

    monkeypatch.setattr(transitions, "added", failing)
    for _ in range(4):
        rig.log.release()
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


def test_impossible_requests_of_producers_are_refused(rig: Coordinator) -> None:
    assert isinstance(failure(rig.init("")), InvalidRequest)
    for timeout_ms in (0, -1, 900_001):
        assert isinstance(failure(rig.init(timeout_ms=timeout_ms)), InvalidTxnTimeout)
    assert isinstance(failure(rig.add(Producer(0, 0), HERE)), InvalidPidMapping)
    assert isinstance(failure(rig.end(Producer(0, 0), commit=True)), InvalidPidMapping)


def test_partitions_are_verified(rig: Coordinator) -> None:
    producer = value(rig.init())
    value(rig.add(producer, HERE, version=0))
    verified = rig.coordinator.verify_partitions("x", producer, [HERE, THERE])
    assert verified[HERE] is None
    assert isinstance(verified[THERE], TransactionAbortable)
    with pytest.raises(ProducerFenced):
        rig.coordinator.verify_partitions("x", Producer(0, 1), [HERE])


def test_transactions_are_listed(rig: Coordinator) -> None:
    first = value(rig.init("first"))
    value(rig.init("second"))
    value(rig.add(first, HERE, name="first"))
    rig.clock.advance(5_000)

    def names(**filters: object) -> list[str]:
        return [each.transactional_id for each in rig.coordinator.list_transactions(**filters)]  # type: ignore[arg-type]

    assert names() == ["first", "second"]
    assert names(states=[TransactionState.ONGOING]) == ["first"]
    assert names(states=[]) == []
    assert names(producer_ids=[1]) == ["second"]
    assert names(matches="second".__eq__) == ["second"]
    assert "first" not in names(longer_than_ms=5_000)
    assert "first" in names(longer_than_ms=4_999)
    assert rig.coordinator.counts()[TransactionState.ONGOING] == 1
