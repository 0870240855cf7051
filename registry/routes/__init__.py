"""The REST face: one module per resource, all of it in the list ``all_routes``."""

from __future__ import annotations

from starlette.routing import BaseRoute

from registry.registry import Registry
from registry.routes import compatibility, config, mode, schemas, server, subjects

__all__ = ["all_routes"]


def all_routes(registry: Registry, cluster_id: str, group_id: str) -> list[BaseRoute]:
    return [
        *server.routes(cluster_id, group_id),
        *schemas.routes(registry),
        *compatibility.routes(registry),
        *config.routes(registry),
        *mode.routes(registry),
        *subjects.routes(registry),
    ]
