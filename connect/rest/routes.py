"""All routes of the REST API. Bodies and texts are Kafka Connect's; ``/tidegate/v1`` is ours."""

from __future__ import annotations

from starlette.routing import BaseRoute, Route

from connect.rest.connectors import ConnectorRoutes
from connect.rest.loggers import LoggerRoutes
from connect.rest.plugins import PluginRoutes
from connect.rest.requests import Answers, Endpoint, answering_json
from connect.rest.root import RootRoutes

__all__ = ["admin_routes", "all_routes"]


def admin_routes(loggers: LoggerRoutes) -> list[BaseRoute]:
    """The routes of ``admin.listeners``."""
    return [
        *_at_once(
            Route("/admin/loggers", loggers.list, methods=["GET"]),
            Route("/admin/loggers/{logger}", loggers.show, methods=["GET"]),
        ),
        *_timed(Route("/admin/loggers/{logger}", loggers.set, methods=["PUT"])),
    ]


def all_routes(root: RootRoutes, connectors: ConnectorRoutes, plugins: PluginRoutes) -> list[BaseRoute]:
    connector_path = "/connectors/{name}"
    plugin = "/connector-plugins/{plugin}"
    return [
        *_at_once(
            Route("/", root.show, methods=["GET"]),
            Route("/connectors", connectors.list, methods=["GET"]),
            Route(connector_path, connectors.show, methods=["GET"]),
            Route(f"{connector_path}/config", connectors.show_config, methods=["GET"]),
            Route(f"{connector_path}/status", connectors.status, methods=["GET"]),
            Route(f"{connector_path}/tasks", connectors.tasks, methods=["GET"]),
            Route(connector_path + "/tasks/{task:int}/status", connectors.task_status, methods=["GET"]),
            Route(f"{connector_path}/topics", connectors.topics, methods=["GET"]),
            Route("/connector-plugins", plugins.list, methods=["GET"]),
            Route("/tidegate/v1/connectors", connectors.statistics, methods=["GET"]),
            Route("/tidegate/v1/lineage", connectors.lineage, methods=["GET"]),
            Route(f"/tidegate/v1{connector_path}/lineage", connectors.lineage, methods=["GET"]),
            Route(f"/tidegate/v1{connector_path}/progress", connectors.progress, methods=["GET"]),
        ),
        *_timed(
            Route("/health", root.health, methods=["GET"]),
            Route("/connectors", connectors.create, methods=["POST"]),
            Route(connector_path, connectors.delete, methods=["DELETE"]),
            Route(f"{connector_path}/config", connectors.put_config, methods=["PUT"]),
            Route(f"{connector_path}/config", connectors.patch_config, methods=["PATCH"]),
            Route(f"{connector_path}/pause", connectors.pause, methods=["PUT"]),
            Route(f"{connector_path}/resume", connectors.resume, methods=["PUT"]),
            Route(f"{connector_path}/stop", connectors.stop, methods=["PUT"]),
            Route(f"{connector_path}/restart", connectors.restart, methods=["POST"]),
            Route(connector_path + "/tasks/{task:int}/restart", connectors.restart_task, methods=["POST"]),
            Route(f"{connector_path}/offsets", connectors.offsets, methods=["GET"]),
            Route(f"{connector_path}/offsets", connectors.alter_offsets, methods=["PATCH"]),
            Route(f"{connector_path}/offsets", connectors.reset_offsets, methods=["DELETE"]),
            Route(f"/tidegate/v1{connector_path}/run", connectors.run_job, methods=["POST"]),
            Route(f"/tidegate/v1{connector_path}/run", connectors.cancel_job, methods=["DELETE"]),
            Route(f"/tidegate/v1{connector_path}/preview", connectors.preview, methods=["POST"]),
            Route(f"{connector_path}/topics/reset", connectors.reset_topics, methods=["PUT"]),
            Route(f"{plugin}/config", plugins.keys, methods=["GET"]),
            Route(f"{plugin}/config/validate", plugins.validate, methods=["PUT"]),
            Route(f"/tidegate/v1{plugin}/config/unknown-keys", plugins.unknown_keys, methods=["PUT"]),
            Route(f"/tidegate/v1{plugin}/config/preview", plugins.preview, methods=["PUT"]),
        ),
    ]


def _at_once(*routes: Route) -> list[BaseRoute]:
    """Routes whose endpoints never wait: they show what is in memory."""
    return [_with(route, answering_json(route.endpoint)) for route in routes]


def _timed(*routes: Route) -> list[BaseRoute]:
    """Routes whose endpoints may wait for the cluster, a worker, or a body."""
    timed = Answers().timed
    return [_with(route, timed(answering_json(route.endpoint))) for route in routes]


def _with(route: Route, endpoint: Endpoint) -> Route:
    return Route(route.path, endpoint, methods=list(route.methods or ()))
