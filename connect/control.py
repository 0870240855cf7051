"""How a task's thread is told to pause, go on and stop."""

from __future__ import annotations

import threading
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
