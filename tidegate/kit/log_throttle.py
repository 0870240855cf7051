"""Limits repeated warnings and errors: clients can cause them, and a disk full of log lines helps no one."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

__all__ = ["Throttle"]

_MOST_KINDS: Final = 5000
"""The number of line kinds to count; beyond it the least recent one is dropped."""
_FACTS: Final = ("connector", "task", "topic")
"""Facts that distinguish lines of one event, so that one connector's errors do not hide another's."""


class Throttle(logging.Filter):
    """Passes ``burst`` lines of one kind per ``window_s``; the first one after that says how many were ``suppressed``.

    Lines below WARNING always pass, because a service's own activity is limited. Called with the handler's lock held.
    """

    def __init__(self, burst: int = 20, window_s: float = 10.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._burst, self._window_s, self._clock = burst, window_s, clock
        self._kinds: OrderedDict[tuple[Any, ...], list[float]] = OrderedDict()
        """By kind: the window's start, lines passed in it, lines suppressed."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno < logging.WARNING:
            return True
        now, kind = self._clock(), _kind(record)
        counts = self._kinds.setdefault(kind, [now, 0, 0])
        self._kinds.move_to_end(kind)
        if len(self._kinds) > _MOST_KINDS:
            self._kinds.popitem(last=False)
        if now - counts[0] >= self._window_s:
            suppressed, counts[:] = int(counts[2]), [now, 0, 0]
            if suppressed:
                _say(record, suppressed)
        if counts[1] < self._burst:
            counts[1] += 1
            return True
        counts[2] += 1
        return False


def _kind(record: logging.LogRecord) -> tuple[Any, ...]:
    """The kind of a line: the logger, its words without values, and the facts that distinguish kinds."""
    if isinstance(record.msg, dict):
        return (record.name, record.msg.get("event"), *(str(record.msg.get(fact)) for fact in _FACTS))
    return (record.name, str(record.msg)[:200])


def _say(record: logging.LogRecord, suppressed: int) -> None:
    if isinstance(record.msg, dict):
        record.msg["suppressed"] = suppressed
    else:
        record.msg = f"{record.msg} ({suppressed} lines like this were suppressed)"
