"""A timeout that every request postpones, and that rarely fires."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

__all__ = ["Alarm"]


class Alarm:
    """Calls ``ring`` once at the time that was ``set`` last, on the event loop. Setting it again usually costs no
    timer.

    ``end`` it when it is not going to be set again: it keeps what it calls, and its timer keeps both.
    """

    __slots__ = ("_due", "_loop", "_ring", "_timer", "_timer_at")

    def __init__(self, ring: Callable[[], None]) -> None:
        self._loop, self._ring = asyncio.get_running_loop(), ring
        self._due = self._timer_at = 0.0
        """Zero if it is not set."""
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Ring after this time, and not before."""
        self._due = due = self._loop.time() + seconds
        if self._timer is None:
            self._wait(due)
        elif due < self._timer_at:
            self._timer.cancel()
            self._wait(due)

    def clear(self) -> None:
        """Do not ring until it is set again."""
        self._due = 0.0

    def cancel(self) -> None:
        self._due = 0.0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self) -> None:
        """Cancel it permanently and release its callback, which usually refers to the alarm: so no reference cycle is left for the garbage collector."""
        self.cancel()
        self._ring = _nothing

    def _wait(self, until: float) -> None:
        self._timer_at = until
        self._timer = self._loop.call_at(until, self._look)

    def _look(self) -> None:
        self._timer = None
        if not self._due:
            return
        if self._due > self._timer_at:
            self._wait(self._due)
            return
        self._due = 0.0
        self._ring()


def _nothing() -> None:
    """An ended alarm calls this."""
