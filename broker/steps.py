"""Long work in steps, so that the event loop serves clients in between."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar

__all__ = ["Step", "Steps", "run_through"]

Step = Callable[[], None] | None
"""None: others may be served now. Or what another thread has to do before the next step."""
R = TypeVar("R")

_SLICE_S: Final = 0.005


def run_through(steps: Generator[Step, None, R]) -> R:
    """Do all steps at once in this thread, and return their result."""
    while True:
        try:
            step = next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
        if step is not None:
            step()


class _Work(NamedTuple):
    steps: Generator[Step, None, Any]
    done: asyncio.Future[Any]


class Steps:
    """Works of several steps, one work after the other, on the event loop.

    Other callbacks of the loop run after each 5 ms of steps. A single step takes as long as it does.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._works: deque[_Work] = deque()
        self._thread = ThreadPoolExecutor(1, "steps")

    def run(self, steps: Generator[Step, None, R]) -> asyncio.Future[R]:
        """The result of a work: done already, if no other work waits and it takes less than a slice.

        Cancelling the future does not stop the work.
        """
        done: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._works.append(_Work(steps, done))
        if len(self._works) == 1:
            self._slice()
        return done

    def close(self) -> None:
        """Leave what is not done."""
        self._thread.shutdown()
        while self._works:
            work = self._works.popleft()
            work.steps.close()
            work.done.cancel()

    def _slice(self, before: asyncio.Future[None] | None = None) -> None:
        """Go on. ``before`` is what a thread has done for the first work."""
        until = self._clock() + _SLICE_S
        error = None if before is None else before.exception()
        while self._works:
            steps, done = self._works[0]
            try:
                step = next(steps) if error is None else steps.throw(error)
            except StopIteration as end:
                self._works.popleft()
                if not done.done():
                    done.set_result(end.value)
            except Exception as failure:  # noqa: BLE001 - the one who waits for the result gets it
                self._works.popleft()
                if not done.done():
                    done.set_exception(failure)
            else:
                if step is not None:
                    asyncio.get_running_loop().run_in_executor(self._thread, step).add_done_callback(self._slice)
                    return
            error = None
            if self._works and self._clock() >= until:
                asyncio.get_running_loop().call_soon(self._slice)
                return
