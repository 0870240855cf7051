"""The connection of a request, as handlers see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["ClientConnection", "ConnectionRefusal", "Promise"]


class ConnectionRefusal(Exception):
    """Ends this connection. The text is the reason, which is logged in one line."""


class Promise(Protocol):
    """The future behind an answer: an ``asyncio.Future``, or an equivalent that needs no turn of the event loop."""

    def done(self) -> bool: ...

    def result(self) -> Any: ...

    def cancel(self) -> bool: ...

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None: ...


class ClientConnection(Protocol):
    """The part of a connection that handlers use."""

    peer_port: int
    software: tuple[str, str]
    """The client's program and its version. Empty until ApiVersions has sent them."""
    when_closed: Callable[[], None] | None
    """Called once when the connection closes."""

    def mute_until(self, done: Promise) -> None:
        """Read no further requests until the work is done."""
        ...

    def close(self, reason: str | None) -> None:
        """Close the connection and log the reason."""
        ...
