"""The background event loop that the blocking clients run on, one per process."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

__all__ = ["call", "submit"]

T = TypeVar("T")


class _Background:
    """The loop of this process. A forked process starts a new one with its first call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop, self._pid = asyncio.new_event_loop(), os.getpid()
                thread = threading.Thread(target=self._loop.run_forever, name="kafka clients", daemon=True)
                # an empty context: the thread serves all callers, not only the first
                contextvars.Context().run(thread.start)
            return self._loop


_background = _Background()


def submit(work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
    """Start a coroutine on the background loop."""
    return asyncio.run_coroutine_threadsafe(work, _background.loop())


def call(work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
    """Run a coroutine on the background loop and wait for its result; TimeoutError cancels it."""
    future = submit(work)
    try:
        return future.result(timeout_s)
    except TimeoutError:
        future.cancel()
        raise
    except KeyboardInterrupt:
        future.cancel()
        raise
