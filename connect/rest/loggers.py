"""Log levels of this worker, or of all workers of the cluster."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from connect.errors import BadRequest, NotFound
from connect.rest.requests import string_map
from connect.worker.loggers import Loggers
from tidegate.kit.http import json_response

__all__ = ["LoggerRoutes"]


class LoggerRoutes:
    """``on_level`` is called with levels set for this worker; ``tell_all`` makes every worker of the cluster set them."""

    def __init__(
        self,
        loggers: Loggers,
        on_level: Callable[[str, str], None],
        tell_all: Callable[[str, str], Awaitable[None]],
    ) -> None:
        self._loggers, self._on_level, self._tell_all = loggers, on_level, tell_all

    async def list(self, _: Request) -> Response:
        return json_response(self._loggers.all())

    async def show(self, request: Request) -> Response:
        name = request.path_params["logger"]
        level = self._loggers.level_of(name)
        if level is None:
            raise NotFound(f"Logger {name} not found.")
        return json_response(level)

    async def set(self, request: Request) -> Response:
        level = (await string_map(request)).get("level")
        if not level:
            raise BadRequest("Desired 'level' parameter was not specified in request.")
        if not self._loggers.is_level(level.upper()):
            raise NotFound(f"invalid log level '{level}'.")
        namespace, level = request.path_params["logger"], level.upper()
        if request.query_params.get("scope", "worker").lower() == "cluster":
            await self._tell_all(namespace, level)
            return Response(status_code=204)
        changed = self._loggers.set(namespace, level)
        self._on_level(namespace, level)
        return json_response(changed)
