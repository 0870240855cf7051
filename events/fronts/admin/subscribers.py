"""Monitoring of triggers and flows: EventBusSubscriber by REST query as in Salesforce, and Tidegate's API to control
them.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from events.access import Access, Permission
from events.errors import BadRequest
from events.fronts.requests import check_version, json_object, session_of
from events.fronts.rest.soql import parse_select
from events.triggers.monitor import Monitor
from tidegate.kit.http import json_response

__all__ = ["SubscribersFront"]

_TYPE: Final = "EventBusSubscriber"


class InvalidQueryType(BadRequest):
    code = "INVALID_TYPE"


class SubscribersFront:
    """``/services/data/vNN.0/query`` over EventBusSubscriber, and ``/tidegate/v1/triggers``."""

    def __init__(self, access: Access, monitor: Monitor) -> None:
        self._access, self._monitor = access, monitor

    def routes(self) -> list[Route]:
        triggers = "/tidegate/v1/triggers"
        return [
            Route("/services/data/v{version}/query", self.query, methods=["GET"]),
            Route("/services/data/v{version}/query/", self.query, methods=["GET"]),
            Route(triggers, self.list, methods=["GET"]),
            Route(f"{triggers}/{{trigger}}", self.change, methods=["PATCH", "DELETE"]),
        ]

    async def query(self, request: Request) -> Response:
        version = check_version(request.path_params["version"])
        session_of(request, self._access).user.require(Permission.VIEW_SETUP)
        asked = parse_select(request.query_params.get("q", ""))
        if asked.type.lower() != _TYPE.lower():
            raise InvalidQueryType(
                f"sObject type '{asked.type[:100]}' is not supported; {_TYPE} is what can be queried here"
            )
        rows: list[dict[str, Any]] = [
            {name: value for name, value in row.items() if name[:1].isupper()}
            for row in await self._monitor.subscribers()
        ]
        rows_ = asked.of(rows)
        if not asked.fields:
            return json_response({"totalSize": len(rows_), "done": True, "records": []})
        base = f"/services/data/v{version}/sobjects/{_TYPE}"
        records = [{"attributes": {"type": _TYPE, "url": f"{base}/{row.get('Id', '')}"}, **row} for row in rows_]
        return json_response({"totalSize": len(records), "done": True, "records": records})

    async def list(self, request: Request) -> Response:
        session_of(request, self._access).user.require(Permission.VIEW_SETUP)
        problems = await self._monitor.problems()
        return json_response({"subscribers": await self._monitor.subscribers(), "problems": problems})

    async def change(self, request: Request) -> Response:
        """Resume or suspend (PATCH), or remove a trigger that no longer exists (DELETE)."""
        session_of(request, self._access).user.require(Permission.CUSTOMIZE)
        name = request.path_params["trigger"]
        if request.method == "DELETE":
            await self._monitor.forget(name)
        else:
            await self._monitor.command(name, await json_object(request))
        return Response(status_code=204)
