"""Rates, averages and maxima over the last half to whole minute, as in Kafka's metrics.

The windows are those of Kafka's ``metrics.sample.window.ms`` and ``metrics.num.samples``.
"""

from __future__ import annotations

import time
from typing import Final

__all__ = ["Windowed"]

_WINDOW_S: Final = 30.0
_DIGITS: Final = 3


class _Window:
    __slots__ = ("count", "least", "most", "since", "total")

    def __init__(self, since: float) -> None:
        self.since, self.count = since, 0
        self.total = self.least = self.most = 0.0


class Windowed:
    """Values of the current window and the previous one, and the total count. Recorded by one thread, read by any."""

    __slots__ = ("_before", "_current", "count", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self._current = _Window(time.monotonic())
        self._before = _Window(0.0)

    def record(self, value: float) -> None:
        self.count += 1
        self.total += value
        now, current = time.monotonic(), self._current
        age_s = now - current.since
        if age_s >= _WINDOW_S:
            self._before = current if age_s < 2 * _WINDOW_S else _Window(0.0)
            current = self._current = _Window(now)
        current.least = min(current.least, value) if current.count else value
        current.most = max(current.most, value) if current.count else value
        current.count += 1
        current.total += value

    def _seen(self) -> list[_Window]:
        age_s = time.monotonic() - self._current.since
        seen = [self._current] if age_s < 2 * _WINDOW_S else []
        seen += [self._before] if age_s < _WINDOW_S else []
        return [window for window in seen if window.count]

    @property
    def average(self) -> float:
        seen = self._seen()
        count = sum(window.count for window in seen)
        return round(sum(window.total for window in seen) / count, _DIGITS) if count else 0.0

    @property
    def least(self) -> float:
        return round(min((window.least for window in self._seen()), default=0.0), _DIGITS)

    @property
    def most(self) -> float:
        return round(max((window.most for window in self._seen()), default=0.0), _DIGITS)

    @property
    def rate(self) -> float:
        """The sum of the values per second."""
        return round(sum(window.total for window in self._seen()) / self._covered_s, _DIGITS)

    @property
    def count_rate(self) -> float:
        """The number of values per second."""
        return round(sum(window.count for window in self._seen()) / self._covered_s, _DIGITS)

    @property
    def _covered_s(self) -> float:
        """As in Kafka, there is always one complete window before the current one."""
        age_s = time.monotonic() - self._current.since
        return age_s + _WINDOW_S if age_s < _WINDOW_S else age_s
