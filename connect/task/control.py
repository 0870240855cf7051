"""How a task's thread is told to pause, go on, stop and give up; and the gate that its commits pass."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

__all__ = ["CANCEL_S", "CommitGate", "Stopped", "TaskCancelled", "TaskControl"]

CANCEL_S: Final = 1.5
"""How long a task that did not stop in time may take to end once it is cancelled."""


class Stopped(Exception):
    """Raised out of a wait when the task is told to stop."""


class TaskCancelled(Stopped):
    """The task was cancelled: nothing of it is committed any more."""


class CommitGate:
    """A gate for commits. Once it is closed no commit begins, and a commit that has begun ends before it is closed."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._passing = 0
        self._closed = False

    @property
    def closed(self) -> bool:
        return self._closed

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Around the request that commits. Raises TaskCancelled when the gate is closed."""
        with self._changed:
            if self._closed:
                raise TaskCancelled("the task was cancelled before the commit began")
            self._passing += 1
        try:
            yield
        finally:
            with self._changed:
                self._passing -= 1
                self._changed.notify_all()

    def close(self, timeout_s: float) -> bool:
        """From any thread. Waits so long for a commit that has begun; whether there is none any more."""
        with self._changed:
            self._closed = True
            return self._changed.wait_for(lambda: not self._passing, timeout_s)


class TaskControl:
    """Shared by the task's thread and those that give it orders."""

    def __init__(self, *, paused: bool = False) -> None:
        self.stopping = threading.Event()
        self.interrupted = threading.Event()
        """Set while the task is to stop or to pause."""
        if paused:
            self.interrupted.set()
        self.gate = CommitGate()
        self.job_ordered = threading.Event()
        """Somebody wants a job to run before its time."""
        self.job_cancelled = threading.Event()
        """Somebody wants the run of a job that is under way to end."""
        self._paused = paused
        self._deadline = float("inf")
        self._changed = threading.Condition()
        self._call: tuple[str, float] | None = None

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """Around each call of the plugin's own code: so that one that does not return is noticed (``running_call``), and none
        follows once the task is cancelled. Raises TaskCancelled."""
        self._require_not_cancelled(name)
        with self.ending(name):
            yield
        self._require_not_cancelled(name)

    @contextmanager
    def ending(self, name: str) -> Iterator[None]:
        """Likewise around the last calls, which come in any case."""
        self._call = (name, time.monotonic())
        try:
            yield
        finally:
            self._call = None

    def _require_not_cancelled(self, name: str) -> None:
        if self.cancelled:
            raise TaskCancelled(f"the task was cancelled at {name}")

    @property
    def running_call(self) -> tuple[str, float] | None:
        """The call of the task that is running, and for how many seconds it has been; from any thread."""
        call = self._call
        return None if call is None else (call[0], time.monotonic() - call[1])

    @property
    def paused(self) -> bool:
        return self._paused

    def set_paused(self, paused: bool) -> None:
        with self._changed:
            self._paused = paused
            if paused:
                self.interrupted.set()
            elif not self.stopping.is_set():
                self.interrupted.clear()
            self._changed.notify_all()

    def stop(self, timeout_s: float = float("inf")) -> None:
        """The task is to end in order within this time."""
        self._deadline = min(self._deadline, time.monotonic() + timeout_s)
        self.stopping.set()
        with self._changed:
            self.interrupted.set()
            self._changed.notify_all()

    def time_left_s(self, at_most: float) -> float:
        """How long a wait may be: ``at_most``, and not past the time that the task has to stop."""
        return max(0.0, min(at_most, self._deadline - time.monotonic()))

    @property
    def cancelled(self) -> bool:
        return self.gate.closed

    def wait_while_paused(self, timeout_s: float) -> None:
        """Returns when it is not paused or is to stop, or after the time."""
        with self._changed:
            self._changed.wait_for(lambda: not self._paused or self.stopping.is_set(), timeout_s)
