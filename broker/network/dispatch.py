"""Dispatches a frame to its handler and turns the outcome into an answer: versions, errors, metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from struct import Struct
from typing import Any, Final

from broker.api.connection import ConnectionRefusal, Promise
from broker.api.parts import AllParts
from broker.api.routes import Answer, AnyRoute, Context, Pending
from broker.errors import BrokerError, UnknownServerError
from broker.metrics.requests import RequestMetrics, Times, error_codes
from broker.network.connection import Connection
from broker.network.slow_requests import SlowRequests
from broker.network.turns import LARGE_BYTES, Turns
from broker.protocol.api import ApiKey, RequestHeader, begin_response, peek_request, read_request_header
from broker.protocol.messages.api_versions import ApiVersionsResponse
from broker.protocol.primitives import MalformedMessage
from tidegate.kit.logs import get_logger

__all__ = ["Dispatcher"]

logger = get_logger(__name__)

_SIZE: Final = Struct(">i")
_PRODUCE: Final = ApiKey.PRODUCE.to_bytes(2, "big")
_BEFORE_THE_PRODUCER: Final = 4
"""How many consumers waiting for records are answered before the producer of these records.

On an idle broker this saves a fifth of the latency from producer to consumer. Hundreds of consumers may not go before
it.
"""
_now: Final = time.monotonic
"""The event loop's clock, by which connections record the arrival of bytes."""


class Exchange:
    """One request until its answer, with the times of its stages."""

    __slots__ = ("answered_bytes", "began", "connection", "context", "handled", "header", "metrics", "ready", "received",
                 "route", "size", "throttle_s", "waited")  # fmt: skip

    def __init__(
        self,
        connection: Connection,
        route: AnyRoute,
        header: RequestHeader,
        context: Context[AllParts],
        metrics: RequestMetrics,
        size: int,
        began: float,
    ) -> None:
        self.connection = connection
        self.route = route
        self.header = header
        self.context = context
        self.metrics = metrics
        self.size = size
        self.began = self.handled = self.ready = began
        self.received = connection.active_at
        self.throttle_s = 0.0
        self.answered_bytes = 0
        self.waited = False


