"""HTTP connections whose answers leave whole: head and body in one system call, one segment, one TLS record."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["JoiningHttpProtocol", "JoiningTransport"]

_MOST_HELD: Final = 64 * 1024
"""Bytes that wait at most, so that the back-pressure of the transport beneath is felt within one turn, too."""


class JoiningTransport(asyncio.Transport):
    """Joins what is written in one turn of the event loop into one write to the transport beneath."""

    def __init__(self, beneath: asyncio.Transport) -> None:
        super().__init__()
        self._beneath, self._loop = beneath, asyncio.get_running_loop()
        self._held: list[bytes | bytearray | memoryview] = []
        self._size = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
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
        self._flush()
        self._beneath.close()

    def abort(self) -> None:
        self._held.clear()
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

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(JoiningTransport(transport))
