"""An iterator that a thread of its own goes through, and the items that wait to be taken."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

__all__ = ["ReadAhead"]

_QUIET_S: Final = 0.005
"""An iterator that brings nothing for so long is taken to wait: what it has brought goes out."""

ItemT = TypeVar("ItemT")


class ReadAhead(Generic[ItemT]):
    """Goes through what ``make`` returns in a daemon thread, at most ``limit`` items ahead of who takes them.

    ``make`` is called in that thread too. ``alone`` says of an item whether it fills the room by itself: the thread goes on
    when it has been taken. An iterator that is given up is closed, if it can be, as soon as it comes to its next item.
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
        """The items there are, in order; and whether the iterator has ended with them.

        Waits up to ``patience_s`` for the first and up to ``linger_s`` for more, less where the iterator waits itself. Raises
        what the iterator raised, once the items before it are taken.
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
        """Take no more: the thread ends when the iterator comes to its next item or to its end."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()

    def join(self, timeout_s: float | None) -> bool:
        """Whether the thread has ended within this time (None: however long it takes)."""
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            items, waiting, limit = self._make(), self._items, self._limit
            try:
                for item in items:
                    # An append needs no lock, and most items need no more: the lock costs as much as a short generator.
                    waiting.append(item)
                    alone = self._alone(item)
                    if (alone or self._awaited or self._given_up or len(waiting) >= limit) and not self._told(alone):
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

    def _told(self, alone: bool) -> bool:
        """Tell who waits that there are items, and wait where there is no room; whether to go on."""
        with self._changed:
            self._full = alone or len(self._items) >= self._limit
            self._changed.notify_all()
            return self._changed.wait_for(lambda: self._given_up or not self._full) and not self._given_up
