"""Reads an iterator ahead in a separate thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

__all__ = ["ReadAhead"]

_QUIET_S: Final = 0.005
"""An iterator that yields nothing for this long is considered waiting: its items are delivered."""

ItemT = TypeVar("ItemT")


class ReadAhead(Generic[ItemT]):
    """Iterates over the result of ``make`` in a daemon thread, at most ``limit`` items ahead of the consumer.

    ``make`` is called in that thread too. ``alone`` returns whether an item fills the buffer by itself: the thread then
    waits until it was taken. An abandoned iterator is closed, if possible, when it reaches its next item.
    """

    def __init__(
        self, make: Callable[[], Iterator[ItemT]], *, limit: int, alone: Callable[[ItemT], bool], name: str
    ) -> None:
        self._make, self._limit, self._alone = make, limit, alone
        self._items: deque[ItemT] = deque()
        self._changed = threading.Condition()
        self._awaited = self._full = self._ended = self._given_up = False
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def take(self, patience_s: float, linger_s: float) -> tuple[list[ItemT], bool]:
        """The available items, in order, and whether the iterator has ended with them.

        Waits up to ``patience_s`` for the first and up to ``linger_s`` for more, or less if the iterator waits itself.
        Raises the iterator's error once the items before it are taken.
        """
        with self._changed:
            self._awaited = True
            self._changed.wait_for(lambda: self._items or self._ended, patience_s)
            self._awaited = False
            until = time.monotonic() + linger_s
            while self._items and not (self._full or self._ended) and time.monotonic() < until:
                before = len(self._items)
                self._changed.wait_for(lambda: self._full or self._ended, _QUIET_S)
                if len(self._items) == before:
                    break
            items = [self._items.popleft() for _ in range(len(self._items))]
            self._full = False
            self._changed.notify_all()
            if self._error is not None and not items:
                raise self._error
            return items, self._ended and not self._items and self._error is None

    def give_up(self) -> None:
        """Abandon the iterator: the thread ends at its next item or at its end."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()

    def join(self, timeout_s: float | None) -> bool:
        """Whether the thread has ended within this time (None: wait as long as it takes)."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            items, waiting, limit = self._make(), self._items, self._limit
            try:
                for item in items:
                    # Most items need only an append, which needs no lock: the lock costs as much as a short generator.
                    waiting.append(item)
                    alone = self._alone(item)
                    if (alone or self._awaited or self._given_up or len(waiting) >= limit) and not self._notify(alone):
                        return
            finally:
                if close := getattr(items, "close", None):
                    close()
        except BaseException as error:  # noqa: BLE001 - who takes the items raises it
            self._error = error
        finally:
            with self._changed:
                self._ended = True
                self._changed.notify_all()

    def _notify(self, alone: bool) -> bool:
        """Notify the consumer of new items, and wait while the buffer is full. Returns whether to continue."""
        with self._changed:
            self._full = alone or len(self._items) >= self._limit
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._given_up or not self._full) and not self._given_up
