"""Work on tables beside the sink: on a thread of its own, again and again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

__all__ = ["Background"]

_STOP_S = 60


class Background:
    """Calls ``act`` every interval, never twice at a time. It gets an event that says when to stop."""

    def __init__(self, name: str, interval_ms: int, act: Callable[[threading.Event], None]) -> None:
        self._name, self._interval_ms, self._act = name, interval_ms, act
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._began = time.monotonic()

    def start_if_due(self) -> None:
        """Start once the interval is over, unless the last time still goes on."""
        due = (time.monotonic() - self._began) * 1000 >= self._interval_ms
        if due and (self._thread is None or not self._thread.is_alive()):
            self._began = time.monotonic()
            self._thread = threading.Thread(target=self._act, args=(self._stopping,), name=self._name, daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Ask what goes on to stop, and wait for it for a minute at most."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join(_STOP_S)
