"""The number of rebalances for many changes, on an event loop whose clock the test advances."""

from __future__ import annotations

import asyncio
import heapq

import pytest

from connect.group.pacing import Pacing


class Clock(asyncio.SelectorEventLoop):
    """Time that passes only when there is nothing to do."""

    now = 0.0

    def time(self):
        return self.now

    def _run_once(self):
        if not self._ready and self._scheduled:
            while self._scheduled and self._scheduled[0]._cancelled:
                heapq.heappop(self._scheduled)._scheduled = False
                self._timer_cancelled_count = max(0, self._timer_cancelled_count - 1)
            if self._scheduled:
                self.now = max(self.now, self._scheduled[0]._when)
        super()._run_once()


def asked(changes, more_to_come=lambda _: False):
    """When a rebalance is asked for, given when something changes (seconds)."""
    loop = Clock()
    times = []

    async def run():
        pacing = Pacing(lambda: times.append(loop.time()), lambda: more_to_come(loop.time()))
        for change in changes:
            await asyncio.sleep(change - loop.time())
            pacing.changed()
        await asyncio.sleep(60)

    try:
        loop.run_until_complete(run())
    finally:
        loop.close()
    return times


def test_a_single_change_is_not_made_to_wait():
    assert asked([10]) == pytest.approx([10.02])
    assert asked([10, 20, 30]) == pytest.approx([10.02, 20.02, 30.02])


def test_a_connector_and_its_tasks_cost_two():
    assert asked([10, 10.1]) == pytest.approx([10.02, 10.2])


@pytest.mark.parametrize("seconds", [1, 5, 15])
def test_a_flood_costs_a_handful(seconds):
    times = asked([10 + n * seconds / 1000 for n in range(1000)])
    assert len(times) <= 4 and times[-1] < 10 + seconds + 1


def test_an_expected_change_is_waited_for():
    # Changes with gaps longer than the quiet time, while it is known that there will be more.
    times = asked([10, 10.3, 12, 13.2, 14.4], lambda now: now < 14.4)
    assert len(times) == 3
