"""The seam for time: the current time, timers, and futures that wait for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["Clock", "LoopClock", "Timer"]


class Timer(Protocol):
    """Something scheduled. Cancelling it after it fired does nothing."""

    def cancel(self) -> None: ...


class Clock(Protocol):
    """Time as the coordinator sees it. Callbacks run on the coordinator's thread, never during a call."""

    def now_ms(self) -> int:
        """Wall-clock time, milliseconds since 1970."""
        ...

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer: ...

    def create_future(self) -> asyncio.Future[Any]: ...


class LoopClock:
    """The clock of an asyncio event loop, by default of the running one."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._loop = loop or asyncio.get_running_loop()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(delay_ms / 1000, callback)

    def create_future(self) -> asyncio.Future[Any]:
        return self._loop.create_future()
