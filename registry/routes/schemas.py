"""``/schemas`` and ``/contexts``: what is registered, by id or as a list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from registry.errors import SchemaNotFound
from registry.formats import SCHEMA_TYPES
from registry.records import SchemaVersion
from registry.registry import Registry
from registry.routes.requests import answer, flag, page
from registry.subjects import context_of, normalize

__all__ = ["routes"]

_DEFAULT_LIMIT: Final = 1000


def routes(registry: Registry) -> list[BaseRoute]:
    resource = _Schemas(registry)
    return [
        Route("/schemas", resource.all, methods=["GET"]),
        Route("/schemas/types", resource.types, methods=["GET"]),
        Route("/schemas/ids/{id}", resource.by_id, methods=["GET"]),
        Route("/schemas/ids/{id}/schema", resource.text_by_id, methods=["GET"]),
        Route("/schemas/ids/{id}/subjects", resource.subjects_by_id, methods=["GET"]),
        Route("/schemas/ids/{id}/versions", resource.versions_by_id, methods=["GET"]),
        Route("/contexts", resource.contexts, methods=["GET"]),
    ]


class _Schemas:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def types(self, _: Request) -> Response:
        return answer(list(SCHEMA_TYPES))

    async def contexts(self, request: Request) -> Response:
        return answer(page(request, self._registry.state.contexts()))

    async def all(self, request: Request) -> Response:
        versions = list(self._matching(request))
        return answer([version.as_json() for version in page(request, versions, _DEFAULT_LIMIT)])

    def _matching(self, request: Request) -> Iterator[SchemaVersion]:
        deleted = flag(request, "deleted")
        prefix = request.query_params.get("subjectPrefix", ":*:")
        for subject in self._registry.subjects(prefix, deleted=deleted):
            found = self._registry.versions(subject, deleted=deleted)
            yield from found[-1:] if flag(request, "latestOnly") else found

    async def by_id(self, request: Request) -> Response:
        found = self._found(request)[0]
        value = found.definition_as_json()
        if flag(request, "fetchMaxId"):
            value["maxId"] = self._registry.state.max_id(context_of(found.subject))
        return answer(value)

    async def text_by_id(self, request: Request) -> Response:
        return Response(self._found(request)[0].schema, media_type="application/vnd.schemaregistry.v1+json")

    async def subjects_by_id(self, request: Request) -> Response:
        names = sorted({version.subject for version in self._live(request)})
        return answer(page(request, names))

    async def versions_by_id(self, request: Request) -> Response:
        places = [{"subject": version.subject, "version": version.version} for version in self._live(request)]
        return answer(page(request, places))

    def _live(self, request: Request) -> list[SchemaVersion]:
        return [version for version in self._found(request) if flag(request, "deleted") or not version.deleted]

    def _found(self, request: Request) -> list[SchemaVersion]:
        text = request.path_params["id"]
        if not text.isascii() or not text.isdigit() or len(text) > 10:
            raise SchemaNotFound(text)
        subject = request.query_params.get("subject")
        return self._registry.by_id(int(text), normalize(subject) if subject else None)
