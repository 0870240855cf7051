"""The registry as a web application over any log, for ``server`` and for tests."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.types import ASGIApp

from registry.domain.registry import Registry
from registry.metrics import RegistryMetrics
from registry.server.routes import all_routes
from registry.server.routes.dispatch import render_error
from tidegate.kit.http import Guard, Middleware, face
from tidegate.kit.http_sites import SiteGuard

__all__ = ["application"]

MAX_BODY_BYTES = 10 * 1024 * 1024


def application(
    registry: Registry,
    metrics: RegistryMetrics,
    *,
    cluster_id: str,
    group_id: str,
    guards: Sequence[Guard] = (),
    middleware: Sequence[Middleware] = (),
    max_body_bytes: int = MAX_BODY_BYTES,
    sites: SiteGuard | None = None,
) -> ASGIApp:
    return face(
        all_routes(registry, cluster_id, group_id),
        name="registry",
        metrics=metrics,
        render_error=render_error,
        max_body_bytes=max_body_bytes,
        guards=guards,
        middleware=middleware,
        sites=sites,
    )
