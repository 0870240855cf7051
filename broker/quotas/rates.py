"""Recent usage, and how long to wait until it is within a limit again. Times are seconds of any monotonic clock."""

from __future__ import annotations

from collections import deque

__all__ = ["Rate", "TokenBucket"]


class Rate:
    """Amounts per second over the last ``windows`` windows of ``window_s``, counted like Kafka's ``Rate``.

    A rate covers at least all windows but one, so that a first burst does not count as a sustained rate.
    """

    __slots__ = ("_samples", "_total", "_window_s", "_windows", "limit", "used_at")

    def __init__(self, windows: int, window_s: float) -> None:
        self._windows = windows
        self._window_s = window_s
        self._samples: deque[list[float]] = deque()
        """[begin, last use, amount], oldest first."""
        self._total = 0.0
        self.limit: float | None = None
        """The limit per second."""
        self.used_at = 0.0

    def use(self, amount: float, now: float) -> float:
        """Count an amount. Returns the seconds to wait until the rate is within the limit, or 0."""
        self._count(amount, now)
        if self.limit is None:
            return 0.0
        elapsed = self._elapsed(now)
        rate = self._total / elapsed
        return (rate - self.limit) / self.limit * elapsed if rate > self.limit else 0.0

    def take_back(self, amount: float, now: float) -> None:
        """Uncount an unused amount."""
        self._count(-amount, now)

    def measure(self, now: float) -> float:
        self._forget(now)
        return self._total / self._elapsed(now)

    @property
    def burst(self) -> float | None:
        """The most that can be used at once within the limit."""
        return None if self.limit is None else self.limit * max(self._windows - 1, 1) * self._window_s

    def _count(self, amount: float, now: float) -> None:
        self.used_at = now
        self._forget(now)
        samples = self._samples
        if not samples or now - samples[-1][0] >= self._window_s:
            samples.append([now, now, 0.0])
        newest = samples[-1]
        newest[1] = now
        newest[2] += amount
        self._total += amount

    def _forget(self, now: float) -> None:
        age = self._windows * self._window_s
        while self._samples and now - self._samples[0][1] >= age:
            self._total -= self._samples.popleft()[2]
        if not self._samples:
            self._total = 0.0

    def _elapsed(self, now: float) -> float:
        elapsed = now - self._samples[0][0] if self._samples else 0.0
        full = int(elapsed / self._window_s)
        if full < self._windows - 1:
            elapsed += (self._windows - 1 - full) * self._window_s
        return max(elapsed, 0.001)


class TokenBucket:
    """Permits bursts of ``windows * window_s`` seconds' worth of the limit; may be overdrawn once (KIP-599)."""

    __slots__ = ("_burst_s", "_filled_at", "_tokens", "limit", "used_at")

    def __init__(self, windows: int, window_s: float) -> None:
        self._burst_s = windows * window_s
        self._tokens: float | None = None
        """None until there is a limit: a bucket starts full."""
        self._filled_at = 0.0
        self.limit: float | None = None
        self.used_at = 0.0

    def wait(self, now: float) -> float:
        """The seconds until the bucket is not empty; 0 if it is not."""
        if self.limit is None:
            return 0.0
        return max(-self._fill(self.limit, now) / self.limit, 0.0)

    def take(self, amount: float, now: float) -> None:
        """Take tokens, even more than there are."""
        self.used_at = now
        if self.limit is not None:
            self._tokens = self._fill(self.limit, now) - amount

    def _fill(self, limit: float, now: float) -> float:
        full = limit * self._burst_s
        if self._tokens is None:
            self._tokens = full
        else:
            self._tokens = min(full, self._tokens + (now - self._filled_at) * limit)
        self._filled_at = now
        return self._tokens
