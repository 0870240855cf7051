"""The connection of a request, as handlers see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

__all__ = ["ClientConnection", "ConnectionRefusal", "Promise"]


class ConnectionRefusal(Exception):
    """This connection cannot go on; the text is the reason, for one line in the log."""


class Promise(Protocol):
    """The future behind an answer: an ``asyncio.Future``, or something like one that needs no turn of the event loop."""

    def done(self) -> bool: ...

    def result(self) -> Any: ...

    def cancel(self) -> bool: ...

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None: ...


class ClientConnection(Protocol):
    """The side of a connection that handlers see."""

    peer_port: int
    software: tuple[str, str]
    """The client's program and its version, once ApiVersions has told them."""
    when_closed: Callable[[], None] | None
    """Called once when the connection closes."""

    def mute_until(self, done: Promise) -> None:
        """Read no further requests until the work is done."""
        ...

    def close(self, reason: str | None) -> None:
        """End the connection; the reason is logged."""
        ...
