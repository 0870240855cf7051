"""An HTTP client so light that a thousand of them, or sixteen that never rest, leave the server the slower side."""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

__all__ = ["LightClient", "whole"]


class LightClient(asyncio.Protocol):
    """One connection and one request at a time on it; answers have to tell their length."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self._host, self._tls = url.partition("//")[2], tls
        self._received = bytearray()
        self._answer: asyncio.Future[tuple[int, bytes]] | None = None

    async def dial(self) -> None:
        host, _, port = self._host.rpartition(":")
        self._received.clear()
        await asyncio.get_running_loop().create_connection(lambda: self, host, int(port), ssl=self._tls)

    def hang_up(self) -> None:
        self._transport.close()

    def head(self, path: str, **headers: str) -> bytes:
        """The head of posts with a JSON body, for ``whole``."""
        lines = [f"POST {path} HTTP/1.1", f"Host: {self._host}", "Content-Type: application/json"]
        return "\r\n".join([*lines, *(f"{name}: {text}" for name, text in headers.items())]).encode()

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Status and body of the answer to a request."""
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(b"\r\n\r\n")
        if head < 0:
            return
        at = self._received.index(b"content-length:", 0, head) + 15
        end = head + 4 + int(self._received[at : self._received.index(b"\r\n", at)])
        if len(self._received) >= end and self._answer is not None:
            answer, self._answer = self._answer, None
            if not answer.done():
                answer.set_result((int(self._received[9:12]), bytes(self._received[head + 4 : end])))
            del self._received[:end]

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionResetError("the server closed the connection of a client"))


def whole(head: bytes, body: bytes) -> bytes:
    """A request."""
    return b"%b\r\nContent-Length: %d\r\n\r\n%b" % (head, len(body), body)