class Dispatcher:
    """Handles the frames of all connections of a broker."""

    def __init__(self, broker: AllParts, routes: Mapping[int, AnyRoute]) -> None:
        self._broker = broker
        self._arrivals = broker.arrivals
        self._routes = routes
        self._quota_settings = broker.metadata.quotas
        self._turns: Turns | None = None
        self._slow = SlowRequests(broker.config.slow_request_log_threshold_ms / 1000)
        self.metrics: dict[ApiKey, RequestMetrics] = {
            route.key: RequestMetrics(route.versions.stop - 1) for route in routes.values()
        }

    @property
    def slow_requests(self) -> int:
        """Number of requests that took longer than ``slow.request.log.threshold.ms``."""
        return self._slow.count

    def __call__(self, connection: Connection, frame: memoryview) -> None:
        """Answer one request. Raises ConnectionRefusal where Kafka closes the connection."""
        if len(frame) > LARGE_BYTES and frame[:2] != _PRODUCE:
            self._take_turn(connection, frame)
        else:
            self._handle(connection, frame)

    def _take_turn(self, connection: Connection, frame: memoryview) -> None:
        """Handle a large request when it is its turn; Produce has its own bounds, and its records are large as a rule."""
        loop = asyncio.get_running_loop()
        turns = self._turns = self._turns or Turns(loop)
        if turns.free:
            turns.run(lambda: self._handle(connection, frame))
            return
        handled = loop.create_future()

        def handle() -> None:
            try:
                if connection.is_open:
                    self._handle(connection, frame)
            except ConnectionRefusal as refusal:
                connection.close(str(refusal))
            except OSError as error:
                connection.close(f"records could not be read: {error}")
            finally:
                handled.set_result(None)

        turns.wait(handle)
        connection.mute_until(handled)

    def _handle(self, connection: Connection, frame: memoryview) -> None:
        began = _now()
        try:
            key, version, correlation_id = peek_request(frame)
            route = self._routes.get(key)
            if route is None:
                raise ConnectionRefusal(f"API key {key} is not served here")
            if version not in route.versions:
                self._refuse_version(connection, route, version, correlation_id)
                return
            header = read_request_header(frame, version >= route.request.FLEXIBLE_SINCE)
            request = route.request.read(frame, version, header.body_at)
        except MalformedMessage as error:
            raise ConnectionRefusal(f"malformed request: {error}") from error
        except ConnectionRefusal:
            raise
        except Exception as error:
            logger.exception("a request could not be read", client=connection.peer)
            raise ConnectionRefusal(f"a request could not be read: {error!r}") from error
        context = Context(
            self._broker,
            version,
            header.client_id or "",
            connection.peer,
            connection.listener,
            connection.principal,
            connection,
        )
        self._arrivals.hold()
        try:
            self._answer(
                Exchange(connection, route, header, context, self.metrics[route.key], len(frame), began), request
            )
        finally:
            self._arrivals.release()

    def serves(self, key: int, version: int) -> bool:
        route = self._routes.get(key)
        return route is not None and version in route.versions

    def failure(self, frame: memoryview, error: BrokerError) -> list[Any]:
        """The answer to a refused request. Raises ConnectionRefusal if it has no field for an error."""
        key, version, _ = peek_request(frame)
        route = self._routes.get(key)
        if route is None or version not in route.versions:
            raise ConnectionRefusal(error.message)
        header = read_request_header(frame, version >= route.request.FLEXIBLE_SINCE)
        return self._encoded(route, header, self._failed(route, error))[0]

    def _answer(self, exchange: Exchange, request: Any) -> None:
        route, connection = exchange.route, exchange.connection
        try:
            outcome = route.handler(exchange.context, request)
        except BrokerError as error:
            outcome = self._failed(route, error)
        except ConnectionRefusal:
            raise
        except Exception as error:
            raise self._unforeseen(route, error) from error
        exchange.handled = exchange.ready = _now()
        self._arrivals.release(_BEFORE_THE_PRODUCER)
        if isinstance(outcome, Pending):
            pending = outcome
            if not pending.future.done():
                exchange.waited = True
                connection.reserve(
                    pending.future,
                    lambda future: self._parts(exchange, self._finish(route, pending, future)),
                    lambda behind_s: self._sent(exchange, behind_s),
                )
                return
            outcome = self._finish(route, pending, pending.future)
        if outcome is None:
            self._throttle(exchange, None)
            self._sent(exchange, 0.0)
        else:
            connection.send(self._parts(exchange, outcome), lambda behind_s: self._sent(exchange, behind_s))

    def _parts(self, exchange: Exchange, answer: Answer) -> list[Any]:
        """The bytes of an answer that is ready."""
        if exchange.waited:
            exchange.ready = _now()
        if self._quota_settings.active:
            self._throttle(exchange, answer)
        parts, exchange.answered_bytes = self._encoded(exchange.route, exchange.header, answer)
        errors = error_codes(answer)
        if errors:
            for code in errors:
                exchange.metrics.failed(code)
        else:
            exchange.metrics.without_error += 1
        return parts

    def _throttle(self, exchange: Exchange, answer: Any) -> None:
        """Count the request against the client's quotas, set the throttle time in the answer, and enforce it (KIP-219).

        The longest wait applies: for request time, for produced bytes, or the handler's (fetched bytes, changes of
        topics).
        """
        quotas, context = self._broker.quotas, exchange.context
        if not quotas.active:
            return
        quota = quotas.of(context.principal, context.client_id)
        waiting = quotas.worked(quota, exchange.handled - exchange.began)
        if exchange.route.key is ApiKey.PRODUCE:
            waiting = max(waiting, quotas.produced(quota, exchange.size))
        told = getattr(answer, "throttle_time_ms", None)
        waiting = max(waiting, told or 0)
        if waiting <= 0:
            return
        if told is not None:
            answer.throttle_time_ms = waiting
        exchange.throttle_s = waiting / 1000
        exchange.connection.mute(exchange.throttle_s)

    def _sent(self, exchange: Exchange, behind_s: float) -> None:
        """Count a request whose answer was sent (or is the next to be sent, if the socket is full)."""
        now = _now()
        metrics = exchange.metrics
        metrics.versions[exchange.header.version] += 1
        metrics.request_bytes += exchange.size
        metrics.response_bytes += exchange.answered_bytes
        handled, ready = exchange.handled, exchange.ready
        times = (
            exchange.began - exchange.received,
            handled - exchange.began,
            ready - handled,
            behind_s,
            now - ready - behind_s,
            exchange.throttle_s,
        )
        metrics.samples.append(times)
        if now - exchange.received > self._slow.above_s:
            sizes = (exchange.size, exchange.answered_bytes)
            self._slow.look(exchange.route.key, exchange.context, Times(*times), sizes, now)

    def _finish(self, route: AnyRoute, pending: Pending, future: Promise) -> Answer:
        try:
            return pending.make(future.result())
        except BrokerError as error:
            return pending.failed(error) if pending.failed is not None else self._failed(route, error)
        except asyncio.CancelledError:
            raise ConnectionRefusal("the broker is stopping") from None
        except Exception as error:
            raise self._unforeseen(route, error) from error

    def _failed(self, route: AnyRoute, error: BrokerError) -> Answer:
        if route.failed is None:
            self.metrics[route.key].failed(error.code)
            raise ConnectionRefusal(f"{route.key.title} failed: {error.message}") from error
        answer = route.failed(error_code=error.code)
        if hasattr(answer, "error_message"):
            answer.error_message = error.message
        return answer

    def _unforeseen(self, route: AnyRoute, error: Exception) -> ConnectionRefusal:
        self.metrics[route.key].failed(UnknownServerError.code)
        logger.error("a handler failed", api=route.key.title, exc_info=error)
        return ConnectionRefusal(f"{route.key.title} met an error that was not foreseen: {error!r}")

    def _encoded(self, route: AnyRoute, header: RequestHeader, answer: Answer) -> tuple[list[Any], int]:
        """The parts of an answer, and their total size in bytes."""
        # ApiVersions always keeps the old header, for clients that do not know the broker's versions yet (KIP-511).
        flexible = header.version >= route.request.FLEXIBLE_SINCE and route.key is not ApiKey.API_VERSIONS
        out = begin_response(header.correlation_id, flexible)
        try:
            parts = answer.write(header.version, out)
        except Exception as error:
            raise self._unforeseen(route, error) from error
        size = -4
        for part in parts:
            size += len(part) if isinstance(part, bytearray) else part.size
        _SIZE.pack_into(parts[0], 0, size)
        return parts, size

    def _refuse_version(self, connection: Connection, route: AnyRoute, version: int, correlation_id: int) -> None:
        """Kafka closes the connection, but answers ApiVersions in version 0 with the supported versions."""
        if route.key is not ApiKey.API_VERSIONS:
            served = f"{route.versions.start} to {route.versions.stop - 1}"
            raise ConnectionRefusal(f"{route.key.title} v{version} is not served here, {served} are")
        answer: ApiVersionsResponse = route.failed(error_code=35)  # type: ignore[misc, assignment]
        answer.api_keys = [api_version for api_version in self._broker.api_versions if api_version.api_key == route.key]
        header = RequestHeader(route.key, 0, correlation_id, None, 0)
        connection.send(self._encoded(route, header, answer)[0])
