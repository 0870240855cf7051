"""Group commit: waiters are notified when the disk has the records, and concurrent waiters share a flush."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from broker.errors import KafkaStorageError
from broker.log.directory import LogDirectory
from broker.log.partition import PartitionLog
from broker.protocol.records import Record
from broker.storage.durability import Durability


@pytest.fixture
def logs(tmp_path: Path) -> Any:
    directory = LogDirectory(tmp_path)
    directory.open()
    made = [directory.create("t", partition, uuid.UUID(int=7)) for partition in range(6)]
    yield made
    directory.close()


def run(test: Callable[[Durability], Any], interval_s: float = 60) -> None:
    async def inner() -> None:
        async with asyncio.timeout(60):
            durability = Durability(background_interval_s=interval_s)
            try:
                await test(durability)
            finally:
                await durability.close()

    asyncio.run(inner())


def append(log: PartitionLog) -> None:
    log.append_records([Record(None, b"value")])


def test_one_flush_serves_all_concurrent_waiters(logs: list[PartitionLog]) -> None:
    async def test(durability: Durability) -> None:
        for log in logs:
            append(log)
        waits = [durability.flushed([log]) for log in logs] + [durability.flushed(logs)]
        assert [log.flushed_offset for log in logs] == [0] * 6
        assert await asyncio.gather(*waits) == [{}] * 7
        assert durability.rounds == 1
        assert [log.flushed_offset for log in logs] == [1] * 6

    run(test)


def test_those_who_come_during_a_round_wait_for_the_next(logs: list[PartitionLog]) -> None:
    async def test(durability: Durability) -> None:
        append(logs[0])
        append(logs[1])
        first = durability.flushed(logs[:2])
        await asyncio.sleep(0)
        append(logs[0])
        second = durability.flushed(logs[:1])
        await first
        assert await second == {}
        assert durability.rounds == 2
        assert logs[0].flushed_offset == 2

    run(test)


@pytest.mark.parametrize("count", [1, 3])
def test_a_log_that_cannot_be_flushed_fails_alone(
    logs: list[PartitionLog], monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    def broken() -> int:
        raise KafkaStorageError("the disk is gone")

    monkeypatch.setattr(logs[0], "flush", broken)

    async def test(durability: Durability) -> None:
        for log in logs[:count]:
            append(log)
        failed = await durability.flushed(logs[:count])
        assert [(log, error.message) for log, error in failed.items()] == [(logs[0], "the disk is gone")]
        assert [log.flushed_offset for log in logs[1:count]] == [1] * (count - 1)

    run(test)
    monkeypatch.undo()


def test_a_cancelled_waiter_does_not_stop_the_others(logs: list[PartitionLog]) -> None:
    async def test(durability: Durability) -> None:
        append(logs[0])
        left, stays = durability.flushed(logs[:1]), durability.flushed(logs[:1])
        left.cancel()
        assert await stays == {}

    run(test)


def test_appends_without_waiters_are_flushed_in_the_background(logs: list[PartitionLog]) -> None:
    async def test(durability: Durability) -> None:
        for log in logs:
            append(log)
            durability.appended(log)
        while any(log.flushed_offset == 0 for log in logs):
            await asyncio.sleep(0.001)

    run(test, interval_s=0.005)


def test_a_disk_that_stalls_does_not_stop_the_loop(logs: list[PartitionLog], monkeypatch: pytest.MonkeyPatch) -> None:
    """Though it was quick before."""
    stalled = threading.Event()

    async def test(durability: Durability) -> None:
        for _ in range(20):
            append(logs[0])
            assert await durability.flushed(logs[:1]) == {}
        flush = logs[0].flush

        def stalling() -> int:
            assert threading.current_thread() is not threading.main_thread()
            stalled.wait()
            return flush()

        monkeypatch.setattr(logs[0], "flush", stalling)
        append(logs[0])
        waiting = durability.flushed(logs[:1])
        for _ in range(50):  # the loop turns
            await asyncio.sleep(0.001)
        assert not waiting.done()
        append(logs[0])  # and takes more
        stalled.set()
        assert await waiting == {}

    run(test)
    monkeypatch.undo()
