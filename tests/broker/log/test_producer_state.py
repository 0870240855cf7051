"""Idempotent producers: batches that are accepted, answered with earlier offsets, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import (
    CorruptMessage,
    InvalidProducerEpoch,
    InvalidTxnState,
    OutOfOrderSequence,
    TransactionCoordinatorFenced,
)
from broker.log.producer_state import ProducerState, read_snapshot
from broker.protocol.records import BatchHeader, Record, encode_batch

MAX_SEQUENCE = 2**31 - 1


def header(
    sequence: int, *, count: int = 10, epoch: int = 0, offset: int = 0, transactional: bool = False
) -> BatchHeader:
    records = [Record(b"k", b"v", (), 5)] * count
    return BatchHeader.parse(
        encode_batch(
            records,
            base_offset=offset,
            producer_id=7,
            producer_epoch=epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
    )


@pytest.fixture
def state() -> ProducerState:
    return ProducerState("t-0")


def feed(state: ProducerState, batches: int) -> None:
    for number in range(batches):
        batch = header(number * 10, offset=number * 10)
        assert state.check(batch) is None
        state.update(batch)


def test_the_last_five_batches_are_answered_with_their_offsets(state: ProducerState) -> None:
    feed(state, 8)
    for number in range(3, 8):
        repeated = state.check(header(number * 10))
        assert repeated is not None
        assert (repeated.base_offset, repeated.last_offset) == (number * 10, number * 10 + 9)
    with pytest.raises(OutOfOrderSequence, match="sent sequence 20 where 80 is next"):
        state.check(header(20))


def test_gaps_and_cut_off_repetitions_are_out_of_order(state: ProducerState) -> None:
    feed(state, 2)
    for wrong in (header(21), header(10, count=5), header(15, count=5)):
        with pytest.raises(OutOfOrderSequence, match="producer 7 in t-0"):
            state.check(wrong)


def test_a_new_epoch_begins_with_sequence_0_and_fences_the_old_one(state: ProducerState) -> None:
    feed(state, 2)
    with pytest.raises(OutOfOrderSequence, match="must begin epoch 1 with sequence 0, not 20"):
        state.check(header(20, epoch=1))
    assert state.check(header(0, epoch=1)) is None
    state.update(header(0, epoch=1, offset=20))
    with pytest.raises(InvalidProducerEpoch, match="sent epoch 0, but epoch 1 is current"):
        state.check(header(20))


def test_sequences_go_on_at_0_after_the_largest(state: ProducerState) -> None:
    state.update(header(MAX_SEQUENCE - 4, offset=0))
    assert header(MAX_SEQUENCE - 4).last_sequence == 4
    assert state.check(header(5)) is None
    assert state.check(header(MAX_SEQUENCE - 4)) is not None
    state = ProducerState("t-0")
    state.update(header(MAX_SEQUENCE - 9, offset=0))
    assert state.check(header(0)) is None


def test_a_transaction_takes_transactional_batches_only_and_ends_with_its_marker(state: ProducerState) -> None:
    state.update(header(0, offset=100, transactional=True))
    assert state.first_open_transaction == 100
    with pytest.raises(InvalidTxnState, match="its transaction that began at offset 100"):
        state.check(header(10))
    marker = header(-1, count=1, offset=110)
    state.check_marker(7, 0, 3, 0)
    ended = state.end_transaction(marker, 3, aborted=True)
    assert ended is not None
    assert (ended.first_offset, ended.last_offset, ended.aborted) == (100, 110, True)
    assert state.first_open_transaction is None
    with pytest.raises(TransactionCoordinatorFenced, match="comes from coordinator epoch 2, but 3 is current"):
        state.check_marker(7, 0, 2, 0)


def test_sequences_of_an_ended_transaction_are_not_answered_as_repeated(state: ProducerState) -> None:
    state.update(header(0, offset=100, transactional=True))
    assert state.check(header(0, transactional=True)) is not None
    state.end_transaction(header(-1, count=1, offset=110), 3, aborted=True)
    with pytest.raises(OutOfOrderSequence, match="sequences 0 to 9 of a transaction that has ended"):
        state.check(header(0, transactional=True))
    assert state.check(header(10, transactional=True)) is None
    state.update(header(10, offset=111, transactional=True))
    with pytest.raises(OutOfOrderSequence, match="of a transaction that has ended"):
        state.check(header(0, transactional=True))
    assert state.check(header(10, transactional=True)) is not None


def test_a_snapshot_brings_back_the_last_batch_and_the_open_transaction(state: ProducerState, tmp_path: Path) -> None:
    state.update(header(MAX_SEQUENCE - 4, offset=0, transactional=True))
    path = tmp_path / "00000000000000000010.snapshot"
    path.write_bytes(state.snapshot())
    again = ProducerState("t-0")
    again.load(path)
    assert again.first_open_transaction == 0
    repeated = again.check(header(MAX_SEQUENCE - 4, transactional=True))
    assert repeated is not None
    assert repeated.last_offset == 9
    assert again.check(header(5, transactional=True)) is None


def test_idle_producers_are_forgotten_unless_in_a_transaction(state: ProducerState) -> None:
    state.update(header(0))
    state.expire(5)
    assert len(state) == 1
    state.expire(6)
    assert len(state) == 0
    state.update(header(0, transactional=True))
    state.expire(6)
    assert len(state) == 1


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_noise_is_no_snapshot(data: bytes) -> None:
    with pytest.raises(CorruptMessage):
        read_snapshot(data)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_no_producer_continues_after_its_refused_first_batch() -> None:
    clock = Clock()
    state = ProducerState("t-0", clock)
    state.refused(header(10))
    state.refused(header(20))
    with pytest.raises(OutOfOrderSequence, match="sent sequence 20 where 10, which was refused, is next"):
        state.check(header(20))
    assert state.check(header(0)) is None
    assert state.check(header(20, epoch=1)) is None
    assert state.check(header(10)) is None
    state.update(header(10))
    assert state.check(header(20)) is None


def test_a_refused_batch_is_waited_for_as_long_as_it_comes_again() -> None:
    clock = Clock()
    state = ProducerState("t-0", clock)
    for _ in range(3):
        state.refused(header(MAX_SEQUENCE - 4))
        clock.now += 9
        with pytest.raises(OutOfOrderSequence):
            state.check(header(5))
    clock.now += 9
    assert state.check(header(5)) is None


def test_of_refused_batches_so_many_are_remembered() -> None:
    state = ProducerState("t-0")
    for producer_id in range(2000):
        state.refused(header(10)._replace(producer_id=producer_id))
    with pytest.raises(OutOfOrderSequence):
        state.check(header(20)._replace(producer_id=1999))
    assert state.check(header(20)._replace(producer_id=0)) is None
