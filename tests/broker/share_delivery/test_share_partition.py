"""Which records a share-partition delivers, to which member, and how their state changes."""

from __future__ import annotations

import asyncio
import contextlib
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from broker.errors import CoordinatorNotAvailable, InvalidRecordState, InvalidRequest, KafkaStorageError
from broker.share_delivery.values import Acquired, BatchSpan, ShareSettings
from tests.support.share import ShareBench

Make = Callable[..., ShareBench]
ACCEPT, RELEASE, REJECT, RENEW, GAP = 1, 2, 3, 4, 0


@pytest.fixture
def make() -> Iterator[Make]:
    with contextlib.ExitStack() as benches:

        def make(*args: Any, **options: Any) -> ShareBench:
            return benches.enter_context(contextlib.closing(ShareBench(*args, **options)))

        yield make


def spans(acquired: list[Acquired]) -> list[tuple[int, int, int]]:
    return [tuple(batch) for batch in acquired]  # type: ignore[misc]


def settings(**overrides: Any) -> ShareSettings:
    return ShareSettings(auto_offset_reset="earliest")._replace(**overrides)


def failure(future: asyncio.Future[None]) -> BaseException | None:
    return future.exception()


def test_a_record_is_in_one_members_hands_at_a_time(make: Make) -> None:
    bench = make()
    bench.append(5, 5)
    assert spans(bench.fetch("a", read=1)) == [(0, 4, 1)]
    assert spans(bench.fetch("b")) == [(5, 9, 1)]
    assert bench.fetch("c") == []


def test_batches_of_the_log_are_not_divided_but_in_exact_mode(make: Make) -> None:
    bench = make()
    bench.append(5, 5, 5)
    assert spans(bench.fetch("a", most=6)) == [(0, 9, 1)]
    assert spans(bench.fetch("b", most=2, exactly=True)) == [(10, 11, 1)]
    assert spans(bench.fetch("c", most=2, exactly=True)) == [(12, 13, 1)]
    assert spans(bench.fetch("d")) == [(14, 14, 1)]


def test_shares_begin_at_batches_of_the_log(make: Make) -> None:
    bench = make()
    bench.append(2, 2, 2, 2)
    assert spans(bench.fetch("a", batch_size=3)) == [(0, 3, 1), (4, 7, 1)]


def test_accepted_records_move_the_start_offset(make: Make) -> None:
    bench = make()
    bench.append(4, 4)
    bench.fetch("a")
    assert failure(bench.acknowledge("a", 4, 7)) is None
    assert (bench.share.start_offset, bench.share.end_offset, bench.share.complete) == (0, 7, 4)
    assert failure(bench.acknowledge("a", 0, 1, ACCEPT, REJECT)) is None
    assert (bench.share.start_offset, bench.share.complete) == (2, 4)
    assert failure(bench.acknowledge("a", 2, 3, GAP)) is None
    assert (bench.share.start_offset, bench.share.end_offset, bench.share.complete) == (8, 8, 0)
    assert bench.share.next_fetch_offset() == 8


def test_released_records_are_delivered_again_and_counted(make: Make) -> None:
    bench = make()
    bench.append(3)
    bench.fetch("a")
    bench.acknowledge("a", 0, 2, ACCEPT, RELEASE, ACCEPT)
    assert spans(bench.fetch("b")) == [(1, 1, 2)]
    bench.release("b")
    assert spans(bench.fetch("c")) == [(1, 1, 3)]


def test_a_record_is_given_up_after_so_many_deliveries(make: Make) -> None:
    bench = make(settings(delivery_count_limit=2))
    bench.append(2)
    for count in (1, 2):
        assert spans(bench.fetch("a")) == [(0, 1, count)]
        bench.acknowledge("a", 0, 1, RELEASE)
    assert bench.fetch("a") == []
    assert bench.share.start_offset == 2


def test_suspicious_records_come_in_ever_smaller_company_and_last_alone(make: Make) -> None:
    bench = make()
    bench.append(16)
    sizes = []
    for _ in range(3):
        sizes.append(bench.fetch("a")[-1].size)
        bench.acknowledge("a", 0, sizes[-1] - 1, RELEASE)
    assert sizes == [16, 16, 16]
    assert spans(bench.fetch("a")) == [(0, 7, 4)]
    bench.acknowledge("a", 0, 7, RELEASE)
    assert spans(bench.fetch("a")) == [(0, 0, 5)]
    assert spans(bench.fetch("b")) == [(1, 1, 5)]


def test_locks_end_by_time_unless_they_are_renewed(make: Make) -> None:
    bench = make(settings(record_lock_ms=1000))
    bench.append(4)
    bench.fetch("a")
    bench.clock.advance(900)
    bench.acknowledge("a", 0, 0, RENEW)
    assert bench.fetch("b") == []
    bench.clock.advance(200)
    assert spans(bench.fetch("b")) == [(1, 3, 2)]
    assert isinstance(failure(bench.acknowledge("a", 1, 1)), InvalidRecordState)
    bench.clock.advance(800)
    assert spans(bench.fetch("c")) == [(0, 0, 2)]


