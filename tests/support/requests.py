"""Requests of any API over one socket, with the broker's own message classes."""

from __future__ import annotations

import socket
import struct
from typing import Any, Self, TypeVar

from broker.protocol.codec import reader
from broker.protocol.schema import Request, Response, encode
from tests.support.wire import exchange

__all__ = ["Wire"]

R = TypeVar("R", bound=Response)


class Wire:
    """One connection. Flexible versions only."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), 10)
        self._socket.settimeout(30)
        self._next_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def exchange(self, frame: bytes) -> bytes:
        return exchange(self._socket, frame)

    def send(self, request: Request, response: type[R], version: int) -> R:
        self._next_id += 1
        head = bytearray(struct.pack(">hhih", request.API_KEY, version, self._next_id, 1) + b"t\0")
        answer = exchange(self._socket, bytes(encode(request, version, head)))
        assert answer, "the broker closed the connection"
        value: Any
        value, end = reader(response, version, True)(memoryview(answer), 5)
        assert end == len(answer)
        return value  # type: ignore[no-any-return]
