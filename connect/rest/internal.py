"""Requests between workers of a group. They are signed (KIP-507), because users must not send them."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connect.api import PluginType
from connect.config.group import GroupConfig
from connect.errors import BadRequest, NotFound
from connect.group.membership import Membership
from connect.group.protocol import Protocol
from connect.group.session_keys import require_signature
from connect.herder.herder import Herder
from connect.plugins.registry import PluginRegistry
from connect.stores import TargetState
from tidegate.kit.http import json_body

__all__ = ["InternalRoutes"]


class InternalRoutes:
    def __init__(self, herder: Herder, membership: Membership, plugins: PluginRegistry, config: GroupConfig) -> None:
        self._herder, self._membership, self._plugins, self._config = herder, membership, plugins, config

    def routes(self) -> list[BaseRoute]:
        return [
            Route("/connectors/{name}/tasks", self.put_tasks, methods=["POST"]),
            Route("/connectors/{name}/fence", self.fence, methods=["PUT"]),
            Route("/tidegate/round", self.expect_round, methods=["PUT"]),
        ]

    async def expect_round(self, request: Request) -> Response:
        """Another worker is about to join: send heartbeats quickly for a moment. Not part of Kafka Connect."""
        await self._require_signature(request)
        self._membership.expect_round()
        return Response(status_code=204)

    async def put_tasks(self, request: Request) -> Response:
        """Write the tasks planned by a connector on another worker."""
        await self._require_signature(request)
        tasks = _tasks(await json_body(request))
        await self._herder.require_leader()
        name = str(request.path_params["name"])
        stored = self._herder.configs.connectors.get(name)
        if stored is None:
            raise NotFound(f"Connector {name} not found")
        if tasks and stored.target is TargetState.STOPPED:
            raise BadRequest(f"Cannot submit non-empty set of task configs for stopped connector {name}")
        await self._herder.configs.put_tasks(name, tasks)
        return Response(status_code=204)

    async def fence(self, request: Request) -> Response:
        """Fence the producers of a source's earlier tasks."""
        await self._require_signature(request)
        await self._herder.require_leader()
        name = str(request.path_params["name"])
        stored = self._herder.configs.connectors.get(name)
        if stored is None:
            raise NotFound(f"Connector {name} not found")
        if self._plugins.find(stored.config.get("connector.class", ""), PluginType.SOURCE) is None:
            raise BadRequest(f"Connector {name} is not a source connector")
        await self._herder.fence(name)
        return Response(status_code=204)

    async def _require_signature(self, request: Request) -> None:
        if self._membership.protocol is Protocol.SESSIONED:
            key = self._herder.configs.session_key
            require_signature(request.headers, await request.body(), key, self._config.verification_algorithms)


def _tasks(value: Any) -> list[dict[str, str]]:
    right = isinstance(value, list) and all(
        isinstance(task, dict) and all(isinstance(text, str | None) for text in task.values()) for task in value
    )
    if not right:
        raise BadRequest("task configurations must be an array of objects whose values are texts")
    return [{name: text for name, text in task.items() if text is not None} for task in value]
