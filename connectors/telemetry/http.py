"""OTLP over HTTP: a request is answered when the log has its records."""

from __future__ import annotations

import asyncio
import itertools
import zlib
from collections import Counter
from collections.abc import Iterable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from connect.api import ConnectError
from connectors.telemetry import otlp
from connectors.telemetry.config import Listener, TelemetryConfig
from connectors.telemetry.inbox import Arrival, Counts, Inbox
from connectors.telemetry.malformed import Malformed
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.http import HttpServer, face
from tidegate.kit.http_limits import HttpLimits
from tidegate.kit.metrics import Metrics

__all__ = ["Answers", "listen_http"]

_PROTOBUF: Final = "application/x-protobuf"
_PATIENCE_S: Final = 30.0


class Answers:
    """Requests that wait until the log has their records. ``at_once`` answers as soon as they are in the queue."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, at_once: bool) -> None:
        self.at_once = at_once
        self._loop = loop
        self._waiting: dict[int, asyncio.Future[None]] = {}
        self._left: Counter[int] = Counter()
        self._complete: set[int] = set()
        self._numbers = itertools.count(1)

    def new(self) -> tuple[int, asyncio.Future[None]]:
        """From the listeners' thread."""
        number = next(self._numbers)
        self._waiting[number] = self._loop.create_future()
        return number, self._waiting[number]

    def forget(self, number: int) -> None:
        """From the listeners' thread."""
        self._waiting.pop(number, None)

    def expect(self, number: int) -> None:
        """From the task's thread: the request has one more row."""
        self._left[number] += 1

    def complete(self, number: int) -> None:
        """From the task's thread: all rows of the request were expected."""
        self._complete.add(number)
        self._look_at(number)

    def written(self, numbers: Iterable[int]) -> None:
        """From the task's thread: the log has a row of each of these requests; a number comes as often as it has rows."""
        for number, rows in Counter(numbers).items():
            self._left[number] -= rows
            self._look_at(number)

    def _look_at(self, number: int) -> None:
        if number in self._complete and self._left[number] <= 0:
            del self._left[number]
            self._complete.discard(number)
            self._loop.call_soon_threadsafe(self._answer, number)

    def _answer(self, number: int) -> None:
        waiting = self._waiting.pop(number, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(None)


class NotWritten(TidegateError):
    """The queue is full, or the log did not confirm the records in time: an exporter sends the request again."""

    http_status = 503
    http_headers: Final = {"Retry-After": "1"}


class UnsupportedBody(UsageError):
    """The body is no protobuf, or is compressed in another way than gzip."""

    http_status = 415


class RequestTooLarge(UsageError):
    """The body is too large once it is unpacked."""

    http_status = 413


async def listen_http(
    listener: Listener,
    config: TelemetryConfig,
    inbox: Inbox,
    counts: Counts,
    answers: Answers,
    open_now: AsyncExitStack,
) -> None:
    """Take requests until ``open_now`` is closed. Raises ConnectError if the address is not available."""

    def route(signal: str) -> Route:
        async def take(request: Request) -> Response:
            counts.received += 1
            if request.headers.get("content-type", "").partition(";")[0].strip() != _PROTOBUF:
                raise UnsupportedBody(f"Content-Type should be {_PROTOBUF}: OTLP's JSON is not read")
            body = _unpacked(await request.body(), request.headers.get("content-encoding", "identity"), config)
            sender = f"{request.client.host}:{request.client.port}" if request.client else "unknown"
            about = (f"{listener}{request.url.path}", sender, datetime.now(UTC))
            try:
                message = otlp.decoded(signal, body)
            except Malformed as error:
                inbox.offer(Arrival(*about, body[:_SHOWN], str(error)))
                raise UsageError(str(error)) from error
            number, written = answers.new()
            try:
                if not inbox.offer(Arrival(*about, body, signal=signal, request=message, number=number)):
                    counts.refused += 1
                    raise NotWritten("too many requests wait for the log: try again")
                if not answers.at_once:
                    await asyncio.wait_for(written, _PATIENCE_S)
            except TimeoutError:
                raise NotWritten("the log did not confirm the records in time: send them again") from None
            finally:
                answers.forget(number)
            return Response(otlp.signal(signal).answer, media_type=_PROTOBUF)

        return Route(f"/v1/{signal}", take, methods=["POST"])

    app = face(
        [route(signal) for signal in otlp.SIGNALS],
        name="otlp",
        metrics=Metrics(),
        render_error=_refused,
        max_body_bytes=config.message_bytes,
        max_bodies_bytes=max(config.queue_bytes, config.message_bytes),
    )
    limits = HttpLimits(connections=config.connections)
    server = HttpServer(app, listener.host, listener.port, grace_s=1, limits=limits)
    try:
        await server.start()
    except TidegateError as error:
        raise ConnectError(f"{listener}: {error.message}") from error
    open_now.push_async_callback(server.stop)


_SHOWN: Final = 16_384


def _unpacked(body: bytes, encoding: str, config: TelemetryConfig) -> bytes:
    """The body without its compression. Raises an error to answer."""
    if encoding == "identity":
        return body
    if encoding != "gzip":
        raise UnsupportedBody(f"Content-Encoding {encoding!r} should be gzip or identity")
    unpacking = zlib.decompressobj(31)
    try:
        unpacked = unpacking.decompress(body, config.message_bytes + 1)
    except zlib.error as error:
        raise UsageError(f"the body is not gzip: {error}") from error
    if len(unpacked) > config.message_bytes:
        raise RequestTooLarge(f"the unpacked body is larger than message.max.bytes={config.message_bytes}")
    if not unpacking.eof:
        raise UsageError("the body is not gzip: its end is missing")
    return unpacked


def _refused(_: Request, error: TidegateError | HTTPException) -> Response:
    status, text = (
        (error.status_code, error.detail) if isinstance(error, HTTPException) else (error.http_status, error.message)
    )
    return Response(otlp.refusal(text), status, media_type=_PROTOBUF)
