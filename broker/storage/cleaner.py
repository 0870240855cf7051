"""Runs compaction in a separate process: it decodes records, which would block every client of the single-threaded
broker.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol

from broker.errors import BrokerError, KafkaStorageError
from broker.log import compaction
from broker.log.directory import LogDirectory
from broker.log.partition import PartitionLog
from broker.log.swap import Swap
from broker.storage.keeper import unhurried
from tidegate.kit.logs import get_logger

__all__ = ["Cleaner", "CleanerLimits", "own_process"]

logger = get_logger(__name__)


class CleanerLimits(Protocol):
    """The broker's keys that limit the resources of compaction."""

    @property
    def cleaner_threads(self) -> int: ...
    @property
    def cleaner_buffer_bytes(self) -> int: ...
    @property
    def cleaner_bytes_per_s(self) -> float | None: ...


class _Usual(NamedTuple):
    cleaner_threads: int = 1
    cleaner_buffer_bytes: int = 128 * 1024 * 1024
    cleaner_bytes_per_s: float | None = None


_BYTES_OF_KEY: Final = 256
"""Memory per key in a compaction, including Python's overhead."""


def own_process(most: int = 1) -> Executor:
    """Processes that start for a round of compaction and end after it, so that they cost nothing in between."""
    import multiprocessing  # local: the broker should not start later for a library that it rarely needs
    from concurrent.futures import ProcessPoolExecutor

    # Spawned, not forked: a fork would keep the broker's sockets and locks open.
    return ProcessPoolExecutor(most, mp_context=multiprocessing.get_context("spawn"), initializer=_begin)


def _begin() -> None:
    """Yield the processor to the broker, and end together with it, however it ends."""
    os.nice(10)
    threading.Thread(target=_end_with_the_broker, name="end with the broker", daemon=True).start()


def _end_with_the_broker() -> None:
    import multiprocessing

    broker = multiprocessing.parent_process()
    if broker is not None:
        broker.join()
        os._exit(1)


class Cleaner:
    """Compacts the logs of topics with ``cleanup.policy=compact``. Used on one event loop.

    ``limits`` is called before each round; ``executor`` creates an executor for that many concurrent compactions.
    """

    def __init__(
        self,
        logs: LogDirectory,
        executor: Callable[[int], Executor] = own_process,
        limits: Callable[[], CleanerLimits] = _Usual,
    ) -> None:
        self._logs = logs
        self._make_executor = executor
        self._limits = limits
        self.runs = 0
        self.records_removed = 0

    async def clean(self, now_ms: int | None = None) -> int:
        """Compact every log with enough dirty data.

        Returns how many. Failures are logged and do not stop the others.
        """
        now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        plans = [(log, plan) async for log in unhurried(self._logs) if (plan := self._planned(log, now)) is not None]
        if not plans:
            return 0
        limits = self._limits()
        count = min(max(limits.cleaner_threads, 1), len(plans))
        bytes_per_s = limits.cleaner_bytes_per_s
        overrides: dict[str, Any] = {
            "max_keys": max(limits.cleaner_buffer_bytes // count // _BYTES_OF_KEY, 1),
            "bytes_per_s": None if bytes_per_s is None else bytes_per_s / count,
        }
        # Starting a process and importing its libraries takes milliseconds.
        executor = await asyncio.to_thread(self._make_executor, count)
        try:
            return sum(
                await asyncio.gather(*(self._compact(executor, log, replace(plan, **overrides)) for log, plan in plans))
            )
        finally:
            executor.shutdown(wait=False, cancel_futures=True)

    @staticmethod
    def _planned(log: PartitionLog, now_ms: int) -> compaction.CompactionPlan | None:
        try:
            return compaction.plan_compaction(log, now_ms)
        except KafkaStorageError as error:
            logger.warning(
                "cannot look for what to compact", topic=log.topic, partition=log.partition, error=error.message
            )
            return None

    async def _compact(self, executor: Executor, log: PartitionLog, plan: compaction.CompactionPlan) -> bool:
        began = time.perf_counter()
        try:
            done = await asyncio.wrap_future(await asyncio.to_thread(executor.submit, compaction.run, plan))
            if self._logs.get(log.topic, log.partition) is not log:
                return False
            swap = Swap(log, done)
            for sync in swap:
                await asyncio.to_thread(sync)
            if not swap.is_done:
                return False
        except (BrokerError, OSError, RuntimeError) as error:
            logger.warning("compaction failed", topic=log.topic, partition=log.partition, error=str(error))
            return False
        self.runs += 1
        self.records_removed += done.records_before - done.records_after
        logger.info(
            "compacted",
            topic=log.topic,
            partition=log.partition,
            records_before=done.records_before,
            records_after=done.records_after,
            seconds=round(time.perf_counter() - began, 3),
        )
        return True
