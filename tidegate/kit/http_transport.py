"""HTTP connections that send whole answers (head and body in one system call, one segment, one TLS record), limit the
size, time and number of requests (``http_limits``), and close soon after their server.

Some requests may be answered without an ASGI task (``http_direct``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from tidegate.kit.alarm import Alarm
from tidegate.kit.http_direct import MOST_BODY, Direct, DirectRequest, WholeBody, safely
from tidegate.kit.http_limits import Connections, HttpLimits, most_connections

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application, HTTPScope

__all__ = ["CONNECTION_LOST", "HttpConfig", "JoiningHttpProtocol", "JoiningTransport"]

CONNECTION_LOST: Final = "tidegate.connection_lost"
"""The key in a request's scope of the future that is done when its connection is lost."""

_MOST_HELD: Final = 64 * 1024
"""The most bytes to buffer, so that back-pressure of the underlying transport works within one turn, too."""
_MOST_HEAD: Final = 64 * 1024
"""The largest request line with headers, beyond the chunk that they begin in; uvicorn has no limit."""
_END_OF_HEAD: Final = b"\r\n\r\n"
_UNWAITED: Final = asyncio.Event()
"""Replaces uvicorn's notification of a request's task, because the body is complete and there is no task."""
_GOODBYE_S: Final = 0.5
"""How long a client with an idle connection has to close TLS when the server stops."""


class JoiningTransport(asyncio.Transport):
    """Joins the writes of one turn of the event loop into one write to the underlying transport."""

    def __init__(self, beneath: asyncio.Transport) -> None:
        super().__init__()
        self._beneath, self._loop = beneath, asyncio.get_running_loop()
        self._unsent: list[bytes | bytearray | memoryview] = []
        self._size = 0
        self._closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._closed:
            return
        if not self._unsent:
            self._loop.call_soon(self._flush)
        self._unsent.append(data)
        self._size += len(data)
        if self._size > _MOST_HELD:
            self._flush()

    def _flush(self) -> None:
        if self._unsent:
            pieces, self._unsent, self._size = self._unsent, [], 0
            self._beneath.write(b"".join(pieces))

    def write_whole(self, data: bytes) -> None:
        """Write data that is complete already."""
        self._flush()
        if not self._closed:
            self._beneath.write(data)

    def close(self) -> None:
        """May be called again, as uvicorn does.

        A second close of asyncio's TLS transport would break its state, and abort with it.
        """
        if not self._closed:
            self._flush()
            self._closed = True
            self._beneath.close()

    def abort(self) -> None:
        self._unsent.clear()
        self._closed = True
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


class TooManyRequests(Exception):
    """A connection has more pipelined requests than allowed."""


class _KnownHead(NamedTuple):
    head: bytes
    size: int
    """Of head and body."""
    scope: HTTPScope


class HttpConfig(uvicorn.Config):
    """uvicorn's settings with the server's limits."""

    def __init__(self, app: Any, *, limits: HttpLimits | None = None, **more: Any) -> None:
        super().__init__(app, http=JoiningHttpProtocol, **more)
        self.limits = limits or HttpLimits()
        self.room = Connections(self.limits.connections or most_connections())


class JoiningHttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol, which by itself writes the head and the body of each answer separately."""

    config: HttpConfig
    _in_head = True
    _in_body = False
    _heads = 0
    """How many heads have begun or ended."""
    _head_bytes = 0
    """How many bytes have arrived for a head that neither began nor ended with them."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        # The parser and the protocol hold each other until the connection is lost, and without a TLS handshake none is made.
        self.parser = None  # type: ignore[assignment]

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.parser = _parser(self)
        self._joining = JoiningTransport(transport)
        super().connection_made(self._joining)
        app: Any = self.config.app
        self._direct: Direct | None = getattr(app, "direct", None)
        self._count: Callable[[str, int], None] = getattr(app, "count", _uncounted)
        self._lost: asyncio.Future[None] = self.loop.create_future()
        limits = self._limits = self.config.limits
        self._late = Alarm(self._give_up)
        """Rings when a head, a body, or anything at all does not arrive in time."""
        self._unread = Alarm(self.refuse)
        """Rings when the client does not read an answer."""
        self._body_began = 0.0
        self._body_bytes = 0
        self.idle_since: float | None = self.loop.time()
        self._known: _KnownHead | None = None
        self._taken: RequestResponseCycle | None = None
        """The request in the bytes being received, if it is answered directly."""
        open_now: Any = self.server_state.connections  # all created by the same factory
        if self.config.room.make_room(self, open_now, self.loop.time()):
            self._late.set(limits.head_s)
        else:
            self.refuse()

    def refuse(self) -> None:
        """Close the connection at once."""
        self.idle_since = None
        self._joining.abort()

    def _give_up(self) -> None:
        """The client is late. A body may still be fast enough for its size."""
        if self._in_body:
            due = self._body_began + self._limits.body_s + self._body_bytes / self._limits.body_bytes_per_s
            if (rest := due - self.loop.time()) > 0:
                self._late.set(rest)
                return
        self._joining.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self._lost.done():
            self._lost.set_result(None)
        # Each of these holds the protocol, whose connection has buffers: the garbage collector comes for circles too late.
        self._late.end()
        self._unread.end()
        self.pipeline.clear()
        self.cycle = self._taken = None  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        between = self._is_between_requests
        known = self._known
        if known is not None and between and len(data) == known.size and data.startswith(known.head):
            self._receive_known(known, data)
            return
        if self._head_bytes > _MOST_HEAD:
            self.send_400_response(f"The head of the request is larger than {_MOST_HEAD} bytes")
            return
        heads, self._taken = self._heads, None
        super().data_received(data)
        if heads != self._heads:
            self._head_bytes = 0
            self._limit_rest()
        elif self._in_head:
            self._head_bytes += len(data)
        if between and self._taken is not None and self._taken is self.cycle:
            self._known = _known_head(data, self._taken)

    def _limit_rest(self) -> None:
        """Start the timer for what a request still lacks after the bytes in which its head began or ended."""
        if self._in_head:
            self._late.set(self._limits.head_s)
        elif self._in_body:
            self._body_began = self.loop.time()
            self._late.set(self._limits.body_s)

    def _unset_keepalive_if_required(self) -> None:
        """Replaces uvicorn's timer for idle connections by ``_late``."""

    def on_response_complete(self) -> None:
        """Like uvicorn's, without its timer for idle connections, which it creates for each answer."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self._rest()

    def _rest(self) -> None:
        """Start the idle timer, if the connection is idle."""
        if not (self._in_head or self._in_body or self.pipeline) and self.cycle.response_complete:
            self.idle_since = self.loop.time()
            self._late.set(self._limits.idle_s)

    @property
    def _is_between_requests(self) -> bool:
        """Whether the parser is exactly between two requests, and the last one is answered."""
        cycle = self.cycle
        if cycle is None or self._in_head or self.pipeline:
            return False
        return cycle.response_complete and not cycle.more_body

    def _receive_known(self, known: _KnownHead, data: bytes) -> None:
        """Handle a request whose head equals the last one's byte for byte: only its body differs.

        A long poll repeats itself.
        """
        self.idle_since = None
        self._late.clear()
        cycle = self.cycle = RequestResponseCycle(
            scope=known.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=self.access_log,
            default_headers=self.server_state.default_headers,
            message_event=_UNWAITED,
            expect_100_continue=False,
            keep_alive=True,
            on_response=self.on_response_complete,
        )
        cycle.body += data[len(known.head) :]
        cycle.more_body = False
        self._take(cycle)

    def on_message_begin(self) -> None:
        if len(self.pipeline) >= self._limits.pipelined:
            raise TooManyRequests
        self._in_head = True
        self._heads += 1
        self.idle_since = None
        self._late.clear()
        super().on_message_begin()
        self.scope[CONNECTION_LOST] = self._lost  # type: ignore[typeddict-unknown-key]

    def on_headers_complete(self) -> None:
        self._in_head, self._in_body = False, True
        self._heads += 1
        self._body_bytes = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._in_body = False
        self._late.clear()
        super().on_message_complete()
        if self.cycle.response_complete:  # it was sent before the body was complete
            self._rest()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._unread.set(self._limits.idle_s)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread.clear()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        """Called when it is a request's turn; its body may not be complete."""
        direct = self._direct
        if (
            direct is None
            or app is not self.app
            or cycle.waiting_for_100_continue
            or any(
                name == b"origin" for name, _ in cycle.scope["headers"]
            )  # the application decides whether a page may send requests
            or not direct.takes(cycle.scope)
        ):
            super()._start_asgi_task(cycle, app)
            return
        self._taken = cycle
        body = cycle.message_event = WholeBody(cycle, self._take)  # type: ignore[assignment]
        body.set()

    def _take(self, cycle: RequestResponseCycle) -> None:
        """Pass on a request whose body is complete, or is too large to wait for."""
        if cycle.more_body:
            self._pass_on(cycle)
        else:
            assert self._direct is not None
            safely(self._direct, DirectRequest(cycle, self._lost, self._reply, self._pass_on))

    def _pass_on(self, cycle: RequestResponseCycle) -> None:
        cycle.message_event = asyncio.Event()
        cycle.message_event.set()
        # The application may modify it, and many requests may share it.
        cycle.scope = cycle.scope | {"headers": [*cycle.scope["headers"]], "state": self.app_state.copy()}
        super()._start_asgi_task(cycle, self.app)

    def _reply(self, cycle: RequestResponseCycle, body: bytes) -> None:
        cycle.response_started = cycle.response_complete = True
        close = b"" if cycle.keep_alive else b"connection: close\r\n"
        self._joining.write_whole(
            b"%bcontent-length: %d\r\n%b\r\n%b" % (_head(tuple(cycle.default_headers)), len(body), close, body)
        )
        if close:
            self._joining.close()
        self.on_response_complete()
        self._count(cycle.scope["method"], 200)

    def shutdown(self) -> None:
        """Close the connection: at once if no request is in progress, otherwise with its answer."""
        super().shutdown()
        if self.transport.is_closing() and self.scheme == "https":
            self.loop.call_later(_GOODBYE_S, self._leave)

    def _leave(self) -> None:
        """A client with an idle pooled connection does not read, so it never answers a TLS close: do not wait for it."""
        if not self.flow.write_paused:
            self.transport.abort()


