"""One client's connection: reads frames, and writes answers in the order of the requests.

It uses the socket directly instead of asyncio's streams: frames are parsed in the receive buffer, ``sendfile`` sends
records from file to socket, and nothing is scheduled between a request and its answer.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import socket
from collections import deque
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, Protocol

from broker.api.connection import ConnectionRefusal, Promise
from broker.protocol.fetch import FileSlice
from broker.security.principal import ANONYMOUS
from tidegate.kit.logs import get_logger

__all__ = ["Connection", "FrameHandler", "Slot", "Wire"]

logger = get_logger(__name__)

_SIZE: Final = Struct(">i")
_BUFFER_BYTES: Final = 64 * 1024
_FIRST_BUFFER_BYTES: Final = 2 * 1024
"""Initial size of each connection's buffer: thousands of idle or unauthenticated connections cost little."""
_SENDFILE_FROM_BYTES: Final = 64 * 1024
"""Below this size, reading and writing costs less than a ``sendfile`` (measured)."""
_MAPPED_ABOVE_BYTES: Final = 1024 * 1024
_MOST_PENDING: Final = 128
"""Unanswered requests per connection before it stops reading."""
_MOST_UNSENT_BYTES: Final = 8 * 1024 * 1024
_MOST_PARTS: Final = 64
_MOST_QUEUED_PARTS: Final = 512
"""Parts of answers that may wait to be sent; a slice of a file counts as one, whatever its size."""
_FINISH_S: Final = 5
"""How long a client may take to read the last answer."""
_MORE: Final = getattr(socket, "MSG_MORE", 0)

Part = bytes | bytearray | FileSlice


Sent = Callable[[float], None]
"""Is called with the seconds that a sent answer had to wait for earlier ones."""


class Slot:
    """One answer's position in the order of the connection. ``parts`` is None until the answer is ready."""

    __slots__ = ("future", "parts", "ready_at", "sent")

    def __init__(self, future: Promise | None = None) -> None:
        self.future = future
        self.parts: Sequence[Part] | None = None
        self.sent: Sent | None = None
        self.ready_at = 0.0
        """When the answer was ready, if it has to wait for earlier ones."""


class FrameHandler(Protocol):
    def __call__(self, connection: Connection, frame: memoryview) -> None:
        """Handle one request, whose bytes are valid only during the call. Answer with ``send`` or ``reserve``.

        Raises ConnectionRefusal to close the connection.
        """
        ...


class Wire(Protocol):
    """The socket methods that a connection uses. They do not block, but raise BlockingIOError."""

    def recv_into(self, buffer: memoryview, /) -> int: ...

    def sendmsg(self, buffers: list[memoryview], ancillary: tuple[()], flags: int, /) -> int: ...

    def close(self) -> None: ...


