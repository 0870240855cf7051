"""A task's statistics, updated per batch and never per record: totals, and rates of the last half to whole minute.

The attributes are those of Kafka Connect's JMX groups (``connector-task-metrics``, ``source-task-metrics``,
``sink-task-metrics``).
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final

from tidegate.kit.windowed import Windowed

__all__ = ["SentRows", "TaskMeasures"]

_DIGITS: Final = 3


class TaskMeasures:
    """``connector-task-metrics``: what every task has."""

    def __init__(self) -> None:
        self._batches = Windowed()
        self._commit_ms, self._commits_failed = Windowed(), Windowed()
        self._paused: bool | None = None
        self._since = time.monotonic()
        self._spent = {True: 0.0, False: 0.0}

    def batch(self, records: int) -> None:
        self._batches.record(records)

    def state(self, *, paused: bool) -> None:
        """The task runs, or is paused, from now on."""
        now = time.monotonic()
        if self._paused is not None:
            self._spent[self._paused] += now - self._since
        self._paused, self._since = paused, now

    @contextmanager
    def committing(self) -> Iterator[CommitOutcome]:
        """Around a commit of offsets; see ``CommitOutcome``."""
        outcome, began = CommitOutcome(), time.monotonic()
        try:
            yield outcome
        finally:
            self._commits_failed.record(1.0 if outcome.failed else 0.0)
            self._commit_ms.record((time.monotonic() - began) * 1000)

    def attributes(self) -> dict[str, float]:
        spent = dict(self._spent)
        if self._paused is not None:
            spent[self._paused] += time.monotonic() - self._since
        whole_s = sum(spent.values()) or 1.0
        failed = self._commits_failed.average
        tried = self._commit_ms.most > 0
        return {
            "running-ratio": round(spent[False] / whole_s, _DIGITS),
            "pause-ratio": round(spent[True] / whole_s, _DIGITS),
            "batch-size-max": self._batches.most,
            "batch-size-avg": self._batches.average,
            "offset-commit-max-time-ms": self._commit_ms.most,
            "offset-commit-avg-time-ms": self._commit_ms.average,
            "offset-commit-failure-percentage": failed,
            "offset-commit-success-percentage": round(1 - failed, _DIGITS) if tried else 0.0,
        }


class CommitOutcome:
    """Told by whoever commits: it has ``failed`` until it says otherwise."""

    __slots__ = ("failed",)

    def __init__(self) -> None:
        self.failed = True


class SentRows:
    """The rows of a source that were polled and are not yet acknowledged, and those that the log has.

    ``add`` is called by the task's thread, the numbers are read by another.
    """

    def __init__(self) -> None:
        self._waiting: deque[tuple[Sequence[Future[Any]], int, int]] = deque()
        self._lock = Lock()
        self.polled = self.active = self.written = 0
        self._polls, self._writes, self._actives = Windowed(), Windowed(), Windowed()

    def add(self, polled: int, written: int, futures: Sequence[Future[Any]]) -> None:
        """A batch of ``polled`` rows became ``written`` records, safe when all futures are done."""
        with self._lock:
            self.polled += polled
            self.active += polled
            self._polls.record(polled)
            self._waiting.append((futures, polled, written))
        self.count_acknowledged()

    def count_acknowledged(self) -> None:
        with self._lock:
            while self._waiting and all(future.done() for future in self._waiting[0][0]):
                futures, polled, written = self._waiting.popleft()
                self.active -= polled
                if not any(future.cancelled() or future.exception() is not None for future in futures):
                    self.written += written
                    self._writes.record(written)
            self._actives.record(self.active)

    def attributes(self) -> dict[str, float]:
        self.count_acknowledged()
        return {
            "source-record-poll-total": self.polled,
            "source-record-poll-rate": self._polls.rate,
            "source-record-write-total": self.written,
            "source-record-write-rate": self._writes.rate,
            "source-record-active-count": self.active,
            "source-record-active-count-max": self._actives.most,
            "source-record-active-count-avg": self._actives.average,
        }
