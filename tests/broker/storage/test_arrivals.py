"""Waiting for records: who is notified, when, and in which order."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.log.directory import LogDirectory
from broker.log.partition import PartitionLog
from broker.storage.arrivals import Arrivals, Waiter
from tests.support.broker import kept


@pytest.fixture
def logs(tmp_path: Path) -> Iterator[list[PartitionLog]]:
    directory = LogDirectory(tmp_path)
    directory.open()
    yield [directory.create("t", partition, uuid.UUID(int=7)) for partition in range(3)]
    directory.close()


def test_a_waiter_is_told_when_enough_has_come(logs: list[PartitionLog]) -> None:
    async def test() -> None:
        arrivals = Arrivals()
        waiting = arrivals.wait(logs[:2], missing_bytes=100, timeout_ms=60_000)
        arrivals.notify(logs[2], 1000)
        arrivals.notify(logs[0], 60)
        assert not waiting.done()
        arrivals.notify(logs[1], 40)
        await kept(waiting)
        assert len(arrivals) == 0

    asyncio.run(test())


def test_a_waiter_is_let_go_by_time_by_change_or_by_itself(logs: list[PartitionLog]) -> None:
    async def test() -> None:
        arrivals = Arrivals()
        await kept(arrivals.wait(logs[:1], missing_bytes=1, timeout_ms=1))
        changed = arrivals.wait(logs[:1], missing_bytes=1, timeout_ms=60_000)
        arrivals.notify(logs[0], 0)
        await kept(changed)
        left = arrivals.wait(logs[:1], missing_bytes=1, timeout_ms=60_000)
        assert left.cancel()
        assert not left.cancel()
        assert len(arrivals) == 0
        with pytest.raises(asyncio.CancelledError):
            left.result()

    asyncio.run(test())


def told(arrivals: Arrivals, log: PartitionLog, count: int) -> list[int]:
    """Wait on a log this many times. Returns the numbers of the waiters that were notified."""
    told: list[int] = []

    def teller(number: int) -> Callable[[Waiter], None]:
        return lambda _: told.append(number)

    for number in range(count):
        arrivals.wait([log], missing_bytes=1, timeout_ms=60_000).add_done_callback(teller(number))
    return told


def test_held_waiters_are_told_on_release_and_as_many_as_it_says(logs: list[PartitionLog]) -> None:
    async def test() -> None:
        arrivals = Arrivals()
        ended = told(arrivals, logs[0], 5)
        arrivals.hold()
        arrivals.notify(logs[0], 100)
        arrivals.notify(logs[0], 100)
        await asyncio.sleep(0)
        assert (ended, len(arrivals)) == ([], 0)
        arrivals.release(2)
        assert ended == [0, 1]
        arrivals.release()
        assert ended == [0, 1, 2, 3, 4]

    asyncio.run(test())


def test_without_anybody_who_holds_the_loop_tells(logs: list[PartitionLog]) -> None:
    async def test() -> None:
        arrivals = Arrivals()
        ended = told(arrivals, logs[0], 2)
        arrivals.notify(logs[0], 1)
        assert ended == []
        await asyncio.sleep(0)
        assert ended == [0, 1]

    asyncio.run(test())


def test_an_error_in_one_waiter_does_not_affect_the_others(logs: list[PartitionLog]) -> None:
    async def test() -> None:
        arrivals = Arrivals()
        arrivals.wait(logs[:1], missing_bytes=1, timeout_ms=60_000).add_done_callback(lambda _: 1 // 0)
        ended = told(arrivals, logs[0], 1)
        arrivals.hold()
        arrivals.notify(logs[0], 1)
        arrivals.release()
        assert ended == [0]

    asyncio.run(test())
