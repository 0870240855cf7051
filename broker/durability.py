"""When records are on the disk: group commit for ``acks=all``, and a flush in the background for the rest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from broker.errors import BrokerError
from broker.log.partition import PartitionLog
from tidegate.kit.logs import logger

__all__ = ["Durability", "Flushed"]

log = logger(__name__)

Flushed = dict[PartitionLog, BrokerError]
"""The logs of a round that could not be flushed, and why; empty is success."""

_INLINE_BELOW_S: Final = 0.0005
"""Where a flush takes less, handing it to a thread costs more than it saves (measured: 50-100 µs a hop)."""
_WEIGHT_OF_LATEST: Final = 0.2


class Durability:
    """Flushes logs, each round for all requests that the event loop has read by then. Belongs to one event loop.

    While a round is in its thread the next one gathers; a log is thus never flushed twice for the same records.
    """

    def __init__(self, *, background_interval_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._executor = ThreadPoolExecutor(2, "flush")
        self._interval_s = background_interval_s
        self._round: asyncio.Future[Flushed] | None = None
        self._wanted: set[PartitionLog] = set()
        self._dirty: set[PartitionLog] = set()
        self._running = False
        self._typical_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.rounds = 0
        self.seconds = 0.0

    def appended(self, partition: PartitionLog) -> None:
        """Records were appended that nobody waits for: they will be flushed with the next background round."""
        self._dirty.add(partition)
        if self._timer is None:
            self._timer = self._loop.call_later(self._interval_s, self._flush_dirty)

    def flushed(self, partitions: Iterable[PartitionLog]) -> asyncio.Future[Flushed]:
        """Done when all that these logs hold now is on the disk, or could not be brought there."""
        self._wanted.update(partitions)
        if self._round is None:
            self._round = self._loop.create_future()
            if not self._running:
                self._loop.call_soon(self._commit)
        return asyncio.shield(self._round)

    def flush_now(self, partition: PartitionLog) -> None:
        """Flush before going on (``flush.messages``); raises KafkaStorageError."""
        partition.flush()
        self._dirty.discard(partition)

    async def close(self) -> None:
        """Finish what is waited for; the logs flush themselves as they close."""
        if self._timer is not None:
            self._timer.cancel()
        while self._round is not None or self._running:  # noqa: ASYNC110 - at the end only
            await asyncio.sleep(0.001)
        self._executor.shutdown()

    def _commit(self) -> None:
        if self._round is None:
            return
        done, wanted = self._round, self._wanted
        self._round, self._wanted = None, set()
        self._dirty -= wanted
        self.rounds += 1
        if len(wanted) == 1 and self._typical_s < _INLINE_BELOW_S:
            self._finish(done, *_flush(wanted))
            return
        self._running = True
        job = self._loop.run_in_executor(self._executor, _flush, wanted)
        job.add_done_callback(lambda job: self._after_thread(done, job))

    def _after_thread(self, done: asyncio.Future[Flushed], job: asyncio.Future[tuple[Flushed, float]]) -> None:
        self._running = False
        if error := job.exception():
            done.set_exception(error)
        else:
            self._finish(done, *job.result())
        self._commit()

    def _finish(self, done: asyncio.Future[Flushed], failed: Flushed, seconds: float) -> None:
        self.seconds += seconds
        self._typical_s += _WEIGHT_OF_LATEST * (seconds - self._typical_s)
        done.set_result(failed)

    def _flush_dirty(self) -> None:
        self._timer = None
        dirty, self._dirty = self._dirty, set()
        job = self._loop.run_in_executor(self._executor, _flush, dirty)
        job.add_done_callback(_report)


def _flush(partitions: set[PartitionLog]) -> tuple[Flushed, float]:
    """Flush each; what failed, and the seconds all took."""
    began = time.perf_counter()
    failed: Flushed = {}
    for partition in partitions:
        try:
            partition.flush()
        except BrokerError as error:
            failed[partition] = error
    return failed, time.perf_counter() - began


def _report(job: asyncio.Future[tuple[Flushed, float]]) -> None:
    if job.cancelled():
        return
    for partition, error in job.result()[0].items():
        log.error("flush failed", topic=partition.topic, partition=partition.partition, error=error.message)
