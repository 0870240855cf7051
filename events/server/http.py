"""The HTTP application: combines all fronts, and converts errors to the format of the front they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from events.bus.outcomes import error_body
from events.errors import InvalidSession, ResourceNotFound, WrongMethod
from events.fronts.login.oauth import oauth_error
from events.fronts.login.soap import fault
from events.fronts.usage import ApiUsage
from events.limits.allowance import Allowance
from events.metrics import EventMetrics
from tidegate.kit.errors import TidegateError
from tidegate.kit.http import face, json_response
from tidegate.kit.http_direct import Direct
from tidegate.kit.http_security import BrowserKeys

__all__ = ["Front", "application", "render_error"]

MAX_BODY_BYTES = 32 * 1024 * 1024
"""200 events of a collection, with a margin."""


class Front(Protocol):
    """A protocol in front of the event bus: the routes it answers."""

    def routes(self) -> Sequence[BaseRoute]: ...


def application(
    metrics: EventMetrics,
    requests: Allowance,
    fronts: Iterable[Front],
    *,
    direct: Direct | None = None,
    browsers: BrowserKeys | None = None,
) -> ASGIApp:
    """``requests`` limits requests of the REST and SOAP APIs.

    ``direct`` may answer other requests without the fronts. ``browsers`` decides which web pages may send requests.
    """
    routes: list[BaseRoute] = [route for front in fronts for route in front.routes()]
    usage = ApiUsage(requests)
    return face(
        routes,
        name="events",
        metrics=metrics.metrics,
        render_error=render_error,
        max_body_bytes=MAX_BODY_BYTES,
        guards=[usage.check],
        middleware=[*(browsers.middleware() if browsers is not None else ()), usage.around],
        direct=direct,
        sites=browsers.sites() if browsers is not None else None,
    )


def render_error(request: Request, error: TidegateError | HTTPException) -> Response:
    """Converts every error to an HTTP answer."""
    known = _of_starlette(request, error) if isinstance(error, HTTPException) else error
    path = request.scope["path"]
    if path.startswith("/services/Soap/"):
        return fault(known)
    if path.startswith(("/services/oauth2/", "/id/")):
        if isinstance(known, InvalidSession):
            return Response("Bad_OAuth_Token", 403, media_type="text/plain")
        return oauth_error(known)
    return json_response(error_body(known), known.http_status)


def _of_starlette(request: Request, error: HTTPException) -> TidegateError:
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        return WrongMethod(f"HTTP Method '{request.method}' not allowed. Allowed are {allowed.replace(', ', ',')}")
    return ResourceNotFound()
