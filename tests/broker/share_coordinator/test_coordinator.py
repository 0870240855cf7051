"""The records that the share coordinator writes, and the state that it restores from them."""

from __future__ import annotations

import contextlib
import itertools
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.errors import (
    CoordinatorNotAvailable,
    CorruptMessage,
    FencedLeaderEpoch,
    FencedStateEpoch,
    InvalidRequest,
    KafkaStorageError,
    UnknownTopicOrPartition,
)
from broker.share_coordinator.config import ShareCoordinatorConfig
from broker.share_coordinator.coordinator import ShareCoordinator, coordinator_key, read_coordinator_key
from broker.share_coordinator.records import (
    Snapshot,
    Update,
    decode_key,
    decode_snapshot,
    decode_update,
    encode_snapshot,
    encode_update,
)
from broker.share_coordinator.state_batches import combined
from broker.share_coordinator.values import ShareKey, StateBatch, StoredState
from broker.share_delivery.offset_reset import duration_ms
from tests.support.groups import ManualClock
from tests.support.share import KEY, StateList
from tidegate.kit.config import parse

OTHER = KEY._replace(partition=1)
GONE = KEY._replace(partition=99)


class Bench:
    def __init__(self, **config: str) -> None:
        self.clock = ManualClock()
        self.log = StateList(self.clock, partitions=1)
        self.config = parse(ShareCoordinatorConfig, {f"share.coordinator.{k}": v for k, v in config.items()})
        self.restart()

    def restart(self) -> None:
        self.coordinator = ShareCoordinator(self.log, self.config, self.clock, lambda _, partition: partition < 9)
        self.coordinator.start()

    def write(self, key: ShareKey = KEY, *batches: StateBatch, **changes: Any) -> BaseException | None:
        state = StoredState(-1, 1, 0, 0, batches)._replace(**changes)
        return self.coordinator.write(key, state).exception()

    def close(self) -> None:
        self.clock.close()


@pytest.fixture
def bench() -> Iterator[Bench]:
    with contextlib.closing(Bench(**{"snapshot.update.records.per.snapshot": "2"})) as made:
        yield made


def done(first: int, last: int) -> StateBatch:
    return StateBatch(first, last, 1, 2)


def test_state_is_read_back(bench: Bench) -> None:
    assert bench.coordinator.initialize(KEY, 1, 5).exception() is None
    assert bench.write(KEY, done(5, 6), start_offset=5, delivery_complete_count=2) is None
    assert bench.write(KEY, StateBatch(8, 9, 2, 0), start_offset=7, delivery_complete_count=0) is None
    expected = StoredState(7, 1, 0, 0, [StateBatch(8, 9, 2, 0)])
    assert bench.coordinator.read(KEY, 0) == expected
    bench.restart()
    assert bench.coordinator.read(KEY, 0) == expected
    assert bench.coordinator.summary(KEY) == expected._replace(batches=())
    assert bench.coordinator.summary(OTHER).start_offset == -1


def test_every_so_many_updates_there_is_a_snapshot(bench: Bench) -> None:
    bench.coordinator.initialize(KEY, 1, 0)
    for offset in range(5):
        bench.write(KEY, done(offset, offset), start_offset=0)
    kinds = [decode_key(key)[0] for key, _ in bench.log.entries[0]]
    assert kinds == [0, 1, 1, 0, 1, 1]
    assert decode_snapshot(bench.log.entries[0][3][1] or b"").batches == [done(0, 2)]
    bench.coordinator.prune()
    assert bench.log.deleted == {0: 3}
    bench.restart()
    assert bench.coordinator.read(KEY, -1).batches == [done(0, 4)]


def test_old_snapshots_are_written_anew_so_that_the_log_can_be_cut(bench: Bench) -> None:
    bench.coordinator.initialize(OTHER, 1, 0)
    for offset in range(4):
        bench.coordinator.initialize(KEY, 1, offset)
    bench.clock.advance(600_001)
    assert bench.log.deleted[0] >= 1
    bench.restart()
    assert bench.coordinator.summary(OTHER).start_offset == 0
    assert bench.coordinator.summary(KEY).start_offset == 3


def test_epochs_fence(bench: Bench) -> None:
    bench.coordinator.initialize(KEY, 3, 0)
    assert isinstance(bench.write(state_epoch=2), FencedStateEpoch)
    assert isinstance(bench.coordinator.initialize(KEY, 2, 0).exception(), FencedStateEpoch)
    assert bench.write(state_epoch=-1) is None
    assert bench.coordinator.read(KEY, 4).leader_epoch == 4
    assert isinstance(bench.write(state_epoch=3, leader_epoch=2), FencedLeaderEpoch)
    with pytest.raises(FencedLeaderEpoch):
        bench.coordinator.read(KEY, 3)


