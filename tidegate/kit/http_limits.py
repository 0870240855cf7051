"""Limits of an HTTP server for untrusted clients: connections, time for a head and a body, size of bodies in flight."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Protocol

from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger
from tidegate.kit.open_files import most_open_files

__all__ = ["BodyBudget", "BodyBudgetExceeded", "Connections", "HttpLimits", "most_connections"]

logger = get_logger(__name__)

_MOST_CONNECTIONS: Final = 50_000
"""Where files are not the limit, memory is."""
_FILES_KEPT: Final = 256
"""The number of file descriptors reserved for everything but connections."""
_CLOSED_AT_ONCE: Final = 20
"""When there is no room, one in this many connections is closed, so that not every further connection triggers a
search.
"""
_SAY_EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of one HTTP server; the defaults suit every component."""

    connections: int | None = None
    """Concurrent connections; by default half of the files that the process may still open (a component may have two
    servers).
    """
    handshake_s: float = 10.0
    """For the TLS handshake, before the connection counts."""
    head_s: float = 10.0
    """From the first byte of a request to the end of its head, and from the start of a connection to that first byte.
    """
    idle_s: float = 60.0
    """Between two requests on a connection."""
    body_s: float = 30.0
    """For a body, plus time by its size: see ``body_bytes_per_s``."""
    body_bytes_per_s: int = 8 * 1024
    """A body slower than this on average is aborted after ``body_s``."""
    pipelined: int = 32
    """Pipelined requests per connection."""


def most_connections() -> int:
    """How many connections one server of this process may have, by the limit on open files (``ulimit -n``)."""
    return min(max(64, (most_open_files() - _FILES_KEPT) // 2), _MOST_CONNECTIONS)


class Connection(Protocol):
    """The interface of a connection for ``Connections``."""

    idle_since: float | None
    """The loop's time since which no request is being answered on it; None while one is."""

    def refuse(self) -> None:
        """Close it at once."""
        ...


class Connections:
    """The open connections of one server. If there is no room, those idle for longest are closed."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._last_warning = float("-inf")
        self._ended = 0

    def make_room(self, newest: Connection, open_now: Collection[Connection], now: float) -> bool:
        """Called with each new connection, which is in ``open_now``. Returns False if it must be refused."""
        excess = len(open_now) - self._most
        if excess <= 0:
            return True
        idle = [other for other in open_now if other.idle_since is not None and other is not newest]
        idle.sort(key=lambda other: other.idle_since or 0.0)
        del idle[max(excess, self._most // _CLOSED_AT_ONCE) :]
        for connection in idle:
            connection.refuse()
        self._ended += max(1, len(idle))
        if now - self._last_warning > _SAY_EVERY_S:
            logger.warning("too many connections: idle ones are ended", limit=self._most, ended=self._ended)
            self._last_warning, self._ended = now, 0
        return len(idle) >= excess


class BodyBudgetExceeded(TidegateError):
    """The bodies of all requests together are too large at the moment."""

    http_status = 503
    http_headers: Final = {"Retry-After": "1"}


class BodyBudget:
    """Limits the total size of all bodies of one application that are being received or handled."""

    def __init__(self, most_bytes: int) -> None:
        self._most, self._taken = most_bytes, 0

    def take(self, size: int) -> None:
        """Raises BodyBudgetExceeded if there is no room; earlier amounts stay taken."""
        if self._taken + size > self._most:
            raise BodyBudgetExceeded(f"The bodies of requests exceed {self._most} bytes at the moment; try again later")
        self._taken += size

    def give_back(self, size: int) -> None:
        self._taken -= size
