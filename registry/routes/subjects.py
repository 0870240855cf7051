"""``/subjects``: register, look up, list and delete."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from registry.registry import Registry
from registry.routes.requests import (
    answer,
    definition,
    flag,
    optional_int,
    page,
    read_object,
    subject_of,
    version_of,
)

__all__ = ["routes"]


def routes(registry: Registry) -> list[BaseRoute]:
    resource = _Subjects(registry)
    versions = "/subjects/{subject:path}/versions"
    # A subject may hold slashes, so the longer paths come first.
    return [
        Route("/subjects", resource.all, methods=["GET"]),
        Route(versions + "/{version}/schema", resource.schema_text, methods=["GET"]),
        Route(versions + "/{version}/referencedby", resource.referenced_by, methods=["GET"]),
        Route(versions + "/{version}", resource.version, methods=["GET"]),
        Route(versions + "/{version}", resource.delete_version, methods=["DELETE"]),
        Route(versions, resource.versions, methods=["GET"]),
        Route(versions, resource.register, methods=["POST"]),
        Route("/subjects/{subject:path}", resource.lookup, methods=["POST"]),
        Route("/subjects/{subject:path}", resource.delete, methods=["DELETE"]),
    ]


class _Subjects:
    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    async def all(self, request: Request) -> Response:
        prefix = request.query_params.get("subjectPrefix", ":*:")
        deleted, only = flag(request, "deleted"), flag(request, "deletedOnly")
        return answer(page(request, self._registry.subjects(prefix, deleted=deleted, deleted_only=only)))

    async def versions(self, request: Request) -> Response:
        negative = flag(request, "deletedAsNegative")
        found = self._registry.versions(
            subject_of(request), deleted=flag(request, "deleted") or negative, deleted_only=flag(request, "deletedOnly")
        )
        numbers = [-version.version if negative and version.deleted else version.version for version in found]
        return answer(page(request, numbers))

    async def version(self, request: Request) -> Response:
        found = self._registry.version(subject_of(request), version_of(request), deleted=flag(request, "deleted"))
        return answer(found.as_json())

    async def schema_text(self, request: Request) -> Response:
        found = self._registry.version(subject_of(request), version_of(request), deleted=flag(request, "deleted"))
        return Response(found.schema, media_type="application/vnd.schemaregistry.v1+json")

    async def referenced_by(self, request: Request) -> Response:
        ids = self._registry.referenced_by(subject_of(request), version_of(request), deleted=flag(request, "deleted"))
        return answer(page(request, ids))

    async def register(self, request: Request) -> Response:
        body = await read_object(request)
        registered = await self._registry.register(
            subject_of(request),
            definition(body),
            schema_id=optional_int(body, "id"),
            version=optional_int(body, "version") or None,
            normalize=flag(request, "normalize"),
            force=flag(request, "force"),
        )
        return answer({"id": registered.id})

    async def lookup(self, request: Request) -> Response:
        wanted = definition(await read_object(request))
        normalize, deleted = flag(request, "normalize"), flag(request, "deleted")
        return answer(
            self._registry.lookup(subject_of(request), wanted, normalize=normalize, deleted=deleted).as_json()
        )

    async def delete_version(self, request: Request) -> Response:
        permanent = flag(request, "permanent")
        return answer(
            await self._registry.delete_version(subject_of(request), version_of(request), permanent=permanent)
        )

    async def delete(self, request: Request) -> Response:
        return answer(await self._registry.delete_subject(subject_of(request), permanent=flag(request, "permanent")))
