"""``/`` and ``/v1/metadata``: the server about itself."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from registry.routes.requests import answer

__all__ = ["routes"]


def routes(cluster_id: str, group_id: str) -> list[BaseRoute]:
    async def root(_: Request) -> Response:
        return answer({})

    async def metadata_id(_: Request) -> Response:
        clusters = {"kafka-cluster": cluster_id, "schema-registry-cluster": group_id}
        return answer({"scope": {"path": [], "clusters": clusters}})

    return [
        Route("/", root, methods=["GET", "POST"]),
        Route("/v1/metadata/id", metadata_id, methods=["GET"]),
    ]