def test_a_member_cannot_acknowledge_records_it_did_not_acquire(make: Make) -> None:
    bench = make()
    bench.append(4, 4)
    bench.fetch("a", read=1)
    assert isinstance(failure(bench.acknowledge("b", 0, 3)), InvalidRecordState)
    assert isinstance(failure(bench.acknowledge("a", 2, 5)), InvalidRequest)
    assert isinstance(failure(bench.acknowledge("a", 5, 5)), InvalidRequest)
    assert isinstance(failure(bench.acknowledge("a", 0, 0, 9)), InvalidRequest)
    assert failure(bench.acknowledge("a", 0, 3)) is None
    assert failure(bench.acknowledge("a", 0, 3)) is None, "below the start there is nothing left to say"


def test_an_acknowledgement_is_all_or_nothing(make: Make) -> None:
    bench = make()
    bench.append(4)
    bench.fetch("a")
    bench.acknowledge("a", 1, 1, ACCEPT)
    assert isinstance(failure(bench.acknowledge("a", 0, 1, ACCEPT)), InvalidRecordState)
    assert bench.share.complete == 1
    assert failure(bench.acknowledge("a", 0, 0, ACCEPT)) is None
    assert bench.share.start_offset == 2


def test_acknowledgements_complete_only_after_the_state_is_written(make: Make) -> None:
    bench = make(settings(record_lock_ms=1000))
    bench.append(4)
    bench.fetch("a")
    bench.log.held = True
    future = bench.acknowledge("a", 0, 1)
    assert not future.done()
    assert bench.share.start_offset == 0
    assert isinstance(failure(bench.acknowledge("a", 0, 0)), InvalidRecordState), "it is being acknowledged"
    bench.log.release(KafkaStorageError("full"))
    assert isinstance(failure(future), CoordinatorNotAvailable)
    bench.log.held = False
    bench.clock.advance(1000)
    assert spans(bench.fetch("b")) == [(0, 3, 2)]


def test_a_lock_that_ends_while_an_acknowledgement_fails_is_over(make: Make) -> None:
    bench = make(settings(record_lock_ms=1000))
    bench.append(1)
    bench.fetch("a")
    bench.log.held = True
    bench.acknowledge("a", 0, 0)
    bench.clock.advance(1500)
    assert bench.fetch("b") == []
    bench.log.release(KafkaStorageError("full"))
    assert spans(bench.fetch("b")) == [(0, 0, 2)]


def test_no_more_than_so_many_records_are_locked(make: Make) -> None:
    bench = make(settings(max_record_locks=10))
    bench.append(*[4] * 5)
    assert spans(bench.fetch("a")) == [(0, 11, 1)]
    assert not bench.share.can_acquire
    bench.acknowledge("a", 4, 7, RELEASE)
    assert spans(bench.fetch("b")) == [(4, 7, 2)], "within a full window"
    assert bench.fetch("b") == []
    bench.acknowledge("a", 0, 3)
    assert spans(bench.fetch("b")) == [(12, 15, 1)]


def test_a_restart_keeps_what_was_acknowledged(make: Make) -> None:
    bench = make(snapshot_update_records_per_snapshot="2")
    bench.append(5, 5)
    bench.fetch("a")
    bench.acknowledge("a", 0, 0)
    bench.acknowledge("a", 3, 4, ACCEPT)
    bench.acknowledge("a", 6, 6, RELEASE)
    bench.coordinator.prune()
    bench.restart()
    assert bench.share.start_offset == 1
    assert [span for _ in range(3) for span in spans(bench.fetch("b"))] == [(1, 2, 1), (5, 5, 1), (6, 6, 2), (7, 9, 1)]


def test_aborted_records_are_archived(make: Make) -> None:
    bench = make()
    bench.append(3, 3, 3)
    assert spans(bench.fetch("a", aborted=[BatchSpan(3, 5)])) == [(0, 2, 1), (6, 8, 1)]
    bench.acknowledge("a", 0, 2)
    assert bench.share.start_offset == 6


def test_a_window_full_of_aborted_records_does_not_stall(make: Make) -> None:
    bench = make(settings(max_record_locks=6))
    bench.append(3, 3, 2)
    assert bench.fetch("a", aborted=[BatchSpan(0, 2), BatchSpan(3, 5)], read=2) == []
    assert (bench.share.start_offset, bench.share.end_offset, bench.share.complete) == (6, 6, 0)
    assert bench.changes == 1, "others can fetch again"
    assert spans(bench.fetch("b")) == [(6, 7, 1)]


def test_a_window_full_of_records_that_are_gone_does_not_stall(make: Make) -> None:
    bench = make(settings(max_record_locks=6))
    bench.append(3, 3, 2)
    bench.fetch("a", read=2)
    bench.release("a")
    bench.compact(0)
    bench.compact(3)
    assert bench.fetch("a") == []
    assert spans(bench.fetch("a")) == [(6, 7, 1)]


