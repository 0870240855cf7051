"""``GET /metrics`` and nothing else, without a web framework: the broker is to stay small."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable
from typing import Final

from tidegate.kit.http_security import basic_credentials
from tidegate.kit.users import UsersFile

__all__ = ["MetricsServer"]

_TIMEOUT_S: Final = 10
"""For a TLS handshake, for a request with its answer, and for the goodbye of TLS."""
_MOST_CONNECTIONS: Final = 100
"""At the same time. They take files of the broker's, which clients of the log need."""
_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"


class MetricsServer:
    """Serves what ``render`` gives on one address, over HTTP/1.1, one request a connection.

    With ``users`` it asks for a user and a password (RFC 7617), with a ``context`` it takes TLS only.
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
        self._server: asyncio.Server | None = None
        self._connections = 0

    async def start(self) -> str:
        """Listen; the URL to scrape. Raises OSError."""
        times = {"ssl_handshake_timeout": _TIMEOUT_S, "ssl_shutdown_timeout": _TIMEOUT_S} if self._context else {}
        self._server = await asyncio.start_server(
            self._serve, self._host or None, self._port, limit=16 * 1024, ssl=self._context, **times
        )
        port = self._server.sockets[0].getsockname()[1]
        host = f"[{self._host}]" if ":" in self._host else self._host or "127.0.0.1"
        return f"http{'s' if self._context is not None else ''}://{host}:{port}/metrics"

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._connections >= _MOST_CONNECTIONS:
            writer.transport.abort()
            return
        self._connections += 1
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(await self._answer(head))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass
        finally:
            writer.close()
            with contextlib.suppress(OSError):  # one of TLS too: the client goes on to send
                await writer.wait_closed()
            self._connections -= 1

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
