"""Fetches that wait for records: who is told when a partition has got more."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from broker.log.partition import PartitionLog

__all__ = ["Arrivals"]


class _Waiter:
    __slots__ = ("future", "missing", "partitions", "timer")

    def __init__(self, future: asyncio.Future[None], partitions: Collection[PartitionLog], missing: int) -> None:
        self.future = future
        self.partitions = partitions
        self.missing = missing
        self.timer: asyncio.TimerHandle | None = None


class Arrivals:
    """Belongs to one event loop. An append costs one dictionary look-up where nobody waits."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[PartitionLog, set[_Waiter]] = {}

    def wait(
        self, partitions: Collection[PartitionLog], *, missing_bytes: int, timeout_ms: int
    ) -> asyncio.Future[None]:
        """Done when ``missing_bytes`` more have come in all, or the time is over. Cancelling it ends the wait."""
        waiter = _Waiter(self._loop.create_future(), partitions, missing_bytes)
        waiter.timer = self._loop.call_later(timeout_ms / 1000, self._wake, waiter)
        for partition in partitions:
            self._waiting.setdefault(partition, set()).add(waiter)
        waiter.future.add_done_callback(lambda _: self._forget(waiter))
        return waiter.future

    def notify(self, partition: PartitionLog, size: int) -> None:
        """``size`` bytes were appended, or (0) the partition changed in a way that waiting fetches should see."""
        waiters = self._waiting.get(partition)
        if not waiters:
            return
        for waiter in list(waiters):
            waiter.missing -= size
            if waiter.missing <= 0 or size == 0:
                self._wake(waiter)

    def wake_all(self) -> None:
        """Let every waiting fetch be answered with what there is."""
        for waiters in list(self._waiting.values()):
            for waiter in list(waiters):
                self._wake(waiter)

    def __len__(self) -> int:
        return len({waiter for waiters in self._waiting.values() for waiter in waiters})

    @staticmethod
    def _wake(waiter: _Waiter) -> None:
        if not waiter.future.done():
            waiter.future.set_result(None)

    def _forget(self, waiter: _Waiter) -> None:
        if waiter.timer is not None:
            waiter.timer.cancel()
        for partition in waiter.partitions:
            waiters = self._waiting.get(partition)
            if waiters is not None:
                waiters.discard(waiter)
                if not waiters:
                    del self._waiting[partition]
