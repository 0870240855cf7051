"""The console's routes behind the HTTP edge of all components."""

from __future__ import annotations

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tidegate.console.console import Console, NavigationEntry
from tidegate.console.edge import Headers, SessionGuard, error_page
from tidegate.console.pages import PAGES
from tidegate.console.pages.login import routes as login_routes
from tidegate.console.rendering import STATIC
from tidegate.kit.http import face
from tidegate.kit.metrics import Metrics

__all__ = ["application"]

_MOST_BYTES = 4 * 1024 * 1024
"""The largest form: a configuration, or an edited record."""
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}


def application(console: Console, metrics: Metrics) -> ASGIApp:
    """The application of a console. Sets the navigation."""
    pages = [page for page in PAGES if page.is_configured(console)]
    console.navigation = [NavigationEntry(page.title, page.path) for page in pages if page.title]
    routes = [Route("/static/{stamp}/{name}", _asset), *login_routes(console)]
    for page in pages:
        routes += page.routes(console)
    return face(
        routes,
        name="console",
        metrics=metrics,
        render_error=lambda request, error: error_page(console, request, error),
        max_body_bytes=_MOST_BYTES,
        guards=[SessionGuard(console)],
        middleware=[Headers, *console.config.middleware()],
        sites=console.config.sites(),
    )


async def _asset(request: Request) -> Response:
    path = STATIC / request.path_params["name"]
    if path.parent != STATIC or path.suffix not in _TYPES or not path.is_file():
        raise HTTPException(404)
    return Response(path.read_bytes(), media_type=_TYPES[path.suffix])
