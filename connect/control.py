"""How a task's thread is told to pause, go on and stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

__all__ = ["Runner", "Stopped", "TaskControl"]


class Stopped(Exception):
    """Raised out of a wait when the task is told to stop."""


class TaskControl:
    """Shared by the task's thread and those that give it orders."""

    def __init__(self, *, paused: bool = False) -> None:
        self.stopping = threading.Event()
        self._paused = paused
        self._changed = threading.Condition()
        self._call: tuple[str, float] | None = None

    @contextmanager
    def calling(self, name: str) -> Iterator[None]:
        """Around each call of the plugin's own code: so that one that does not return is noticed (``running_call``)."""
        self._call = (name, time.monotonic())
        try:
            yield
        finally:
            self._call = None

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
            self._changed.notify_all()

    def stop(self) -> None:
        self.stopping.set()
        with self._changed:
            self._changed.notify_all()

    def wait_while_paused(self, timeout_s: float) -> None:
        """Returns when it is not paused or is to stop, or after the time."""
        with self._changed:
            self._changed.wait_for(lambda: not self._paused or self.stopping.is_set(), timeout_s)


class Runner(Protocol):
    """Drives one task from its start to its stop, in one thread."""

    def run(self) -> None:
        """Returns, or raises Stopped, when the task was told to stop; raises what failed it. The task is stopped either way."""
        ...

    def interrupt(self) -> None:
        """From another thread, after ``stopping`` was set in vain: make a running call return."""
        ...

    def statistics(self) -> dict[str, Any]:
        """Counters by name, for metrics."""
        ...
