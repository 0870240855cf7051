"""The HTTP server of all components: Starlette on uvicorn, with metrics, size limits and errors without tracebacks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import cache
from typing import Any

import orjson
import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidegate.kit.certificates import TlsFiles
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.http_direct import Direct
from tidegate.kit.http_limits import BodyBudget, HttpLimits
from tidegate.kit.http_routes import Routes
from tidegate.kit.http_sites import SiteGuard
from tidegate.kit.http_transport import CONNECTION_LOST, HttpConfig, JoiningHttpProtocol
from tidegate.kit.logs import get_logger
from tidegate.kit.metrics import CONTENT_TYPE, Metrics
from tidegate.kit.tls import follow_file

__all__ = [
    "ErrorRenderer",
    "Guard",
    "HttpServer",
    "InvalidBody",
    "Middleware",
    "connection_lost",
    "face",
    "json_body",
    "json_bytes",
    "json_response",
    "listen",
]

logger = get_logger(__name__)

ErrorRenderer = Callable[[Request, TidegateError | HTTPException], Response]
"""Formats an error for one API. An unexpected exception is passed as a TidegateError without details."""

Guard = Callable[[Request], Awaitable[None]]
"""Checks a request before any route does. Raises the error to answer instead."""

Middleware = Callable[[ASGIApp], ASGIApp]
"""Wraps an application."""

_TURNS = 1000
"""The interval for checking whether connections that were cut off are closed."""
MAX_BODY_BYTES = 32 * 1024 * 1024
_MAX_BODIES_BYTES = 8 * MAX_BODY_BYTES
"""The limit for the bodies of all requests of one application that are being received or handled."""


class InvalidBody(UsageError):
    """The body of a request is not the JSON it should be."""


class BodyTooLarge(UsageError):
    http_status = 413


def connection_lost(request: Request) -> asyncio.Future[None]:
    """Done when the connection of a request is lost. Don't await or cancel it; check it, or add a callback.

    Waiting on ``request.receive`` instead would take a task per request.
    """
    lost: asyncio.Future[None] | None = request.scope.get(CONNECTION_LOST)
    return asyncio.get_running_loop().create_future() if lost is None else lost


def json_bytes(value: Any) -> bytes:
    """Compact JSON."""
    try:
        return orjson.dumps(value)
    except TypeError:
        # A lone surrogate, which a request may contain, has no UTF-8 encoding; its escape is valid JSON.
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(errors="backslashreplace")


def json_response(value: Any, status: int = 200, *, media_type: str = "application/json", **headers: str) -> Response:
    """A compact JSON answer. Header names have ``_`` for ``-``."""
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return Response(json_bytes(value), status, named, media_type)


async def json_body(request: Request) -> Any:
    """The JSON value of a request. Raises InvalidBody with the position of the error."""
    body = await request.body()
    try:
        return json.loads(body)
    except json.JSONDecodeError as error:
        raise InvalidBody(f"The request body is not valid JSON: {error}") from error
    except (UnicodeDecodeError, RecursionError) as error:
        raise InvalidBody("The request body is not valid JSON: it is not UTF-8 or is nested too deep") from error
    except ValueError as error:  # Python limits the digits it converts
        raise InvalidBody("The request body is not readable JSON: a number in it has thousands of digits") from error


def face(
    routes: Sequence[BaseRoute],
    *,
    name: str,
    metrics: Metrics,
    render_error: ErrorRenderer,
    max_body_bytes: int = MAX_BODY_BYTES,
    max_bodies_bytes: int = _MAX_BODIES_BYTES,
    guards: Sequence[Guard] = (),
    middleware: Sequence[Middleware] = (),
    direct: Direct | None = None,
    sites: SiteGuard | None = None,
) -> ASGIApp:
    """Create a component's application from its routes; adds ``GET /metrics``.

    ``max_bodies_bytes`` limits the bodies of all requests that are being received or handled (503). ``name`` prefixes
    the request metrics: ``<name>_http_requests_total`` and ``<name>_http_request_seconds``. ``middleware`` is outermost
    first; within it ``guards`` run in order, also for ``/metrics``. ``render_error`` formats their errors;
    ``http_headers`` of an error are added. ``direct`` may answer requests instead of all this; these are counted but
    not timed, because they mostly wait. ``sites`` decides which web pages may send requests; by default none.
    """
    requests = metrics.counter(f"{name}_http_requests", "Requests answered.", ("method", "status"))
    seconds = metrics.histogram(f"{name}_http_request_seconds", "Time from request to answer.", ("method",))

    async def show_metrics(_: Request) -> Response:
        return Response(metrics.render(), media_type=CONTENT_TYPE)

    async def on_error(request: Request, error: Exception) -> Response:
        if isinstance(error, TidegateError | HTTPException):
            response = render_error(request, error)
            response.headers.update(getattr(error, "http_headers", {}))
            return response
        if isinstance(error, ClientDisconnect):
            return Response(status_code=499)
        logger.error("unforeseen error in a request", path=request.scope["path"], exc_info=error)
        return render_error(request, TidegateError(f"Internal error ({type(error).__name__}); the log has the details"))

    guards = [sites or SiteGuard(), *guards]
    inner: ASGIApp = _Answering(Routes([*routes, Route("/metrics", show_metrics)]), on_error, guards)
    for wrap in reversed(middleware):
        inner = wrap(inner)
    bodies = BodyBudget(max(max_bodies_bytes, max_body_bytes))
    return _Edge(inner, on_error, requests, seconds, max_body_bytes, bodies, direct)


class _Answering:
    """Runs guards, then routes, and answers their errors, so that middleware around it sees answers instead of
    exceptions.
    """

    def __init__(
        self, routes: Routes, on_error: Callable[[Request, Exception], Awaitable[Response]], guards: Sequence[Guard]
    ) -> None:
        self._routes, self._on_error, self._guards = routes, on_error, tuple(guards)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def noted_send(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            request = Request(scope, receive, noted_send)  # one for all: it reads the headers once
            for guard in self._guards:
                await guard(request)
            await self._routes.answer(request, noted_send)
        except Exception as error:
            if begun:
                raise
            response = await self._on_error(Request(scope, receive), error)
            await response(scope, receive, send)


class _Edge:
    """Counts and times requests, limits bodies and answers errors that the routes did not handle."""

    def __init__(
        self,
        app: ASGIApp,
        on_error: Callable[[Request, Exception], Any],
        requests: Any,
        seconds: Any,
        max_body_bytes: int,
        bodies: BodyBudget,
        direct: Direct | None,
    ) -> None:
        self._app, self._on_error, self._max_body_bytes, self.direct = app, on_error, max_body_bytes, direct
        self._bodies = bodies
        # Cached: the parser knows some thirty methods, and prometheus' own lookup takes a lock.
        self._counter, self._timer = cache(requests.labels), cache(seconds.labels)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, status, received = time.perf_counter(), 0, 0

        async def counted_receive() -> Message:
            nonlocal received
            message = await receive()
            size = len(message.get("body", b""))
            if received + size > self._max_body_bytes:
                raise BodyTooLarge(f"The request body is larger than {self._max_body_bytes} bytes")
            self._bodies.take(size)
            received += size
            return message

        async def noted_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, counted_receive, noted_send)
        except Exception as error:
            if status:
                logger.exception("an answer broke off", path=scope["path"])
                raise
            response = await self._on_error(Request(scope), error)
            await response(scope, receive, noted_send)
        finally:
            self._bodies.give_back(received)
            method = scope["method"]
            self.count(method, status)
            self._timer(method).observe(time.perf_counter() - began)

    def count(self, method: str, status: int) -> None:
        """Count a request that was answered directly."""
        self._counter(method, status).inc()


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 selects a free port. Raises UsageError if the address is not available."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is set: otherwise each answer on a kept connection is
    # delayed by 40 ms.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
        sock.listen(2048)
    except OSError as error:
        sock.close()
        raise UsageError(
            f"cannot listen on {host}:{port}: {error.strerror or error}; choose another address"
        ) from error
    sock.setblocking(False)
    return sock


class HttpServer:
    """Serves an application on one address.

    ``start`` returns once requests are answered; ``stop`` lets running ones finish.
    """

    def __init__(
        self,
        app: ASGIApp,
        host: str,
        port: int,
        *,
        tls: TlsFiles | ssl.SSLContext | None = None,
        grace_s: float = 5,
        limits: HttpLimits | None = None,
    ) -> None:
        self._host, self._port, self._tls = host, port, tls
        files = tls if isinstance(tls, TlsFiles) else None
        settings = HttpConfig(
            app,
            limits=limits,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            server_header=False,
            # Its default believes what any client on this machine says of a proxy: a page whose name is bound to
            # 127.0.0.1 would pass as HTTPS, which SiteGuard trusts. Jetty, too, takes such headers only when configured.
            proxy_headers=False,
            timeout_graceful_shutdown=int(grace_s),
            ssl_certfile=str(files.certificate) if files else None,
            ssl_keyfile=str(files.private_key) if files else None,
        )
        self._files = files
        if isinstance(tls, ssl.SSLContext):
            settings.load()  # a loaded application is not loaded again, so the context stays
            settings.ssl = tls
        self._server = _Quiet(settings)
        self._task: asyncio.Task[None] | None = None
        self._following: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """``http(s)://host:port`` with the actual port, once started."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls else 'http'}://{host}:{self._port}"

    @property
    def port(self) -> int:
        return self._port

    @property
    def connections(self) -> set[Any]:
        """The currently open connections."""
        return self._server.server_state.connections

    async def start(self) -> None:
        sock = listen(self._host, self._port)
        self._port = sock.getsockname()[1]
        self._task = asyncio.create_task(self._server.serve(sockets=[sock]), name=f"http {self._port}")
        if self._files is not None:
            self._following = asyncio.create_task(self._follow(self._files), name="follow the certificate")
        while not self._server.started:
            if self._task.done():
                self._task.result()
                raise TidegateError(f"the HTTP server on {self._host}:{self._port} ended at its start")
            await asyncio.sleep(0.005)

    async def _follow(self, files: TlsFiles) -> None:
        """Make new connections use the current certificate."""

        def read() -> None:
            if (context := self._server.config.ssl) is not None:
                context.load_cert_chain(files.certificate, files.private_key)

        await follow_file(files.certificate, read)

    async def stop(self) -> None:
        if self._following is not None:
            self._following.cancel()
        if self._task is not None:
            self._server.should_exit = True
            await self._task
            await self._cut_off()

    async def _cut_off(self) -> None:
        """Close connections that outlived the grace period; otherwise they would outlive the event loop."""
        left = self._server.server_state.connections
        for connection in list(left):
            connection.transport.abort()
        for _ in range(_TURNS):
            if not left:
                return
            await asyncio.sleep(0.001)


class _Quiet(uvicorn.Server):
    """uvicorn without its signal handling, which the process does, and with a time limit for TLS handshakes."""

    config: HttpConfig

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        config, loop = self.config, asyncio.get_running_loop()

        def protocol() -> asyncio.Protocol:
            return JoiningHttpProtocol(config, self.server_state, {})

        handshake_s = None if config.ssl is None else config.limits.handshake_s
        self.servers = [
            await loop.create_server(
                protocol, sock=sock, ssl=config.ssl, backlog=config.backlog, ssl_handshake_timeout=handshake_s
            )
            for sock in sockets or ()
        ]
        self.started = True

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield
