"""Ends what runs outside of Python once a task or a query has to stop."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

__all__ = ["cancelling"]


@contextlib.contextmanager
def cancelling(stopping: threading.Event, cancel: Callable[[threading.Event], bool]) -> Iterator[None]:
    """While the block lasts: once ``stopping`` is set, call ``cancel`` in a thread until it returns True. Its argument is set when the
    block ends."""
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.1):
            if stopping.is_set() and cancel(ended):
                return

    watcher = threading.Thread(target=watch, name="spark canceller", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