def test_only_what_is_there_is_written_and_read(bench: Bench) -> None:
    assert isinstance(bench.write(OTHER), InvalidRequest)
    assert isinstance(bench.write(KEY._replace(partition=-1)), InvalidRequest)
    assert isinstance(bench.coordinator.initialize(GONE, 1, 0).exception(), UnknownTopicOrPartition)
    for key, error in ((OTHER, InvalidRequest), (GONE, UnknownTopicOrPartition)):
        with pytest.raises(error):
            bench.coordinator.read(key, 0)
    assert bench.coordinator.delete(OTHER).exception() is None
    bench.coordinator.initialize(OTHER, 1, 0)
    assert bench.coordinator.delete(OTHER).exception() is None
    bench.restart()
    assert len(bench.coordinator) == 0


def test_a_log_that_refuses_is_told(bench: Bench) -> None:
    bench.coordinator.initialize(KEY, 1, 0)
    bench.log.refusal = KafkaStorageError("no")
    assert isinstance(bench.write(KEY, done(0, 0)), CoordinatorNotAvailable)
    assert bench.coordinator.read(KEY, 0).batches == []


def test_records_that_cannot_be_read_are_passed_over(bench: Bench) -> None:
    bench.coordinator.initialize(KEY, 1, 4)
    bench.log.entries[0].append((b"\0\0nonsense", b"nonsense"))
    bench.log.entries[0].append((bench.log.entries[0][0][0], b"\0\7"))
    bench.restart()
    assert bench.coordinator.summary(KEY).start_offset == 4


BATCHES = st.builds(
    lambda first, size, deliveries, state: StateBatch(first, first + size, deliveries, state),
    st.integers(0, 30),
    st.integers(0, 8),
    st.integers(1, 3),
    st.sampled_from([0, 2, 4]),
)
INT64, INT32 = st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1)


@given(known=st.lists(BATCHES, max_size=6), changed=st.lists(BATCHES, max_size=6), start=st.integers(-1, 25))
def test_batches_are_put_together_offset_by_offset(
    known: list[StateBatch], changed: list[StateBatch], start: int
) -> None:
    result = combined(known, changed, start)
    for offset in range(45):
        said = [
            merged_batch[2:]
            for merged_batch in (*known, *changed)
            if merged_batch.first <= offset <= merged_batch.last and offset >= start
        ]
        states = [merged_batch[2:] for merged_batch in result if merged_batch.first <= offset <= merged_batch.last]
        assert states == ([max(said)] if said else [])
    for merged_batch, following in itertools.pairwise(result):
        assert merged_batch.last < following.first
        assert merged_batch.last + 1 < following.first or merged_batch[2:] != following[2:]


@given(
    key=st.builds(ShareKey, st.text(min_size=1, max_size=20), st.uuids(), INT32),
    numbers=st.tuples(INT32, INT32, INT32, INT64, INT64, INT64, INT32),
    batches=st.lists(BATCHES, max_size=4),
)
def test_records_are_what_they_were(key: ShareKey, numbers: tuple[int, ...], batches: list[StateBatch]) -> None:
    epoch, state_epoch, leader_epoch, start, created, written, complete = numbers
    snapshot = Snapshot(epoch, state_epoch, leader_epoch, start, created, written, complete, batches)
    data, value = encode_snapshot(key, snapshot)
    assert decode_key(data) == (0, key)
    assert decode_snapshot(value or b"") == snapshot
    update = Update(epoch, leader_epoch, start, complete, batches)
    data, value = encode_update(key, update)
    assert decode_key(data) == (1, key)
    assert decode_update(value or b"") == update


@settings(max_examples=300)
@given(data=st.binary(max_size=80), valid=st.booleans())
def test_any_bytes_are_a_record_or_corrupt(data: bytes, valid: bool) -> None:
    if valid:
        _, value = encode_update(KEY, Update(1, 2, 3, 4, [done(0, 1)] * 2))
        data = (value or b"")[: len(data)] + data
    for decode in (decode_key, decode_snapshot, decode_update):
        with contextlib.suppress(CorruptMessage):
            decode(data)


@given(key=st.builds(ShareKey, st.text("abc-_.", min_size=1), st.uuids(), st.integers(0, 2**31 - 1)), text=st.text())
def test_share_partitions_have_names(key: ShareKey, text: str) -> None:
    assert read_coordinator_key(coordinator_key(key)) == key
    with contextlib.suppress(InvalidRequest):
        assert isinstance(read_coordinator_key(text).topic_id, uuid.UUID)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT1S", 1000), ("PT0.5S", 500), ("P1DT2H3M4.005S", 93_784_005), ("PT90M", 5_400_000), ("p2d", 172_800_000)],
)
def test_durations_are_read_in_milliseconds(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "1S", "PT1", "-PT1S", "P1Y"])
def test_an_invalid_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration_ms(text)
