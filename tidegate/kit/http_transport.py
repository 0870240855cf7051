"""HTTP connections whose answers leave whole (head and body in one system call, one segment, one TLS record), whose requests'
heads are bounded, and which end soon after their server."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["CONNECTION_LOST", "JoiningHttpProtocol", "JoiningTransport"]

CONNECTION_LOST: Final = "tidegate.connection_lost"
"""Where a request's scope has the future that is done when its connection is lost."""

_MOST_HELD: Final = 64 * 1024
"""Bytes that wait at most, so that the back-pressure of the transport beneath is felt within one turn, too."""
_MOST_HEAD: Final = 64 * 1024
"""Bytes of a request's first line and headers, beyond the piece that they begin in; uvicorn has no limit of its own."""
_GOODBYE_S: Final = 0.5
"""How long a client with an idle connection has for its part of TLS' goodbye when the server ends."""


class JoiningTransport(asyncio.Transport):
    """Joins what is written in one turn of the event loop into one write to the transport beneath."""

    def __init__(self, beneath: asyncio.Transport) -> None:
        super().__init__()
        self._beneath, self._loop = beneath, asyncio.get_running_loop()
        self._held: list[bytes | bytearray | memoryview] = []
        self._size = 0
        self._closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closed:
            return
        if not self._held:
            self._loop.call_soon(self._flush)
        self._held.append(data)
        self._size += len(data)
        if self._size > _MOST_HELD:
            self._flush()

    def _flush(self) -> None:
        if self._held:
            held, self._held, self._size = self._held, [], 0
            self._beneath.write(b"".join(held))

    def close(self) -> None:
        """May be called again, as uvicorn does; the second time would take asyncio's TLS transport apart, and abort with it."""
        if not self._closed:
            self._flush()
            self._closed = True
            self._beneath.close()

    def abort(self) -> None:
        self._held.clear()
        self._closed = True
        self._beneath.abort()

    def is_closing(self) -> bool:
        return self._beneath.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._beneath.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._beneath.pause_reading()

    def resume_reading(self) -> None:
        self._beneath.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._beneath.set_protocol(protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self._beneath.get_protocol()


class JoiningHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol; by itself it writes the head of each answer and its body one after the other."""

    _in_head = True
    _heads = 0
    """How many heads have begun or ended."""
    _head_bytes = 0
    """How many bytes came of a head that neither began nor ended with them."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(JoiningTransport(transport))
        self._lost: asyncio.Future[None] = self.loop.create_future()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self._lost.done():
            self._lost.set_result(None)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        if self._head_bytes > _MOST_HEAD:
            self.send_400_response(f"The head of the request is larger than {_MOST_HEAD} bytes")
            return
        heads = self._heads
        super().data_received(data)
        self._head_bytes = self._head_bytes + len(data) if self._in_head and heads == self._heads else 0

    def on_message_begin(self) -> None:
        self._in_head = True
        self._heads += 1
        super().on_message_begin()
        self.scope[CONNECTION_LOST] = self._lost  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._heads += 1
        super().on_headers_complete()

    def shutdown(self) -> None:
        """End the connection: at once when no request is under way, else with its answer."""
        super().shutdown()
        if self.transport.is_closing() and self.scheme == "https":
            self.loop.call_later(_GOODBYE_S, self._leave)

    def _leave(self) -> None:
        """A client that keeps an idle connection in a pool does not read, so it never answers a goodbye: do not wait for it."""
        if not self.flow.write_paused:
            self.transport.abort()
