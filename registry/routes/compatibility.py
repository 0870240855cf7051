"""``/compatibility``: would this schema be accepted?"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from registry.errors import InvalidSchema
from registry.registry import Registry
from registry.routes.requests import answer, definition, flag, read_object, subject_of, version_of

__all__ = ["routes"]


def routes(registry: Registry) -> list[BaseRoute]:
    async def check(request: Request) -> Response:
        """Against one version, or against all where the path names none; reasons only when ``verbose``."""
        number = version_of(request) if "version" in request.path_params else None
        wanted, verbose = definition(await read_object(request)), flag(request, "verbose")
        try:
            messages = registry.check(subject_of(request), wanted, number, normalize=flag(request, "normalize"))
        except InvalidSchema as error:
            if not verbose:
                raise
            messages = [error.message]
        return answer({"is_compatible": not messages, **({"messages": messages} if verbose else {})})

    path = "/compatibility/subjects/{subject:path}/versions"
    return [
        Route(path + "/{version}", check, methods=["POST"]),
        Route(path, check, methods=["POST"]),
    ]
