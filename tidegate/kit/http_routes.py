"""From a request to its route: Starlette's routes without the layers of its application, of which every request pays each."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.routing import BaseRoute, Match, Route
from starlette.types import Receive, Scope, Send

__all__ = ["Routes"]

_KEPT: Final = 4096
"""Paths of which it is remembered where they lead."""

_Found = tuple[Route, dict[str, Any]]


class Routes:
    """Routes, asked in their order; what is no ``Route`` decides for itself what is its own, and is asked first.

    Raises what the endpoints raise, and HTTPException for a path (404) or a method (405, with ``Allow``) that there is not.
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
        for other in self._others:
            match, more = other.matches(scope)
            if match is Match.FULL:
                scope.update(more)
                await other.handle(scope, receive, send)
                return
        route, params = self._find(scope["method"], scope["path"])
        scope["path_params"] = dict(params)
        response = await route.endpoint(Request(scope, receive, send))
        await response(scope, receive, send)

    def _look(self, method: str, path: str) -> _Found:
        allowed: set[str] = set()
        for route in self._routes:
            match = route.path_regex.match(path)
            if match is None:
                continue
            if route.methods is None or method in route.methods:
                convert = route.param_convertors
                return route, {name: convert[name].convert(text) for name, text in match.groupdict().items()}
            allowed |= route.methods
        if allowed:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})
        raise HTTPException(404)
