"""Forwards requests that another worker has to answer to it unchanged, over at most two hops.

Operations raise ``Elsewhere``; all routes are wrapped here, so that none of them needs to handle it. The first worker
forwards with ``forward=true``, the next one with ``forward=false``, which the receiver must answer itself: by then the
group has most likely been rebalanced, and the user may retry.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from connect.errors import Conflict, Elsewhere
from connect.group.peers import Peers
from connect.group.session_keys import ALGORITHM_HEADER, SIGNATURE_HEADER
from connect.rest.requests import Endpoint, base_url

__all__ = ["Forwarding"]

_TOO_FAR: Final = "Cannot complete request because of a conflicting operation (e.g. worker rebalance)"
_HEADERS: Final = ("Authorization", "Content-Type", "Accept", SIGNATURE_HEADER, ALGORITHM_HEADER)


class Forwarding:
    def __init__(self, peers: Peers) -> None:
        self._peers = peers

    def over(self, routes: Sequence[BaseRoute]) -> list[BaseRoute]:
        """The same routes, with forwarding of requests that raise Elsewhere."""
        return [
            Route(route.path, self._passing_on(route.endpoint), methods=list(route.methods or ()))
            if isinstance(route, Route)
            else route
            for route in routes
        ]

    def _passing_on(self, endpoint: Endpoint) -> Endpoint:
        async def answer(request: Request) -> Response:
            try:
                return await endpoint(request)
            except Elsewhere as elsewhere:
                return await self._pass_on(request, elsewhere)

        return answer

    async def _pass_on(self, request: Request, elsewhere: Elsewhere) -> Response:
        hop = request.query_params.get("forward")
        if hop is not None and hop.lower() != "true":
            raise Conflict(_TOO_FAR)
        if elsewhere.url is None:
            raise Conflict(str(elsewhere))
        path = request.scope.get("raw_path", b"").decode("latin-1") or request.scope["path"]
        query = [(name, value) for name, value in request.query_params.multi_items() if name != "forward"]
        answer = await self._peers.ask(
            request.method,
            elsewhere.url.rstrip("/") + path.partition("?")[0],
            body=await request.body(),
            headers={name: request.headers[name] for name in _HEADERS if name in request.headers},
            query=urlencode([*query, ("forward", "true" if hop is None else "false")]),
        )
        kept = {name: answer.headers[name] for name in ("Content-Type",) if name in answer.headers}
        if "Location" in answer.headers:  # that of the answering worker: users get that of the worker they asked
            kept["Location"] = base_url(request) + urlsplit(answer.headers["Location"]).path
        return Response(answer.body, answer.status, kept)
