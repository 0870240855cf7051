"""Compaction in a process of its own: it decodes records, which would hold up every client of the one-threaded broker."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from concurrent.futures import Executor

from broker.errors import BrokerError
from broker.log import compaction
from broker.log.directory import LogDirectory
from broker.log.partition import PartitionLog
from broker.storage.keeper import unhurried
from tidegate.kit.logs import logger

__all__ = ["Cleaner", "own_process"]

log = logger(__name__)


def own_process() -> Executor:
    """A process that is started for a round of compaction and ended after it, so that it costs nothing in between."""
    import multiprocessing  # here: no broker is ready later for a library that it needs once in minutes
    from concurrent.futures import ProcessPoolExecutor

    # Spawned, not forked: a fork would keep the broker's sockets and locks open.
    return ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"), initializer=_step_back)


def _step_back() -> None:
    """Leave the processor to the broker where both want it."""
    os.nice(10)


class Cleaner:
    """Compacts the logs of topics with ``cleanup.policy=compact``, one after the other. Belongs to one event loop."""

    def __init__(self, logs: LogDirectory, executor: Callable[[], Executor] = own_process) -> None:
        self._logs = logs
        self._make_executor = executor
        self.runs = 0
        self.records_removed = 0

    async def clean(self, now_ms: int | None = None) -> int:
        """Compact every log that has enough to compact; how many those were. Failures are logged, the rest goes on."""
        now = time.time_ns() // 1_000_000 if now_ms is None else now_ms
        plans = [(one, plan) async for one in unhurried(self._logs) if (plan := one.plan_compaction(now)) is not None]
        if not plans:
            return 0
        executor = self._make_executor()
        try:
            return sum([await self._compact(executor, one, plan) for one, plan in plans])
        finally:
            executor.shutdown(wait=False, cancel_futures=True)

    async def _compact(self, executor: Executor, one: PartitionLog, plan: compaction.CompactionPlan) -> bool:
        began = time.perf_counter()
        try:
            done = await asyncio.get_running_loop().run_in_executor(executor, compaction.run, plan)
            if self._logs.get(one.topic, one.partition) is not one or not one.finish_compaction(done):
                return False
        except (BrokerError, OSError, RuntimeError) as error:
            log.warning("compaction failed", topic=one.topic, partition=one.partition, error=str(error))
            return False
        self.runs += 1
        self.records_removed += done.records_before - done.records_after
        log.info(
            "compacted",
            topic=one.topic,
            partition=one.partition,
            records_before=done.records_before,
            records_after=done.records_after,
            seconds=round(time.perf_counter() - began, 3),
        )
        return True
