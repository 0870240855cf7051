"""Limits on the number of connections and their rate: for the broker, a listener, an address (KIP-402, KIP-612)."""

from __future__ import annotations

import socket
import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

from broker.quotas.rates import Rate

__all__ = ["ConnectionLimits"]

_NO_LIMIT: Final = (1 << 31) - 1


class ConnectionLimits:
    """Counts connections. ``protected`` is the listener that is exempt from the broker's own limit."""

    def __init__(
        self,
        *,
        most: int,
        most_by_listener: Mapping[str, int],
        rate: int,
        rate_by_listener: Mapping[str, int],
        most_per_address: int,
        most_by_address: Mapping[str, int],
        protected: str | None,
        windows: int = 11,
        window_s: float = 1,
    ) -> None:
        self._most = most
        self._most_by_listener = most_by_listener
        self._most_per_address = most_per_address
        self._most_by_address = {
            address: most for host, most in most_by_address.items() for address in _addresses(host)
        }
        self._protected = protected if len(most_by_listener) > 1 else None
        self._window_s = window_s
        self._rate = _rate(rate, windows, window_s)
        self._rates = {name: _rate(limit, windows, window_s) for name, limit in rate_by_listener.items()}
        self._listeners: Counter[str] = Counter()
        self._addresses: Counter[str] = Counter()

    def take_over(self, before: ConnectionLimits) -> None:
        """Continue with the counts of previous limits."""
        self._listeners, self._addresses = before._listeners, before._addresses

    @property
    def total(self) -> int:
        return self._listeners.total()

    def has_room(self, listener: str) -> bool:
        """Whether a listener may accept a connection now; if not, another one has to end first."""
        if self._listeners[listener] >= self._most_by_listener[listener]:
            return False
        return listener == self._protected or self.total < self._most

    @property
    def is_over(self) -> bool:
        """Whether a connection has to be closed to make room for one of the protected listener."""
        return self.total > self._most

    def count_accepted(self, listener: str) -> float:
        """Count an accepted connection for the rates. Returns the seconds that it and later ones have to wait."""
        now = time.monotonic()
        rates = [self._rates[listener], None if listener == self._protected else self._rate]
        waiting = max((rate.use(1, now) for rate in rates if rate is not None), default=0.0)
        return min(waiting, self._window_s)

    def enter(self, listener: str, address: str) -> str | None:
        """Count a connection until it leaves. Returns the reason if it is refused."""
        most = self._most_by_address.get(address, self._most_per_address)
        if self._addresses[address] >= most:
            return f"{address} has {most} connections already: max.connections.per.ip"
        self._listeners[listener] += 1
        self._addresses[address] += 1
        return None

    def leave(self, listener: str, address: str) -> None:
        self._listeners[listener] -= 1
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]


def _rate(limit: int, windows: int, window_s: float) -> Rate | None:
    if limit >= _NO_LIMIT:
        return None
    rate = Rate(windows, window_s)
    rate.limit = float(max(limit, 1))
    return rate


def _addresses(host: str) -> set[str]:
    try:
        return {str(result[4][0]) for result in socket.getaddrinfo(host, None, proto=socket.IPPROTO_TCP)}
    except OSError:
        return {host}
