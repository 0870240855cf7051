"""Maintains the logs while the broker runs, without blocking its event loop: checkpoints, retention, repairs, removals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from broker.errors import BrokerError
from broker.log.directory import LogDirectory
from broker.log.partition import PRODUCER_ID_EXPIRATION_MS, PartitionLog
from tidegate.kit.logs import get_logger

__all__ = ["KEEP_LOGS_S", "LogKeeper", "unhurried"]

logger = get_logger(__name__)

KEEP_LOGS_S: Final = 1.0
"""The interval of ``keep``. A recovery has to check the data written in such an interval, and unflushed data."""
_CHECKPOINT_BYTES: Final = 4 * 1024 * 1024
"""A start checks less data than this so quickly that it can wait for the next regular checkpoint."""
_AT_ONCE: Final = 100


async def unhurried(logs: LogDirectory) -> AsyncIterator[PartitionLog]:
    """Every log, with time for other work of the event loop in between."""
    for number, log in enumerate(logs.all()):
        if number % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)
        if not log.is_retired:
            yield log


class LogKeeper:
    """Used on one event loop; a thread does the work that waits for the disk."""

    def __init__(
        self,
        logs: LogDirectory,
        *,
        starts_moved: Callable[[], None] = lambda: None,
        producers_kept_ms: Callable[[], int] = lambda: PRODUCER_ID_EXPIRATION_MS,
    ) -> None:
        self._logs = logs
        self._producers_kept_ms = producers_kept_ms
        self._starts_moved = starts_moved
        self._writer = ThreadPoolExecutor(1, "checkpoint")
        self._remover = ThreadPoolExecutor(1, "remove")
        self._removing: Future[int] | None = None

    def close(self) -> None:
        """Finish pending writes. Removals stop after the current file and continue with the next start."""
        self._logs.graves.stop()
        self._remover.shutdown(wait=False)
        self._writer.shutdown()

    async def keep(self) -> None:
        """Do frequent maintenance: recovery points of new data, failed logs, files due for removal."""
        logs = self._logs
        if logs.unmarked_bytes >= _CHECKPOINT_BYTES:
            await self._write_points()
        if logs.has_failed_logs:
            await self._write(logs.repair)
            logs.reopen_damaged()
        for number, _ in enumerate(logs.take_away()):
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
        if logs.graves.is_due and (self._removing is None or self._removing.done()):
            self._removing = self._remover.submit(logs.graves.clear)

    async def checkpoint(self) -> None:
        """Write recovery points, compaction points and ends of logs."""
        await self._write_points()
        await self._write(self._logs.checkpoint_compacted)

    async def checkpoint_starts(self) -> None:
        """Write the start offsets of logs."""
        await self._write(self._logs.checkpoint_start_offsets)

    async def _write_points(self) -> None:
        marks = self._logs.marks()
        await self._write(lambda: self._logs.checkpoint(marks))

    async def _write(self, work: Callable[[], None]) -> None:
        await asyncio.get_running_loop().run_in_executor(self._writer, work)

    async def enforce_retention(self) -> int:
        """Delete segments beyond retention. Returns how many. A failing disk does not stop the other logs."""
        now_ms, gone = time.time_ns() // 1_000_000, 0
        async for log in unhurried(self._logs):
            try:
                gone += log.enforce_retention(now_ms, self._producers_kept_ms())
            except BrokerError as error:
                logger.warning("retention failed", topic=log.topic, partition=log.partition, error=error.message)
        if gone:
            self._starts_moved()
        return gone
