"""When a task that failed is started again by itself."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Final

from connect.config.connector import CommonConfig

__all__ = ["Restarts", "was_fenced"]

_MOST_FENCINGS: Final = 10
_FENCINGS_S: Final = 600.0
"""A task that is fenced more often in this time has a rival that lasts, or transactions that always take too long."""


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
        self._fencings: deque[float] = deque(maxlen=_MOST_FENCINGS)

    def after_fencing(self) -> float | None:
        """Like ``after_failure``, of a source that was fenced: it moved and came back, or its transaction expired. Its worker
        is then asked whether it is still to run here, and it goes on after what was committed last.
        """
        now = self._clock()
        if len(self._fencings) == _MOST_FENCINGS and now - self._fencings[0] < _FENCINGS_S:
            return None
        self._fencings.append(now)
        return self._first_s

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


def was_fenced(error: BaseException) -> bool:
    """Whether a task failed because its transactional producer was fenced by another of its name, or by the broker when a
    transaction expired (KIP-98, KIP-588).
    """
    from broker.client.errors import InvalidProducerEpoch, ProducerFenced

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ProducerFenced | InvalidProducerEpoch):
            return True
        cause = cause.__cause__
    return False
