"""Waiting fetches, and their notification when partitions get more data."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from broker.log.partition import PartitionLog
from tidegate.kit.logs import get_logger

__all__ = ["Arrivals", "Waiter", "Watcher"]

logger = get_logger(__name__)


class Watcher(Protocol):
    def arrived(self, partition: PartitionLog, size: int) -> None:
        """``size`` bytes were appended to a partition, or (0) it changed in a way that readers should see."""
        ...


class Waiter:
    """A wait for ``missing`` bytes. A reader of committed records waits for bytes that become stable.

    ``stuck`` has the partitions with an open transaction and their last stable offset; None for readers of uncommitted
    data. It is a Promise for ``broker.network.connection``, whose callbacks ``Arrivals.release`` calls.
    """

    __slots__ = ("_arrivals", "_callbacks", "_cancelled", "_done", "_partitions", "_timer", "missing", "stuck")

    def __init__(
        self,
        arrivals: Arrivals,
        partitions: Iterable[PartitionLog],
        missing: int,
        stuck: dict[PartitionLog, int] | None,
        timeout_ms: int,
    ) -> None:
        self._arrivals = arrivals
        self._partitions = partitions
        self._callbacks: list[Callable[[Waiter], object]] = []
        self._done = self._cancelled = False
        self.missing = missing
        self.stuck = stuck
        self._timer = asyncio.get_running_loop().call_later(timeout_ms / 1000, self.wake)

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
        """End the wait, unless it has ended."""
        if not self._done:
            self._done = True
            self._arrivals.ended(self, self._partitions)

    def done(self) -> bool:
        return self._done

    def result(self) -> None:
        """Raises CancelledError if the wait was cancelled."""
        if self._cancelled:
            raise asyncio.CancelledError

    def cancel(self) -> bool:
        """End the wait of a caller that is no longer interested."""
        if self._done:
            return False
        self._cancelled = True
        self.wake()
        return True

    def add_done_callback(self, callback: Callable[[Waiter], object], /) -> None:
        """Call ``callback`` when the wait is over, which it must not be yet."""
        self._callbacks.append(callback)

    def tell(self) -> None:
        """Run the callbacks; for ``Arrivals``."""
        for callback in self._callbacks:
            try:
                callback(self)
            except Exception:
                logger.exception("who waited for records could not be told of them")
        self._timer.cancel()


class Arrivals:
    """Used on one event loop. Without waiters an append costs one dictionary lookup.

    Callbacks of ended waits do not run at once, because the appending request is not finished, nor in the event loop's
    next turn, which would cost as much as an answer. The code that handles a request calls ``hold`` before and
    ``release`` after it.
    """

    def __init__(self) -> None:
        self._watching: dict[PartitionLog, dict[Watcher, None]] = {}
        self._waiting: dict[Waiter, None] = {}
        self._ended: deque[Waiter] = deque()
        self._holding = False

    def wait(
        self,
        partitions: Iterable[PartitionLog],
        *,
        missing_bytes: int,
        timeout_ms: int,
        stuck: Mapping[PartitionLog, int] | None = None,
    ) -> Waiter:
        """A wait that ends when ``missing_bytes`` have arrived in total, or the time is over.

        ``partitions`` is iterated again when it ends.
        """
        waiter = Waiter(self, partitions, missing_bytes, None if stuck is None else dict(stuck), timeout_ms)
        self._waiting[waiter] = None
        for partition in partitions:
            self.watch(partition, waiter)
        return waiter

    def watch(self, partition: PartitionLog, watcher: Watcher) -> None:
        """Notify ``watcher`` of every change from now on."""
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
        """End all waits, so that fetches are answered with what there is."""
        for waiter in list(self._waiting):
            waiter.wake()

    def __len__(self) -> int:
        return len(self._waiting)

    def ended(self, waiter: Waiter, partitions: Iterable[PartitionLog]) -> None:
        """Schedule the callbacks of an ended wait; on the event loop unless ``hold`` is in effect."""
        del self._waiting[waiter]
        for partition in partitions:
            self.unwatch(partition, waiter)
        if not self._ended and not self._holding:
            asyncio.get_running_loop().call_soon(self.release)
        self._ended.append(waiter)

    def hold(self) -> None:
        """Delay callbacks until ``release``."""
        self._holding = True

    def release(self, most: int | None = None) -> None:
        """Run the callbacks of ended waits in their order: all, or ``most`` of them while the others stay delayed."""
        ended = self._ended
        if most is None:
            self._holding = False
            most = sys.maxsize
        while ended and most > 0:
            most -= 1
            ended.popleft().tell()
