"""Fetches that wait for records: who is told when a partition has got more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Protocol

from broker.log.partition import PartitionLog

__all__ = ["Arrivals", "Waiter", "Watcher"]


class Watcher(Protocol):
    def arrived(self, partition: PartitionLog, size: int) -> None:
        """``size`` bytes were appended to a partition, or (0) it changed in a way that readers should see."""
        ...


class Waiter:
    """One wait for ``missing`` bytes. A reader of committed records waits for those that become stable.

    ``stuck`` has the partitions with an open transaction and their last stable offset; None for readers that
    do not mind.
    """

    __slots__ = ("future", "missing", "stuck", "timer")

    def __init__(self, missing: int, stuck: dict[PartitionLog, int] | None, timeout_ms: int) -> None:
        loop = asyncio.get_running_loop()
        self.future: asyncio.Future[None] = loop.create_future()
        self.missing = missing
        self.stuck = stuck
        self.timer = loop.call_later(timeout_ms / 1000, self.wake)

    def arrived(self, partition: PartitionLog, size: int) -> None:
        if self.stuck is not None and size:
            stable, before = partition.last_stable_offset, self.stuck.get(partition)
            if stable < partition.log_end_offset:
                if before is None:
                    self.stuck[partition] = stable
                if before is None or before == stable:
                    return
                size = 0
            elif before is not None:
                size = 0
        self.missing -= size
        if self.missing <= 0 or size == 0:
            self.wake()

    def wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Arrivals:
    """Belongs to one event loop. An append costs one dictionary look-up where nobody waits."""

    def __init__(self) -> None:
        self._watching: dict[PartitionLog, dict[Watcher, None]] = {}
        self._waiting: dict[Waiter, None] = {}

    def wait(
        self,
        partitions: Iterable[PartitionLog],
        *,
        missing_bytes: int,
        timeout_ms: int,
        stuck: Mapping[PartitionLog, int] | None = None,
    ) -> Waiter:
        """A wait whose future is done when ``missing_bytes`` more have come in all, or the time is over.

        Cancelling the future ends the wait. ``partitions`` is gone through again when it ends.
        """
        waiter = Waiter(missing_bytes, None if stuck is None else dict(stuck), timeout_ms)
        self._waiting[waiter] = None
        for partition in partitions:
            self.watch(partition, waiter)
        waiter.future.add_done_callback(lambda _: self._forget(waiter, partitions))
        return waiter

    def watch(self, partition: PartitionLog, watcher: Watcher) -> None:
        """Tell ``watcher`` of every change from now on."""
        self._watching.setdefault(partition, {})[watcher] = None

    def unwatch(self, partition: PartitionLog, watcher: Watcher) -> None:
        watchers = self._watching.get(partition)
        if watchers is not None:
            watchers.pop(watcher, None)
            if not watchers:
                del self._watching[partition]

    def notify(self, partition: PartitionLog, size: int) -> None:
        """``size`` bytes were appended, or (0) the partition changed in a way that waiting fetches should see."""
        watchers = self._watching.get(partition)
        if watchers:
            for watcher in list(watchers):
                watcher.arrived(partition, size)

    def wake_all(self) -> None:
        """Let every waiting fetch be answered with what there is."""
        for waiter in list(self._waiting):
            waiter.wake()

    def __len__(self) -> int:
        return len(self._waiting)

    def _forget(self, waiter: Waiter, partitions: Iterable[PartitionLog]) -> None:
        waiter.timer.cancel()
        del self._waiting[waiter]
        for partition in partitions:
            self.unwatch(partition, waiter)
