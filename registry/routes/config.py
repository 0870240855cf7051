"""``/config``: compatibility levels and what else is set for a subject or for all."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from registry.errors import ConfigNotConfigured
from registry.registry import Registry
from registry.routes.requests import answer, flag, read_object, subject_of
from registry.settings import read_config

__all__ = ["routes"]


def routes(registry: Registry) -> list[BaseRoute]:
    async def show(request: Request) -> Response:
        subject = _place(request)
        if flag(request, "defaultToGlobal"):
            return answer(registry.settings.config_in_scope(subject))
        found = registry.settings.config(subject)
        if found is None:
            raise ConfigNotConfigured(str(subject))
        return answer(found)

    async def update(request: Request) -> Response:
        changed = await registry.set_config(_place(request), read_config(await read_object(request)))
        return answer(_as_request(changed))

    async def delete(request: Request) -> Response:
        return answer(await registry.delete_config(_place(request)))

    return [
        Route(path, handler, methods=[method])
        for path in ("/config", "/config/{subject:path}")
        for handler, method in ((show, "GET"), (update, "PUT"), (delete, "DELETE"))
    ]


def _place(request: Request) -> str | None:
    """The subject of the path; None, the global config, without one and for the default context's name."""
    return subject_of(request) or None if "subject" in request.path_params else None


def _as_request(config: dict[str, Any]) -> dict[str, Any]:
    """A config in the words of a request, where the level is called ``compatibility``."""
    return {"compatibility" if name == "compatibilityLevel" else name: value for name, value in config.items()}
