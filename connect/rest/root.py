"""The worker's version and health."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from tidegate.kit.http import json_response

__all__ = ["KAFKA_VERSION", "RootRoutes"]

KAFKA_VERSION: Final = "4.3.1"
"""The version of Kafka Connect whose REST API this is."""


class RootRoutes:
    """``health`` returns (HTTP status, status word, message)."""

    def __init__(
        self, commit: str, cluster_id: Callable[[], str], health: Callable[[], Awaitable[tuple[int, str, str]]]
    ) -> None:
        self._commit, self._cluster_id, self._health = commit, cluster_id, health

    async def show(self, _: Request) -> Response:
        shown = {"version": KAFKA_VERSION, "commit": self._commit, "kafka_cluster_id": self._cluster_id()}
        return json_response(shown)

    async def health(self, _: Request) -> Response:
        code, status, message = await self._health()
        return json_response({"status": status, "message": message}, code)