class Connection:
    """Used on one event loop. ``closed`` is called once, with a reason unless the client simply left."""

    when_closed: Callable[[], None] | None = None
    """State of handlers that ends with the connection."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        handle: FrameHandler,
        closed: Callable[[Connection, str | None], None],
        max_frame_bytes: int,
        listener: str,
        authenticated: bool = True,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._socket: Wire = sock
        self._fd = sock.fileno()
        self._handle = handle
        self._closed = closed
        self._max_frame_bytes = max_frame_bytes
        self.listener = listener
        self.principal = ANONYMOUS
        self.authenticated = authenticated
        """True once the client is authenticated, or when authentication is off; the frame handler sets it by ``serve``."""
        self.peer, self.peer_port = _peer_of(sock)
        self.software = ("unknown", "unknown")
        """The client's program and its version, if it sent them (ApiVersions)."""
        self._buffer = bytearray(_FIRST_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = self._end = 0
        self._large: memoryview | None = None
        self._large_filled = 0
        self._slots: deque[Slot] = deque()
        self._out: deque[memoryview | FileSlice] = deque()
        self._sent_of_first = 0
        self._unsent = 0
        self._writing = self._reading = self._handling = False
        self._finishing: str | None = None
        self._mutes = 0
        self._stopped = False
        self.is_open = True
        self.made_at = self.active_at = self._loop.time()
        self.bytes_in = self.bytes_out = 0
        self._set_reading(True)

    def serve(self, handle: FrameHandler, max_frame_bytes: int) -> None:
        """Pass frames from the next one on to another handler: the client is authenticated."""
        self._handle = handle
        self._max_frame_bytes = max_frame_bytes
        self.authenticated = True

    # Receiving

    def _on_readable(self) -> None:
        try:
            if self._large is not None:
                self._receive_large(self._large)
            else:
                self._receive()
        except (BlockingIOError, InterruptedError):
            return
        except ConnectionRefusal as refusal:
            self.close(str(refusal))
        except OSError as error:
            self.close(None if isinstance(error, ConnectionResetError | BrokenPipeError | TimeoutError) else str(error))

    def _received(self, count: int) -> bool:
        if count == 0:
            self.close(None)
            return False
        self.bytes_in += count
        self.active_at = self._loop.time()
        return True

    def _receive(self) -> None:
        if self._end == len(self._buffer):
            self._compact()
        count = self._socket.recv_into(self._view[self._end :])
        if self._received(count):
            self._end += count
            if self._end == len(self._buffer):
                self._grow()
            self._take_frames()

    def _receive_large(self, frame: memoryview) -> None:
        count = self._socket.recv_into(frame[self._large_filled :])
        if not self._received(count):
            return
        self._large_filled += count
        if self._large_filled == len(frame):
            self._large = None
            self._handle(self, frame)
            self._pace()

    def _take_frames(self) -> None:
        """Handle every complete frame in the buffer, unless the connection has to pause."""
        self._handling = True
        try:
            while self.is_open and self._reading and self._end - self._start >= 4:
                (size,) = _SIZE.unpack_from(self._buffer, self._start)
                if not 0 <= size <= self._max_frame_bytes:
                    limit = "socket.request.max.bytes" if self.authenticated else "sasl.server.max.receive.size"
                    raise ConnectionRefusal(
                        f"a frame of {size} bytes was announced; {limit} is {self._max_frame_bytes}"
                    )
                begin = self._start + 4
                if begin + size > self._end:
                    if size <= _BUFFER_BYTES - 4:
                        self._grow()
                    if size > len(self._buffer) - 4:
                        self._begin_large(size, begin)
                    break
                self._start = begin + size
                self._handle(self, self._view[begin : self._start])
                self._pace()
        finally:
            self._handling = False
        if self._start == self._end:
            self._start = self._end = 0
        elif self._start:
            self._compact()

    def _grow(self) -> None:
        """Switch to the large buffer when the authenticated client first sends more than the small one holds; most
        connections never do.
        """
        if self.authenticated and len(self._buffer) < _BUFFER_BYTES:
            self._buffer = self._buffer + bytes(_BUFFER_BYTES - len(self._buffer))  # frames passed on keep the old one
            self._view = memoryview(self._buffer)

    def _begin_large(self, size: int, begin: int) -> None:
        # Mapped memory is not resident until bytes arrive, so that announcing a large frame costs nothing.
        plain = size <= _MAPPED_ABOVE_BYTES and self.authenticated
        frame = memoryview(bytearray(size) if plain else mmap.mmap(-1, size))
        self._large_filled = self._end - begin
        frame[: self._large_filled] = self._view[begin : self._end]
        self._large = frame
        self._start = self._end = 0

    def _compact(self) -> None:
        rest = bytes(self._view[self._start : self._end])
        self._start, self._end = 0, len(rest)
        self._view[: self._end] = rest

    def _pace(self) -> None:
        """Stop reading from a client that does not read its answers or sends requests faster than they are answered."""
        reads = len(self._slots) < _MOST_PENDING and self._unsent < _MOST_UNSENT_BYTES and self._finishing is None
        reads = reads and len(self._out) < _MOST_QUEUED_PARTS and not self._mutes and not self._stopped
        if reads != self._reading and self.is_open:
            self._set_reading(reads)
            if reads and not self._handling:
                self._loop.call_soon(self._take_buffered)

    def _take_buffered(self) -> None:
        if not self.is_open or self._handling or self._finishing is not None:
            return
        try:
            self._take_frames()
        except ConnectionRefusal as refusal:
            self.close(str(refusal))
        except OSError as error:
            self.close(f"records could not be read: {error}")

    def mute(self, seconds: float) -> None:
        """Accept no requests for this long: the client is above its quota (KIP-219). Answers are still sent."""
        self._mutes += 1
        self._pace()
        self._loop.call_later(seconds, self._unmute)

    def mute_until(self, done: Promise) -> None:
        """Accept no requests until this is done: they must not overtake the current one, or add to its work."""
        self._mutes += 1
        self._pace()
        done.add_done_callback(lambda _: self._unmute())

    def _unmute(self) -> None:
        self._mutes -= 1
        self._pace()

    def _set_reading(self, reads: bool) -> None:
        self._reading = reads
        if reads:
            self._loop.add_reader(self._fd, self._on_readable)
        else:
            self._loop.remove_reader(self._fd)

    # Answering

    def send(self, parts: Sequence[Part], sent: Sent | None = None) -> None:
        """Answer the current request now. ``sent`` is called when the answer has been sent."""
        if self._slots:
            slot = Slot()
            slot.parts = parts
            slot.sent = sent
            slot.ready_at = self._loop.time()
            self._slots.append(slot)
        else:
            self._put(parts)
            self._write()
            if sent is not None:
                sent(0.0)

    def reserve(
        self,
        future: Promise,
        finish: Callable[[Promise], Sequence[Part]],
        sent: Sent | None = None,
    ) -> None:
        """Answer the current request when ``future`` is done, with the result of ``finish``.

        ``finish`` may raise ConnectionRefusal. ``sent`` is called when the answer has been sent.
        """
        slot = Slot(future)
        slot.sent = sent
        self._slots.append(slot)

        def done(future: Promise) -> None:
            if not self.is_open:
                return
            try:
                slot.parts = finish(future)
            except ConnectionRefusal as refusal:
                self.close(str(refusal))
                return
            except Exception as error:  # waiting callers see the end of the connection
                logger.exception("an answer could not be made", client=self.peer)
                self.close(f"an answer could not be made: {error!r}")
                return
            if self._slots[0] is not slot:
                slot.ready_at = self._loop.time()
            self._send_finished()

        future.add_done_callback(done)

    def _send_finished(self) -> None:
        gone: list[Slot] = []
        try:
            while self._slots and self._slots[0].parts is not None:
                slot = self._slots.popleft()
                self._put(slot.parts or ())
                gone.append(slot)
        except OSError as error:
            self.close(f"records could not be read: {error}")
            return
        self._write()
        for slot in gone:
            if slot.sent is not None:
                slot.sent(self._loop.time() - slot.ready_at if slot.ready_at else 0.0)
        self._pace()

    def _put(self, parts: Sequence[Part]) -> None:
        for part in parts:
            if isinstance(part, bytes | bytearray):
                self._unsent += len(part)
                self._out.append(memoryview(part))
            elif part.size >= _SENDFILE_FROM_BYTES:
                self._out.append(part)
            elif part.size:
                data = os.pread(part.fd, part.size, part.position)
                if len(data) < part.size:
                    raise OSError("a log file ended before the records that were to be sent")
                self._unsent += len(data)
                self._out.append(memoryview(data))

    def _write(self) -> None:
        if self._writing or not self.is_open:
            return
        try:
            self._drain()
        except (BlockingIOError, InterruptedError):
            self._writing = True
            self._loop.add_writer(self._fd, self._on_writable)
        except OSError as error:
            self.close(None if isinstance(error, ConnectionResetError | BrokenPipeError | TimeoutError) else str(error))

    def _on_writable(self) -> None:
        try:
            self._drain()
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self.close(None if isinstance(error, ConnectionResetError | BrokenPipeError | TimeoutError) else str(error))
            return
        self._loop.remove_writer(self._fd)
        self._writing = False
        if self._finishing is not None and self.is_idle:
            self.close(self._finishing)
            return
        self._pace()

    def _drain(self) -> None:
        """Send until the queue is empty. Raises BlockingIOError when the socket's buffer is full."""
        while self._out:
            first = self._out[0]
            if isinstance(first, memoryview):
                self._send_bytes()
            else:
                self._send_file(first)

    def _send_bytes(self) -> None:
        run: list[memoryview] = []
        more = 0
        for part in self._out:
            if not isinstance(part, memoryview):
                more = _MORE
                break
            if len(run) == _MOST_PARTS:
                break
            run.append(part)
        if self._sent_of_first:
            run[0] = run[0][self._sent_of_first :]
        sent = self._socket.sendmsg(run, (), more)
        self.bytes_out += sent
        self._unsent -= sent
        for part in run:
            if sent < len(part):
                break
            sent -= len(part)
            self._out.popleft()
            self._sent_of_first = 0
        self._sent_of_first += sent

    def _send_file(self, part: FileSlice) -> None:
        done = self._sent_of_first
        sent = self._transfer(part, done)
        if sent == 0:
            raise OSError("a log file ended before the records that were to be sent")
        self.bytes_out += sent
        self._sent_of_first += sent
        if self._sent_of_first == part.size:
            self._out.popleft()
            self._sent_of_first = 0

    def _transfer(self, part: FileSlice, done: int) -> int:
        """Send a file slice from byte ``done`` on. Returns the bytes sent; 0 if the file has ended."""
        return os.sendfile(self._fd, part.fd, part.position + done, part.size - done)

    # Ending

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return not self._slots and not self._out

    def stop_reading(self) -> None:
        """Accept no more requests; accepted ones are still answered."""
        self._stopped = True
        if self.is_open and self._reading:
            self._set_reading(False)

    def finish(self, parts: Sequence[Part], reason: str, *, after_s: float) -> None:
        """Accept no more requests. After a delay send this last answer and close."""
        self._finishing = reason
        self.stop_reading()
        self._loop.call_later(after_s, self._finish, parts)

    def _finish(self, parts: Sequence[Part]) -> None:
        if self.is_open:
            self.send(parts)
            if self.is_idle:
                self.close(self._finishing)
            else:
                self._loop.call_later(_FINISH_S, self.close, self._finishing)

    def close(self, reason: str | None) -> None:
        if not self.is_open:
            return
        self.is_open = False
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._socket.close()
        for slot in self._slots:
            if slot.future is not None and not slot.future.done():
                slot.future.cancel()
        self._slots.clear()
        self._out.clear()
        self._large = None
        self._closed(self, reason)
        if self.when_closed is not None:
            self.when_closed()


def _peer_of(sock: socket.socket) -> tuple[str, int]:
    try:
        name = sock.getpeername()
    except OSError:
        return "unknown", 0
    return (str(name[0]), int(name[1])) if isinstance(name, tuple) else ("unix", 0)
