"""The REST API: one module per resource; the list ``ENDPOINTS`` has all operations."""

from __future__ import annotations

from typing import Final

from starlette.routing import BaseRoute

from registry.domain.registry import Registry
from registry.server.routes import associations, compatibility, config, mode, openapi, schemas, server, subjects
from registry.server.routes.dispatch import Dispatcher
from registry.server.routes.endpoint import Endpoint

__all__ = ["ENDPOINTS", "all_routes"]

ENDPOINTS: Final[tuple[Endpoint, ...]] = (
    *server.endpoints("", ""),
    *schemas.ENDPOINTS,
    *compatibility.ENDPOINTS,
    *config.ENDPOINTS,
    *mode.ENDPOINTS,
    *subjects.ENDPOINTS,
    *associations.ENDPOINTS,
    openapi.ENDPOINT,
)
"""Every operation, in the order of the documentation."""


def all_routes(registry: Registry, cluster_id: str, group_id: str) -> list[BaseRoute]:
    about = {(each.method, each.path): each for each in server.endpoints(cluster_id, group_id)}
    return [Dispatcher(registry, [about.get((each.method, each.path), each) for each in ENDPOINTS])]
