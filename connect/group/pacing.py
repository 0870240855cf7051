"""When to request a rebalance: soon for a single change, rarely for many.

Each new connector needs two rounds, one to assign it and one to assign its planned tasks. A thousand new ones at once
would keep the group rebalancing. So a first change waits only a moment; each round soon after the previous one waits
longer, until nothing has changed for a while.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["Pacing"]

_STEPS: Final = ((0.02, 0.05), (0.1, 0.5), (0.5, 5.0), (0.5, 20.0))
"""For consecutive rounds: the quiet time before a round is requested, and the time after which it is requested anyway.
"""
_CALM_S: Final = (2.0, 2.0, 3.0, 10.0)
"""At each step, the quiet time after which the next change counts as a first one again."""


class Pacing:
    """Calls ``ask`` after changes, on one event loop.

    While ``more_to_come`` it keeps waiting, as long as the step allows.
    """

    def __init__(self, ask: Callable[[], None], more_to_come: Callable[[], bool] = lambda: False) -> None:
        self._ask, self._more_to_come = ask, more_to_come
        self._timer: asyncio.TimerHandle | None = None
        self._latest = 0.0
        self._level = 0
        self._last = float("-inf")

    def changed(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._timer is None:
            if now - self._last > _CALM_S[self._level]:
                self._level = 0
            self._latest = now + _STEPS[self._level][1]
        else:
            self._timer.cancel()
        self._last = now
        self._timer = loop.call_at(min(now + _STEPS[self._level][0], self._latest), self._fire)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _fire(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now < self._latest and self._more_to_come():
            self._timer = loop.call_at(min(now + _STEPS[self._level][0], self._latest), self._fire)
            return
        self._timer = None
        self._last = now
        self._level = min(self._level + 1, len(_STEPS) - 1)
        self._ask()
