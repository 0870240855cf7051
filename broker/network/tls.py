"""A connection under TLS: the same frames, encrypted.

OpenSSL works on memory and never sees the socket. That costs less than a wrapped socket (fewer system calls; measured
0.17 s against 0.23 s of CPU for 200 MB received, 0.19 s against 0.22 s sent), and no read ever waits for a write.
"""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

from broker.api.connection import ConnectionRefusal
from broker.network.connection import Connection
from broker.protocol.fetch import FileSlice

__all__ = ["TlsConnection"]

_AT_ONCE_BYTES: Final = 128 * 1024
_RECEIVED: Final = memoryview(bytearray(256 * 1024))
"""The receive buffer for encrypted bytes, shared by all connections because they are on one thread."""


class _TlsWire:
    """Encrypts and decrypts between a connection and its socket."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, shaken: Callable[[ssl.SSLObject], None]) -> None:
        self._socket = sock
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._shaken: Callable[[ssl.SSLObject], None] | None = shaken
        self._unsent = memoryview(b"")
        self.has_more = False
        """Whether decrypted data may be available that no socket event will announce."""

    def recv_into(self, buffer: memoryview) -> int:
        if not self.has_more:
            count = self._socket.recv_into(_RECEIVED)
            if count == 0:
                return 0
            self._incoming.write(_RECEIVED[:count])
            self.has_more = True
        try:
            if self._shaken is not None:
                self._tls.do_handshake()
                shaken, self._shaken = self._shaken, None
                shaken(self._tls)
                raise BlockingIOError  # the connection may have another buffer by now
            return self._read_records(buffer)
        except ssl.SSLWantReadError:
            self.has_more = False
            raise BlockingIOError from None
        except ssl.SSLZeroReturnError:
            return 0
        except ssl.SSLError as error:
            self._tell()
            stage = "TLS handshake failed" if self._shaken is not None else "TLS failed"
            raise ConnectionRefusal(f"{stage}: {getattr(error, 'reason', None) or error}") from error

    def _read_records(self, buffer: memoryview) -> int:
        """Read all available data: one read of OpenSSL returns one TLS record, of 16 KiB at most."""
        total: int = self._tls.read(len(buffer), buffer)  # type: ignore[assignment]
        while 0 < total < len(buffer):
            try:
                more: int = self._tls.read(len(buffer) - total, buffer[total:])  # type: ignore[assignment]
            except ssl.SSLWantReadError:
                self.has_more = False
                break
            except ssl.SSLError:
                break  # the next read raises it again
            if more == 0:
                break
            total += more
        return total

    @property
    def is_flushed(self) -> bool:
        return not self._unsent and not self._outgoing.pending

    def flush(self) -> None:
        """Send encrypted bytes. Raises BlockingIOError if the socket does not accept all of them."""
        while True:
            if not self._unsent:
                if not self._outgoing.pending:
                    return
                self._unsent = memoryview(self._outgoing.read())
            self._unsent = self._unsent[self._socket.send(self._unsent) :]

    def sendmsg(self, buffers: list[memoryview], _ancillary: tuple[()], _flags: int) -> int:
        self.flush()
        size, chosen = 0, []
        for buffer in buffers:
            chosen.append(buffer[: _AT_ONCE_BYTES - size])
            size += len(chosen[-1])
            if size == _AT_ONCE_BYTES:
                break
        return self._tls.write(chosen[0] if len(chosen) == 1 else b"".join(chosen))

    def close(self) -> None:
        with suppress(ssl.SSLError, ValueError):
            self._tls.unwrap()
        self._tell()
        self._socket.close()
        self._shaken = None  # it holds the connection, which holds this

    def _tell(self) -> None:
        """Send an alert to the client, if that is possible at once."""
        with suppress(OSError):
            self.flush()


class TlsConnection(Connection):
    """Calls ``established`` after the handshake, before the first frame, with the client's certificate (DER), if any."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        context: ssl.SSLContext,
        established: Callable[[Connection, bytes | None], None],
        **rest: Any,
    ) -> None:
        super().__init__(sock, authenticated=False, **rest)
        self._wire = _TlsWire(sock, context, lambda tls: established(self, tls.getpeercert(binary_form=True)))
        self._socket = self._wire

    def _on_readable(self) -> None:
        super()._on_readable()
        while self._wire.has_more and self.is_open and self._reading:
            super()._on_readable()
        if not self._wire.is_flushed:
            self._write()

    def _take_buffered(self) -> None:
        super()._take_buffered()
        if self._wire.has_more and self.is_open and self._reading:
            self._on_readable()

    def _drain(self) -> None:
        super()._drain()
        self._wire.flush()

    def _transfer(self, part: FileSlice, done: int) -> int:
        data = os.pread(part.fd, min(part.size - done, _AT_ONCE_BYTES), part.position + done)
        return self._wire.sendmsg([memoryview(data)], (), 0) if data else 0

    @property
    def is_idle(self) -> bool:
        return super().is_idle and self._wire.is_flushed