def test_records_below_the_log_start_leave_the_window_even_if_acquired(make: Make) -> None:
    bench = make(settings(max_record_locks=6))
    bench.append(3, 3, 4)
    bench.fetch("a", read=1)
    bench.fetch("b", read=1)
    bench.acknowledge("b", 3, 5)
    bench.log_start = 2
    bench.share.log_starts_at(2)
    assert (bench.share.start_offset, bench.share.end_offset, bench.share.complete) == (2, 5, 3)
    bench.log_start = 3
    bench.share.log_starts_at(3)
    assert (bench.share.start_offset, bench.share.end_offset, bench.share.complete) == (6, 6, 0)
    assert failure(bench.acknowledge("a", 0, 2)) is None, "there is nothing left to say"
    bench.log_start = 8
    bench.share.log_starts_at(8)
    assert spans(bench.fetch("c")) == [(8, 9, 1)], "not the whole batch"


def test_of_a_batch_that_begins_below_the_start_only_the_rest_comes_again(make: Make) -> None:
    bench = make()
    bench.append(4)
    bench.fetch("a")
    bench.log.held = True
    bench.release("a")
    bench.log_start = 2
    bench.share.log_starts_at(2)
    bench.log.held = False
    bench.log.release()
    assert bench.share.next_fetch_offset() == 2
    assert spans(bench.fetch("b")) == [(2, 3, 2)]
    bench.acknowledge("b", 2, 3)
    assert (bench.share.start_offset, bench.share.end_offset) == (4, 4)


def test_gaps_in_the_restored_state_stay_known(make: Make) -> None:
    bench = make()
    bench.append(2, 2, 2)
    bench.fetch("a")
    bench.acknowledge("a", 4, 5)
    bench.restart()
    assert spans(bench.fetch("a", read=1)) == [(0, 1, 1)]
    assert spans(bench.fetch("b", read=1)) == [(2, 3, 1)]
    bench.acknowledge("a", 0, 1, RELEASE)
    assert spans(bench.fetch("b", read=1)) == [(0, 1, 2)]
    bench.acknowledge("b", 2, 3)
    bench.acknowledge("b", 0, 1)
    assert (bench.share.start_offset, bench.share.end_offset) == (6, 6)


def test_a_renewal_is_part_of_all_or_nothing(make: Make) -> None:
    bench = make(settings(record_lock_ms=1000))
    bench.append(2)
    bench.fetch("a")
    bench.acknowledge("a", 1, 1, RELEASE)
    bench.clock.advance(900)
    assert isinstance(failure(bench.acknowledge("a", 0, 1, RENEW, ACCEPT)), InvalidRecordState)
    bench.clock.advance(100)
    assert spans(bench.fetch("b")) == [(0, 1, 2)], "its lock ended when it would have"


def test_records_that_are_gone_from_the_log_are_done(make: Make) -> None:
    bench = make()
    bench.append(3, 3, 3)
    bench.fetch("a")
    bench.acknowledge("a", 3, 8, RELEASE)
    bench.compact(3)
    assert spans(bench.fetch("b")) == [(6, 8, 2)]
    bench.acknowledge("a", 0, 2)
    assert bench.share.start_offset == 6
    bench.log_start = 8
    bench.share.log_starts_at(8)
    bench.acknowledge("b", 6, 8)
    assert bench.share.start_offset == 9


def test_the_start_is_found_by_the_groups_setting(make: Make) -> None:
    assert make(settings(), log_start=5).share.start_offset == 5
    bench = make(ShareSettings(auto_offset_reset="latest"), log_start=9)
    assert bench.share.start_offset == 9


def test_a_batch_of_millions_costs_as_much_as_is_said_of_single_records(make: Make) -> None:
    """A header of 61 bytes can claim them."""
    many = 16_000_000
    bench = make(settings(delivery_count_limit=3))
    bench.append(many)
    tracemalloc.start()
    try:
        assert spans(bench.fetch("a")) == [(0, many - 1, 1)]
        assert failure(bench.acknowledge("a", 5, 5)) is None
        assert failure(bench.acknowledge("a", many - 7, many - 7, REJECT)) is None
        assert failure(bench.acknowledge("a", 10, 14, ACCEPT, RENEW, RENEW, RELEASE, ACCEPT)) is None
        assert failure(bench.acknowledge("a", 100, 199, RELEASE)) is None
        bench.release("a")
        assert bench.share.start_offset == 0
        assert spans(bench.fetch("b", most=3, exactly=True)) == [(0, 2, 2)]
        bench.clock.advance(settings().record_lock_ms + 1)
        assert failure(bench.acknowledge("b", 0, 0)) is not None, "its time is over"
        again = bench.fetch("c")
        assert sum(batch.size for batch in again) < many
        bench.share.log_starts_at(many - 20)
        bench.release("c")
        assert bench.share.start_offset == many - 20
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()
