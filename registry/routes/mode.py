"""``/mode``: may be written to, only be read, or is being filled from another registry."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from registry.errors import ModeNotConfigured
from registry.registry import Registry
from registry.routes.requests import answer, flag, read_object, subject_of
from registry.settings import Mode, read_mode

__all__ = ["routes"]


def routes(registry: Registry) -> list[BaseRoute]:
    async def show(request: Request) -> Response:
        subject = _place(request)
        in_scope = flag(request, "defaultToGlobal")
        mode = registry.settings.mode_in_scope(subject) if in_scope else registry.settings.mode(subject)
        if mode is None:
            raise ModeNotConfigured(str(subject))
        return _answer(mode)

    async def update(request: Request) -> Response:
        mode = read_mode((await read_object(request)).get("mode"))
        await registry.set_mode(_place(request), mode, force=flag(request, "force"))
        return _answer(mode)

    async def delete(request: Request) -> Response:
        return _answer(await registry.delete_mode(_place(request), recursive=flag(request, "recursive")))

    return [
        Route(path, handler, methods=[method])
        for path in ("/mode", "/mode/{subject:path}")
        for handler, method in ((show, "GET"), (update, "PUT"), (delete, "DELETE"))
    ]


def _answer(mode: Mode | None) -> Response:
    return answer({} if mode is None else {"mode": mode.value})


def _place(request: Request) -> str | None:
    return subject_of(request) or None if "subject" in request.path_params else None
