"""Finds a request's route: Starlette's routes without the layers of its application, which cost every request time.

Like Jersey, which Kafka Connect's REST API uses: a trailing slash changes nothing, ``%2F`` is part of its segment, and
OPTIONS returns the methods of a path.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import unquote

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

__all__ = ["Routes"]

_KEPT: Final = 4096
"""The number of paths whose routes are cached."""

_SLASH: Final = "\x00"
"""Represents an encoded slash. A path that contains this character itself is refused."""

_Match = tuple[Route | None, dict[str, Any]]
"""A route with its parameters; None with ``allow``, the methods of the path, for OPTIONS."""


class Routes:
    """Routes, tried in order. Entries that are not a ``Route`` decide by themselves which requests they take, and are
    tried first.

    Raises the endpoints' errors, and HTTPException for an unknown path (404) or method (405, with ``Allow``).
    """

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._others = tuple(route for route in routes if not isinstance(route, Route))
        self._routes = tuple(route for route in routes if isinstance(route, Route))
        for route in self._routes:
            if not inspect.iscoroutinefunction(route.endpoint):
                raise TypeError(
                    f"the endpoint of {route.path} is to be 'async def'; it would hold up every other request"
                )
        self._find = lru_cache(_KEPT)(self._look)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer an HTTP request."""
        await self.answer(Request(scope, receive, send), send)

    async def answer(self, request: Request, send: Send) -> None:
        """Answer a request that may have been looked at already; what it has parsed is not parsed again."""
        scope = request.scope
        for other in self._others:
            match, more = other.matches(scope)
            if match is Match.FULL:
                scope.update(more)
                await other.handle(scope, request.receive, send)
                return
        route, params = self._find(scope["method"], _matched_path(scope))
        if route is None:
            response: Response = PlainTextResponse(params["allow"], headers={"Allow": params["allow"]})
        else:
            scope["path_params"] = dict(params)
            response = await route.endpoint(request)
        await response(scope, request.receive, send)

    def _look(self, method: str, path: str) -> _Match:
        allowed: set[str] = set()
        for route in self._routes:
            match = route.path_regex.match(path) or (path.endswith("/") and route.path_regex.match(path[:-1]))
            if not match:
                continue
            if route.methods is None or method in route.methods:
                convert = route.param_convertors
                texts = {name: text.replace(_SLASH, "/") for name, text in match.groupdict().items()}
                return route, {name: convert[name].convert(text) for name, text in texts.items()}
            allowed |= route.methods
        if not allowed:
            raise HTTPException(404)
        allow = ", ".join(sorted(allowed | {"OPTIONS"}))
        if method == "OPTIONS":
            return None, {"allow": allow}
        raise HTTPException(405, headers={"Allow": allow})


def _matched_path(scope: Scope) -> str:
    """The decoded path, with ``_SLASH`` for an encoded slash, so that it separates nothing."""
    raw = scope.get("raw_path") or b""
    path: str = scope["path"]
    if _SLASH in path:
        raise HTTPException(400, "a path with a null character")
    if b"%2F" not in raw and b"%2f" not in raw:
        return path
    return unquote(raw.decode("latin-1").replace("%2F", _SLASH).replace("%2f", _SLASH))
