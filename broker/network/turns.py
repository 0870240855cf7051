"""Large requests take turns: one that keeps the event loop for long is followed by as much time for everybody else."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

__all__ = ["LARGE_BYTES", "Loop", "Turns"]

LARGE_BYTES: Final = 64 * 1024
"""A request above it has a buffer of its own, and can wait."""
_LONG_S: Final = 0.01
"""A request that takes less is followed at once."""


class Loop(Protocol):
    """The part of the event loop that turns need."""

    def time(self) -> float: ...

    def call_at(self, when: float, callback: Callable[[], object], /) -> object: ...


class Turns:
    """Runs pieces of work in their order.

    A request of 20,000 names takes 0.2 s of the loop. Without turns, such requests of many clients are handled one right after the
    other, and nobody else is answered meanwhile.
    """

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._waiting: deque[Callable[[], None]] = deque()
        self._free_at = float("-inf")

    @property
    def free(self) -> bool:
        """Whether nobody waits, and the last piece is long enough ago."""
        return not self._waiting and self._loop.time() >= self._free_at

    def run(self, work: Callable[[], None]) -> None:
        """Run it now, while ``free``."""
        began = self._loop.time()
        try:
            work()
        finally:
            ended = self._loop.time()
            self._free_at = 2 * ended - began if ended - began > _LONG_S else ended

    def wait(self, work: Callable[[], None]) -> None:
        """Run it after those that wait already; it must not raise."""
        self._waiting.append(work)
        if len(self._waiting) == 1:
            self._loop.call_at(self._free_at, self._next)

    def _next(self) -> None:
        self.run(self._waiting[0])
        self._waiting.popleft()
        if self._waiting:
            self._loop.call_at(self._free_at, self._next)
