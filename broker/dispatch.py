"""From a frame to a handler and from its outcome to the answer: versions, errors, metrics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from struct import Struct
from typing import Any, Final

from broker.broker import Broker
from broker.connection import Connection, ConnectionRefusal
from broker.errors import BrokerError
from broker.handlers.routes import Answer, Context, Pending, Route
from broker.metrics import ApiCounts
from broker.protocol.api import ApiKey, RequestHeader, peek_request, read_request_header, response_header
from broker.protocol.messages.api_versions import ApiVersionsResponse
from broker.protocol.primitives import MalformedMessage
from tidegate.kit.logs import logger

__all__ = ["Dispatcher"]

log = logger(__name__)

_SIZE: Final = Struct(">i")


class Dispatcher:
    """Handles the frames of all connections of a broker."""

    def __init__(self, broker: Broker, routes: Mapping[int, Route]) -> None:
        self._broker = broker
        self._routes = routes
        self.counts: dict[ApiKey, ApiCounts] = {route.key: ApiCounts() for route in routes.values()}

    def __call__(self, connection: Connection, frame: memoryview) -> None:
        """Answer one request. Raises ConnectionRefusal for what Kafka closes the connection for."""
        began = time.perf_counter()
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
            log.exception("a request could not be read", client=connection.peer)
            raise ConnectionRefusal(f"a request could not be read: {error!r}") from error
        context = Context(
            self._broker, version, header.client_id or "", connection.peer, connection.listener, connection.principal
        )
        self._answer(connection, route, header, context, request, began)

    def serves(self, key: int, version: int) -> bool:
        route = self._routes.get(key)
        return route is not None and version in route.versions

    def failure(self, frame: memoryview, error: BrokerError) -> list[Any]:
        """The answer to a request that is not carried out. Raises ConnectionRefusal where it has no place for an error."""
        key, version, _ = peek_request(frame)
        route = self._routes.get(key)
        if route is None or version not in route.versions:
            raise ConnectionRefusal(error.message)
        header = read_request_header(frame, version >= route.request.FLEXIBLE_SINCE)
        return self._encoded(route, header, self._failed(route, error))

    def _answer(
        self, connection: Connection, route: Route, header: RequestHeader, context: Context, request: Any, began: float
    ) -> None:
        counts = self.counts[route.key]
        counts.requests += 1
        try:
            outcome = route.handler(context, request)
        except BrokerError as error:
            outcome = self._failed(route, error)
        except ConnectionRefusal:
            raise
        except Exception as error:
            raise self._unforeseen(route, error) from error
        if isinstance(outcome, Pending):
            pending = outcome

            def finish(future: asyncio.Future[Any]) -> Sequence[Any]:
                answer = self._finish(route, pending, future)
                counts.seconds += time.perf_counter() - began
                return self._encoded(route, header, answer)

            if not pending.future.done():
                connection.reserve(pending.future, finish)
                return
            connection.send(finish(pending.future))
        elif outcome is not None:
            connection.send(self._encoded(route, header, outcome))
            counts.seconds += time.perf_counter() - began

    def _finish(self, route: Route, pending: Pending, future: asyncio.Future[Any]) -> Answer:
        try:
            return pending.make(future.result())
        except BrokerError as error:
            return pending.failed(error) if pending.failed is not None else self._failed(route, error)
        except asyncio.CancelledError:
            raise ConnectionRefusal("the broker is stopping") from None
        except Exception as error:
            raise self._unforeseen(route, error) from error

    def _failed(self, route: Route, error: BrokerError) -> Answer:
        self.counts[route.key].errors += 1
        if route.failed is None:
            raise ConnectionRefusal(f"{route.key.title} failed: {error.message}") from error
        return route.failed(error_code=error.code)

    def _unforeseen(self, route: Route, error: Exception) -> ConnectionRefusal:
        self.counts[route.key].errors += 1
        log.error("a handler failed", api=route.key.title, exc_info=error)
        return ConnectionRefusal(f"{route.key.title} met an error that was not foreseen: {error!r}")

    def _encoded(self, route: Route, header: RequestHeader, answer: Answer) -> list[Any]:
        # ApiVersions keeps the old header for ever, for clients that do not know yet whom they talk to (KIP-511).
        flexible = header.version >= route.request.FLEXIBLE_SINCE and route.key is not ApiKey.API_VERSIONS
        out = bytearray(4) + response_header(header.correlation_id, flexible)
        try:
            parts = answer.write(header.version, out)
        except Exception as error:
            raise self._unforeseen(route, error) from error
        size = sum(len(part) if isinstance(part, bytearray) else part.size for part in parts) - 4
        _SIZE.pack_into(parts[0], 0, size)
        return parts

    def _refuse_version(self, connection: Connection, route: Route, version: int, correlation_id: int) -> None:
        """Kafka closes the connection, except that ApiVersions is answered in version 0 with what there is."""
        if route.key is not ApiKey.API_VERSIONS:
            served = f"{route.versions.start} to {route.versions.stop - 1}"
            raise ConnectionRefusal(f"{route.key.title} v{version} is not served here, {served} are")
        answer: ApiVersionsResponse = route.failed(error_code=35)  # type: ignore[misc, assignment]
        answer.api_keys = [one for one in self._broker.api_versions if one.api_key == route.key]
        header = RequestHeader(route.key, 0, correlation_id, None, 0)
        connection.send(self._encoded(route, header, answer))
