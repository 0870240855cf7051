"""Listeners of datagrams and of lines over TCP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from typing import Any, Final

from connect.api import ConnectError
from connectors.telemetry.config import Listener, TelemetryConfig
from connectors.telemetry.inbox import Arrival, Counts, Inbox

__all__ = ["listen_tcp", "listen_udp"]

_DIGITS: Final = b"123456789"
_LENGTH: Final = 8
"""Digits of a length in front of a message (RFC 6587) and the space behind them, at most."""


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
            async for data, error in _messages(reader, config, counted=counted):
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
        server = await asyncio.start_server(serve, listener.host, listener.port, limit=config.message_bytes)
    except OSError as error:
        raise ConnectError(f"cannot listen on {listener}: {error.strerror or error}; choose another address") from error
    open_now.push_async_callback(end)
    open_now.callback(server.close)


async def _messages(
    reader: asyncio.StreamReader, config: TelemetryConfig, *, counted: bool
) -> AsyncIterator[tuple[bytes, str]]:
    """Messages, each with what is wrong with its frame; behind a wrong length nothing can be read any more."""
    while first := await reader.read(1):
        if counted and first in _DIGITS:
            length = first
            while len(length) < _LENGTH and (digit := await reader.read(1)).isdigit():
                length += digit
            if len(length) == _LENGTH or digit != b" " or int(length) > config.message_bytes:
                yield length, f"the length before it should be at most {config.message_bytes}, followed by a space"
                return
            with suppress(asyncio.IncompleteReadError):
                yield await reader.readexactly(int(length)), ""
            continue
        if first in b"\r\n":
            continue
        line, cut = await _line(reader)
        yield first + line, _too_long(config) if cut else ""


async def _line(reader: asyncio.StreamReader) -> tuple[bytes, bool]:
    """The rest of a line, and whether it was cut because it is too long."""
    try:
        return await reader.readuntil(b"\n"), False
    except asyncio.IncompleteReadError as error:
        return error.partial, False
    except asyncio.LimitOverrunError as error:
        begin = await reader.readexactly(error.consumed)
    while True:
        try:
            await reader.readuntil(b"\n")
        except asyncio.IncompleteReadError:
            break
        except asyncio.LimitOverrunError as error:
            await reader.readexactly(error.consumed)
        else:
            break
    return begin, True


def _too_long(config: TelemetryConfig) -> str:
    return f"it is longer than message.max.bytes={config.message_bytes}"


def _shown(address: Any) -> str:
    """The sender as HOST:PORT."""
    host, port = address[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
