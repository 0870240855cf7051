"""Listeners of datagrams and of lines over TCP."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any, Final

from connect.api import ConnectError
from connectors.telemetry.config import Listener, TelemetryConfig
from connectors.telemetry.inbox import Arrival, Counts, Inbox

__all__ = ["listen_tcp", "listen_udp", "messages"]

_CHUNK: Final = 65_536
_DIGITS: Final = b"123456789"
_LENGTH: Final = re.compile(rb"([1-9]\d{0,8}) ")
"""In front of a message (RFC 6587)."""
_LONGEST: Final = 10
_NUMBER: Final = re.compile(rb"\d+")
_END: Final = re.compile(rb"[\n\0]")


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, listener: Listener, config: TelemetryConfig, inbox: Inbox, counts: Counts) -> None:
        self._listener, self._config, self._inbox, self._counts = str(listener), config, inbox, counts

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._counts.received += 1
        error = _too_long(self._config) if len(data) > self._config.message_bytes else ""
        kept = data[: self._config.message_bytes]
        if not self._inbox.offer(Arrival(self._listener, _shown(addr), datetime.now(UTC), kept, error)):
            self._counts.dropped += 1


async def listen_udp(
    listener: Listener, config: TelemetryConfig, inbox: Inbox, counts: Counts, open_now: AsyncExitStack
) -> None:
    """Receive datagrams until ``open_now`` is closed. Raises ConnectError if the address is not available."""
    family = socket.AF_INET6 if ":" in listener.host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.udp_buffer_bytes)
        sock.setblocking(False)
        sock.bind((listener.host, listener.port))
    except OSError as error:
        sock.close()
        raise ConnectError(f"cannot listen on {listener}: {error.strerror or error}; choose another address") from error
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Datagrams(listener, config, inbox, counts), sock=sock)
    open_now.callback(transport.close)


async def listen_tcp(
    listener: Listener,
    config: TelemetryConfig,
    inbox: Inbox,
    counts: Counts,
    open_now: AsyncExitStack,
    *,
    counted: bool,
) -> None:
    """Take connections until ``open_now`` is closed; ``counted`` messages may begin with their length (RFC 6587).

    A connection is not read while its message waits for room. Raises ConnectError if the address is not available.
    """
    running: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        if len(running) >= config.connections:
            counts.refused += 1
            writer.close()
            return
        running.add(task)
        sender = _shown(writer.get_extra_info("peername"))
        try:
            async for data, error in messages(reader, config, counted=counted):
                counts.received += 1
                await inbox.put(Arrival(str(listener), sender, datetime.now(UTC), data, error))
        except (OSError, asyncio.CancelledError):
            pass  # the sender is gone, or the listener ends
        finally:
            running.discard(task)
            writer.close()

    async def end() -> None:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    try:
        server = await asyncio.start_server(serve, listener.host, listener.port, limit=_CHUNK)
    except OSError as error:
        raise ConnectError(f"cannot listen on {listener}: {error.strerror or error}; choose another address") from error
    open_now.push_async_callback(end)
    open_now.callback(server.close)


async def messages(
    reader: asyncio.StreamReader, config: TelemetryConfig, *, counted: bool
) -> AsyncIterator[tuple[bytes, str]]:
    """Messages, each with what is wrong with its frame. They end with a line feed, or a NUL as Python's SysLogHandler writes it.

    Behind a wrong length nothing can be read any more.
    """
    waiting = bytearray()
    cut = False  # the rest of a line that was too long comes
    while chunk := await reader.read(_CHUNK):
        waiting += chunk
        while waiting:
            if cut or not (counted and waiting[0] in _DIGITS):
                end = _END.search(waiting)
                if end is None and len(waiting) <= config.message_bytes:
                    break
                line = bytes(waiting[: config.message_bytes if end is None else end.start()])
                del waiting[: len(waiting) if end is None else end.end()]
                if line.strip(b"\r") and not cut:
                    too_long = end is None or len(line) > config.message_bytes
                    yield line[: config.message_bytes], _too_long(config) if too_long else ""
                cut = end is None
                continue
            length = _LENGTH.match(waiting)
            if length is None and len(waiting) < _LONGEST and waiting.isdigit():
                break
            if length is None or int(length[1]) > config.message_bytes:
                error = f"the length before it should be at most {config.message_bytes}, followed by a space"
                yield b"".join(_NUMBER.findall(waiting, 0, _LONGEST)[:1]), error
                return
            if len(waiting) < length.end() + int(length[1]):
                break
            yield bytes(waiting[length.end() : length.end() + int(length[1])]), ""
            del waiting[: length.end() + int(length[1])]
    if waiting.strip(b"\r") and not cut:
        yield bytes(waiting), ""


def _too_long(config: TelemetryConfig) -> str:
    return f"it is longer than message.max.bytes={config.message_bytes}"


def _shown(address: Any) -> str:
    """The sender as HOST:PORT."""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
