"""Runs work on records that is too long for the event loop in separate processes; a thread would block the loop as
well.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor
from typing import Any, Final, NamedTuple, TypeVar

from broker.errors import KafkaStorageError, RequestTimedOut
from broker.storage.cleaner import own_process
from broker.work import TooMuchWork
from tidegate.kit.logs import get_logger

__all__ = ["RecordWorker"]

logger = get_logger(__name__)

T = TypeVar("T")

_MOST_WAITING_BYTES: Final = 256 * 1024 * 1024
_LONGEST_S: Final = 30.0
"""Includes the wait for earlier work. A single piece of work limits itself further (``broker.work.OFF_THE_LOOP``)."""
_MANY_RECORDS: Final = 256 * 1024
"""About a tenth of a second of work. Longer work runs in a separate process, so that it does not delay shorter work."""
_IDLE_S: Final = 60.0


class RecordWorker:
    """Two processes, one of them for long work. Used on one event loop."""

    def __init__(self, executor: Callable[[], Executor] = own_process) -> None:
        self._short, self._long = _Lane(executor), _Lane(executor)
        self._waiting_bytes = 0
        self._running: set[asyncio.Task[Any]] = set()
        self.count = 0
        """Pieces of work accepted."""

    def run(self, work: Callable[..., T], *provided: Any, size: int, records: int) -> asyncio.Task[T]:
        """Call ``work``, a module-level function, in a process. Its arguments have about ``size`` bytes with about
        ``records`` records.

        Raises KafkaStorageError, at once or in the task, if the work is impossible at the moment. The task raises
        RequestTimedOut and the errors of ``work``.
        """
        if self._waiting_bytes + size > _MOST_WAITING_BYTES:
            raise KafkaStorageError("too many requests wait for their records to be looked into; try again")
        self.count += 1
        self._waiting_bytes += size
        lane = self._long if records > _MANY_RECORDS else self._short
        task = asyncio.create_task(lane.run(work, provided), name="records looked into")
        self._running.add(task)

        def done(task: asyncio.Task[T]) -> None:
            self._waiting_bytes -= size
            self._running.discard(task)

        task.add_done_callback(done)
        return task

    async def close(self) -> None:
        """Abandon pending work."""
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        for lane in (self._short, self._long):
            await lane.close()


class _Process(NamedTuple):
    executor: Executor
    pid: int

    @classmethod
    def start(cls, make_executor: Callable[[], Executor]) -> _Process:
        """Blocks as long as Python takes to start."""
        executor = make_executor()
        return cls(executor, executor.submit(os.getpid).result())


class _Lane:
    """One process, which starts with the first work and ends after a while without any."""

    def __init__(self, make_executor: Callable[[], Executor]) -> None:
        self._make_executor = make_executor
        self._process: asyncio.Task[_Process] | None = None
        self._count = 0
        self._idle: asyncio.TimerHandle | None = None

    async def run(self, work: Callable[..., T], provided: tuple[Any, ...]) -> T:
        self._count += 1
        if self._idle is not None:
            self._idle.cancel()
        try:
            async with asyncio.timeout(_LONGEST_S):
                executor = (await self._started()).executor
                return await asyncio.wrap_future(await asyncio.to_thread(executor.submit, work, *provided))
        except (TimeoutError, TooMuchWork):
            raise RequestTimedOut(f"records were not looked into within {_LONGEST_S:.0f} s") from None
        except BrokenExecutor as error:
            logger.warning("a process that looks into records ended", reason=str(error))
            self._process = None
            raise KafkaStorageError("the process that looked into the records ended; try again") from error
        finally:
            self._count -= 1
            if not self._count:
                self._idle = asyncio.get_running_loop().call_later(_IDLE_S, self._rest)

    async def _started(self) -> _Process:
        if self._process is None:
            starting = asyncio.to_thread(_Process.start, self._make_executor)
            self._process = asyncio.create_task(starting, name="start of a process")
        return await asyncio.shield(self._process)

    def _rest(self) -> None:
        if not self._count and self._process is not None and self._process.done():
            process, self._process = self._process.result(), None
            process.executor.shutdown(wait=False, cancel_futures=True)

    async def close(self) -> None:
        """Stop without waiting for pending work."""
        if self._idle is not None:
            self._idle.cancel()
        if self._process is None:
            return
        with contextlib.suppress(BrokenExecutor):
            process, self._process = await self._process, None
            process.executor.shutdown(wait=False, cancel_futures=True)
            if process.pid != os.getpid():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, signal.SIGKILL)
