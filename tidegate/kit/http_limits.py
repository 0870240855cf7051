"""How much an HTTP face takes from strangers: connections, time for a head and a body, bytes of bodies on their way."""

from __future__ import annotations

import resource
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Protocol

from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["BodyBudget", "BodyBudgetExceeded", "Connections", "HttpLimits", "most_connections"]

logger = get_logger(__name__)

_FILES_KEPT: Final = 256
"""Of the files that a process may open, those that connections leave to everything else."""
_CLOSED_AT_ONCE: Final = 20
"""One in so many connections is closed when there is no room, so that not every further one looks for an idle one again."""
_SAY_EVERY_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Bounds of one HTTP server; the defaults suit every face."""

    connections: int | None = None
    """Open at the same time; by default half of the files that the process may still open (a component may have two servers)."""
    handshake_s: float = 10.0
    """For TLS, before the connection counts."""
    head_s: float = 10.0
    """From the first byte of a request to the end of its head, and from the connection's start to that first byte."""
    idle_s: float = 60.0
    """Between two requests on a connection."""
    body_s: float = 30.0
    """For a body, and further time by its bytes: see ``body_bytes_per_s``."""
    body_bytes_per_s: int = 8 * 1024
    """A body slower than this on average is given up after ``body_s``."""
    pipelined: int = 32
    """Requests that one connection sends ahead of their answers."""


def most_connections() -> int:
    """How many connections one server of this process may have, by the limit on open files (``ulimit -n``)."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(64, (soft - _FILES_KEPT) // 2)


class Connection(Protocol):
    """What ``Connections`` needs of a connection."""

    idle_since: float | None
    """The loop's time since when no request is being answered on it; None while one is."""

    def refuse(self) -> None:
        """End it at once."""
        ...


class Connections:
    """The open connections of one server. When there is no room, those that have been idle for the longest time are ended."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._said = float("-inf")
        self._ended = 0

    def make_room(self, newest: Connection, open_now: Collection[Connection], now: float) -> bool:
        """Called with each new connection, itself among ``open_now``; False where it has to be refused."""
        excess = len(open_now) - self._most
        if excess <= 0:
            return True
        idle = [other for other in open_now if other.idle_since is not None and other is not newest]
        idle.sort(key=lambda other: other.idle_since or 0.0)
        del idle[max(excess, self._most // _CLOSED_AT_ONCE) :]
        for connection in idle:
            connection.refuse()
        self._ended += max(1, len(idle))
        if now - self._said > _SAY_EVERY_S:
            logger.warning("too many connections: idle ones are ended", limit=self._most, ended=self._ended)
            self._said, self._ended = now, 0
        return len(idle) >= excess


class BodyBudgetExceeded(TidegateError):
    """The bodies of all requests together are too large at the moment."""

    http_status = 503
    http_headers: Final = {"Retry-After": "1"}


class BodyBudget:
    """Bounds the bytes of all bodies of one face that are being received or handled."""

    def __init__(self, most_bytes: int) -> None:
        self._most, self._taken = most_bytes, 0

    def take(self, size: int) -> None:
        """Raises BodyBudgetExceeded where there is no room; what was taken before stays taken."""
        if self._taken + size > self._most:
            raise BodyBudgetExceeded(f"The bodies of requests exceed {self._most} bytes at the moment; try again later")
        self._taken += size

    def give_back(self, size: int) -> None:
        self._taken -= size