@lru_cache(4)
def _head(headers: tuple[tuple[bytes, bytes], ...]) -> bytes:
    """The common part of the head of direct answers; uvicorn's ``headers`` change every second."""
    named = b"".join([b"%b: %b\r\n" % header for header in headers])
    return b"HTTP/1.1 200 OK\r\n%bcontent-type: application/json\r\n" % named


def _known_head(data: bytes, cycle: RequestResponseCycle) -> _KnownHead | None:
    """The head of a request that consists of exactly ``data``."""
    end = data.find(_END_OF_HEAD) + len(_END_OF_HEAD)
    # A chunked body is shorter than its bytes.
    whole = not cycle.more_body and len(data) - end == len(cycle.body) <= MOST_BODY
    stays = cycle.keep_alive and all(name != b"upgrade" for name, _ in cycle.scope["headers"])
    return _KnownHead(data[:end], len(data), cycle.scope) if whole and stays else None


def _parser(protocol: HttpToolsProtocol) -> httptools.HttpRequestParser:
    """As uvicorn makes it: an answer may go out before the request has come whole."""
    parser = httptools.HttpRequestParser(protocol)
    with contextlib.suppress(AttributeError):  # httptools < 0.6.3
        parser.set_dangerous_leniencies(lenient_data_after_close=True)
    return parser


def _uncounted(method: str, status: int) -> None:
    """For an application that counts nothing."""
