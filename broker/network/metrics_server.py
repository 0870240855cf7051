"""Serves only ``GET /metrics``, without a web framework, to keep the broker small."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

from tidegate.kit.http_security import basic_credentials
from tidegate.kit.users import UsersFile

__all__ = ["MetricsServer"]

_TIMEOUT_S: Final = 10
"""Time limits for a TLS handshake, for a request with its answer, and for closing TLS."""
_MOST_CONNECTIONS: Final = 100
"""Connections at a time, including TLS handshakes.

The oldest is closed for a new one. They use the broker's file descriptors, which clients of the log need, and asyncio
has 256 KiB for each TLS connection.
"""
_BACKLOG: Final = 100
_WAIT_S: Final = 0.1
"""Delay before accepting again, after an accept failed."""
_HEAD_BYTES: Final = 16 * 1024
_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"


class MetricsServer:
    """Serves the result of ``render`` on one address, over HTTP/1.1, one request per connection.

    With ``users`` it requires a user and a password (RFC 7617); with a ``context`` it accepts only TLS.
    """

    def __init__(
        self,
        address: str,
        render: Callable[[], Awaitable[bytes]],
        *,
        users: UsersFile | None = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        host, _, port = address.rpartition(":")
        self._host, self._port = host.strip("[]"), int(port)
        self._render, self._users, self._context = render, users, context
        self._listeners: list[socket.socket] = []
        self._accepting: list[asyncio.Task[None]] = []
        self._connections: dict[asyncio.Task[None], None] = {}
        """Oldest first."""

    async def start(self) -> str:
        """Listen. Returns the URL to scrape. Raises OSError."""
        loop = asyncio.get_running_loop()
        addresses = await loop.getaddrinfo(
            self._host or None, self._port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        try:
            for family, kind, protocol, _, address in dict.fromkeys(addresses):
                listener = socket.socket(family, kind, protocol)
                self._listeners.append(listener)
                listener.setblocking(False)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                listener.bind(address)
                listener.listen(_BACKLOG)
        except OSError:
            self._close_listeners()
            raise
        self._accepting = [loop.create_task(self._accept(listener)) for listener in self._listeners]
        port = self._listeners[0].getsockname()[1]
        host = f"[{self._host}]" if ":" in self._host else self._host or "127.0.0.1"
        return f"http{'s' if self._context is not None else ''}://{host}:{port}/metrics"

    async def stop(self) -> None:
        tasks = [*self._accepting, *self._connections]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._close_listeners()

    def _close_listeners(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _ = await loop.sock_accept(listener)
            except OSError:  # the client is gone, or the process is out of descriptors: open connections will end
                await asyncio.sleep(_WAIT_S)
                continue
            if len(self._connections) >= _MOST_CONNECTIONS:
                oldest = next(iter(self._connections))
                oldest.cancel()
                del self._connections[oldest]
            connection = loop.create_task(self._serve(sock))
            self._connections[connection] = None
            connection.add_done_callback(lambda done: self._connections.pop(done, None))
            await asyncio.sleep(0)  # let the task begin: cancelled before that, it would leave its socket open

    async def _serve(self, sock: socket.socket) -> None:
        """Answer a request. Cancelled if another connection needs the room."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(_HEAD_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        times = {"ssl_handshake_timeout": _TIMEOUT_S, "ssl_shutdown_timeout": _TIMEOUT_S} if self._context else {}
        try:
            transport, _ = await loop.connect_accepted_socket(lambda: protocol, sock, ssl=self._context, **times)
        except (OSError, TimeoutError):  # not TLS, or the client is gone
            sock.close()
            return
        writer = asyncio.StreamWriter(transport, protocol, reader, loop)
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._answer(head))
                await writer.drain()
            writer.close()
            with contextlib.suppress(OSError):  # may also be an error of TLS: the client is still sending
                await writer.wait_closed()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            transport.abort()

    async def _may(self, head: bytes, users: UsersFile) -> bool:
        authorization = next(
            (line for line in head.split(b"\r\n")[1:] if line.lower().startswith(b"authorization:")), b""
        )
        credentials = basic_credentials(authorization.partition(b":")[2].decode("latin-1").strip())
        user = await users.verified(*credentials) if credentials is not None else None
        return user is not None and user.may("read", "platform", "*")

    async def _answer(self, head: bytes) -> bytes:
        if self._users is not None and not await self._may(head, self._users):
            return _response(
                b"401 Unauthorized",
                b"Give a user and a password.\n",
                more=b'WWW-Authenticate: Basic realm="tidegate"\r\n',
            )
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if path != b"/metrics":
            return _response(b"404 Not Found", b"There is only /metrics here.\n")
        if method not in (b"GET", b"HEAD"):
            return _response(b"405 Method Not Allowed", b"GET /metrics.\n")
        return _response(b"200 OK", await self._render(), head_only=method == b"HEAD")


def _response(status: bytes, body: bytes, *, more: bytes = b"", head_only: bool = False) -> bytes:
    head = b"HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n%bConnection: close\r\n\r\n" % (
        status,
        _TYPE,
        len(body),
        more,
    )
    return head if head_only else head + body
