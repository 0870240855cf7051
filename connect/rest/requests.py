"""Reads requests and formats errors like Kafka Connect."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from functools import lru_cache
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from connect.errors import BadRequest, TimedOut
from tidegate.kit.errors import TidegateError
from tidegate.kit.http import json_body, json_response
from tidegate.kit.logs import get_logger

__all__ = [
    "REQUEST_TIMEOUT_S",
    "Answers",
    "Endpoint",
    "answering_json",
    "base_url",
    "flag",
    "json_value",
    "render_error",
    "string_map",
    "string_map_of",
]

logger = get_logger(__name__)

REQUEST_TIMEOUT_S: Final = 90.0
"""The request timeout of Kafka Connect's workers (``RestServer.DEFAULT_REST_REQUEST_TIMEOUT_MS``)."""

Endpoint = Callable[[Request], Awaitable[Response]]

_JSON_RANGES: Final = frozenset({"application/json", "application/*", "*/*", "*", ""})
"""Media ranges that include JSON."""


def render_error(_: Request, error: TidegateError | HTTPException) -> Response:
    """``{"error_code": ..., "message": ...}`` with the HTTP status repeated."""
    if isinstance(error, HTTPException):
        status, message = error.status_code, f"HTTP {error.status_code} {error.detail}"
    else:
        status, message = error.http_status, str(error)
    return json_response({"error_code": status, "message": message}, status)


async def json_value(request: Request) -> Any:
    """The body's JSON value. Like the original it accepts no other type (415), nor a body without a type."""
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type != "application/json":
        raise HTTPException(415)
    return await json_body(request)


def answering_json(endpoint: Endpoint) -> Callable[[Request], Coroutine[Any, Any, Response]]:
    """The endpoint for clients that accept JSON: others get 406 before anything is done.

    Like Jersey it ignores quality values.
    """

    async def answer(request: Request) -> Response:
        if not _includes_json(request.headers.get("accept", "")):
            raise HTTPException(406)
        return await endpoint(request)

    return answer


@lru_cache(256)
def _includes_json(accepted: str) -> bool:
    """Whether an Accept header (RFC 9110 12.5.1) includes JSON."""
    parts = accepted.lower().split(",")
    return not accepted or any(part.partition(";")[0].strip() in _JSON_RANGES for part in parts)


class Answers:
    """Limits each request to ``timeout_s``; its work continues after that, as in Kafka Connect.

    Each request takes a task, and half as much time again as a request for what is in memory. Endpoints that never
    wait don't need it.
    """

    def __init__(self, timeout_s: float = REQUEST_TIMEOUT_S) -> None:
        self._timeout_s = timeout_s
        self._late: set[asyncio.Future[Response]] = set()

    def timed(self, endpoint: Callable[[Request], Coroutine[Any, Any, Response]]) -> Endpoint:
        """The endpoint with a deadline. It raises TimedOut."""

        async def answer(request: Request) -> Response:
            work = asyncio.create_task(endpoint(request))
            try:
                done, _ = await asyncio.wait({work}, timeout=self._timeout_s)
            except asyncio.CancelledError:
                work.cancel()
                raise
            if done:
                return work.result()
            self._late.add(work)
            work.add_done_callback(self._ended_late)
            path = request.scope["path"]
            raise TimedOut(
                f"Request timed out. The worker is still at work on {request.method} {path} after {self._timeout_s:g} s, "
                "and goes on; ask for the state of the connector before repeating it"
            )

        return answer

    def _ended_late(self, work: asyncio.Future[Response]) -> None:
        self._late.discard(work)
        if not work.cancelled() and (error := work.exception()) is not None:
            logger.warning("a request whose time was over failed", error=str(error))


async def string_map(request: Request) -> dict[str, str | None]:
    """The body as a map of texts."""
    return string_map_of(await json_value(request))


def string_map_of(value: Any) -> dict[str, str | None]:
    """Scalars become text as in Jackson; null stays. Raises BadRequest for objects and arrays."""
    if not isinstance(value, dict):
        raise BadRequest(f"Cannot deserialize a map of configuration values from {_kind(value)}")
    return {str(key): _text(key, item) for key, item in value.items()}


def _text(key: str, value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        raise BadRequest(
            f"Cannot deserialize value of type `java.lang.String` from {_kind(value)}: configuration {key} takes text"
        )
    return json.dumps(value)


def _kind(value: Any) -> str:
    if isinstance(value, dict):
        return "Object value (token `JsonToken.START_OBJECT`)"
    if isinstance(value, list):
        return "Array value (token `JsonToken.START_ARRAY`)"
    return "null" if value is None else f"a {type(value).__name__}"


def flag(request: Request, name: str) -> bool:
    """A boolean query parameter, by Java's rule: anything but true is false."""
    return request.query_params.get(name, "false").lower() == "true"


def base_url(request: Request) -> str:
    """The address by which the client reached this worker, without a slash at its end."""
    scope = request.scope
    host = request.headers.get("host") or "{}:{}".format(*(scope.get("server") or ("localhost", 8083)))
    return f"{scope['scheme']}://{host}"
