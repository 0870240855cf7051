"""Sockets without a client library: for what is measured below one."""

from __future__ import annotations

import socket

__all__ = ["exactly"]


def exactly(sock: socket.socket, size: int) -> bytes:
    """So many bytes; raises ConnectionError where the broker closes before."""
    data = bytearray()
    while len(data) < size:
        part = sock.recv(size - len(data))
        if not part:
            raise ConnectionError("closed")
        data += part
    return bytes(data)
