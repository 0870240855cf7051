from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from events.limits.allowance import UNLIMITED, Allowance

HOUR_MS = 3_600_000
MINUTE_MS = 60_000


class Clock:
    now = 1_700_000_000_000

    def __call__(self) -> int:
        return self.now


def test_used_allowance_returns_after_an_hour() -> None:
    clock = Clock()
    allowance = Allowance(10, HOUR_MS, clock)
    assert allowance.take(7) == 7
    clock.now += 30 * MINUTE_MS
    assert (allowance.take(7), allowance.left) == (3, 0)
    clock.now += 31 * MINUTE_MS
    assert allowance.shown == (10, 7)
    clock.now += 100 * HOUR_MS
    assert allowance.shown == (10, 10)


def test_unused_allowance_is_given_back() -> None:
    allowance = Allowance(10, HOUR_MS, Clock())
    allowance.take(4)
    allowance.give_back(3)
    assert allowance.left == 9
    allowance.give_back(100)
    assert allowance.left == 10


def test_no_limit_is_shown_as_a_number_that_clients_can_hold() -> None:
    allowance = Allowance(-1, HOUR_MS, Clock())
    assert allowance.take(10**6) == 10**6
    assert allowance.left == UNLIMITED
    assert allowance.shown == (UNLIMITED, UNLIMITED - 10**6)


def test_counts_go_over_a_restart() -> None:
    clock = Clock()
    before = Allowance(10, HOUR_MS, clock)
    before.take(2)
    clock.now += 10 * MINUTE_MS
    before.take(3)
    clock.now += 45 * MINUTE_MS
    after = Allowance(10, HOUR_MS, clock)
    after.load(before.dump())
    assert after.used == 5
    clock.now += 6 * MINUTE_MS
    assert after.used == 3
    with pytest.raises(ValueError, match="soon"):
        after.load({"soon": 1})


@given(st.lists(st.tuples(st.integers(0, 90 * MINUTE_MS), st.integers(0, 20)), max_size=30))
def test_never_more_than_the_most_within_an_hour(steps: list[tuple[int, int]]) -> None:
    clock = Clock()
    allowance, taken = Allowance(25, HOUR_MS, clock), []
    for wait_ms, allowed in steps:
        clock.now += wait_ms
        got = allowance.take(allowed)
        taken.append((clock.now, got))
        # parts are a minute, so what is an hour less a minute old counts for certain
        assert sum(count for at, count in taken if at > clock.now - HOUR_MS + MINUTE_MS) <= 25
        fresh = sum(count for at, count in taken if at > clock.now - HOUR_MS - MINUTE_MS)
        assert got == allowed or fresh >= 25 - allowed
