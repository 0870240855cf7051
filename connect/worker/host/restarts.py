"""When a task that failed is started again by itself."""

from __future__ import annotations

import time
from collections.abc import Callable

from connect.config.connector import CommonConfig

__all__ = ["Restarts"]


class Restarts:
    """The ``task.restart.*`` keys of one task: how often, and after how long a time each."""

    def __init__(self, config: CommonConfig, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = config.task_restart_max
        self._first_s, self._longest_s = (
            config.task_restart_backoff_ms / 1000,
            config.task_restart_backoff_max_ms / 1000,
        )
        self._clock = clock
        self._began = clock()
        self.count = 0

    def after_failure(self) -> float | None:
        """Seconds until the task is to be started again; None where it stays FAILED. It counts anew after a good run."""
        if self._clock() - self._began >= self._longest_s:
            self.count = 0
        if 0 <= self._limit <= self.count:
            return None
        self.count += 1
        return float(min(self._first_s * 2 ** (self.count - 1), self._longest_s))

    def started(self) -> None:
        """The task is being started again."""
        self._began = self._clock()
