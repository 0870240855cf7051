"""Kafka requests as bytes on a socket, for requests that no client would send."""

from __future__ import annotations

import socket
import struct

__all__ = ["exchange", "fetch_frame", "produce_frame", "produced", "receive_frame"]


def receive_frame(sock: socket.socket) -> bytes:
    """One response without its length; empty when the broker closed the connection."""
    head = _receive(sock, 4)
    return _receive(sock, struct.unpack(">i", head)[0]) if len(head) == 4 else b""


def exchange(sock: socket.socket, frame: bytes) -> bytes:
    """Send one request, return the answer (empty: the connection was closed)."""
    sock.sendall(struct.pack(">i", len(frame)) + frame)
    return receive_frame(sock)


def produce_frame(topic: str, partition: int, records: bytes, *, acks: int = -1, correlation_id: int = 7) -> bytes:
    """A Produce request of version 7 for one partition."""
    name = topic.encode()
    head = struct.pack(">hhihhhii", 0, 7, correlation_id, -1, -1, acks, 10_000, 1)
    where = struct.pack(">h", len(name)) + name + struct.pack(">iii", 1, partition, len(records))
    return head + where + records


def fetch_frame(topic: str, offset: int, *, max_wait_ms: int = 0, correlation_id: int = 7) -> bytes:
    """A Fetch request of version 11 for partition 0, without a session."""
    name = topic.encode()
    head = struct.pack(">hhihiiiibii", 1, 11, correlation_id, -1, -1, max_wait_ms, 1, 1 << 30, 0, 0, -1)
    where = struct.pack(">ih", 1, len(name)) + name
    return head + where + struct.pack(">iiiqqi", 1, 0, -1, offset, -1, 1 << 30) + struct.pack(">ih", 0, 0)


def produced(answer: bytes) -> tuple[int, int]:
    """(error code, base offset) of the one partition in a Produce answer of version 7."""
    (length,) = struct.unpack_from(">h", answer, 8)
    error, offset = struct.unpack_from(">hq", answer, 10 + length + 8)
    return error, offset


def _receive(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        try:
            part = sock.recv(size - len(data))
        except ConnectionResetError:
            return b""
        if not part:
            break
        data += part
    return bytes(data)
