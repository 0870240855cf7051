"""The OpenAPI 3.1 document of the REST API, generated from the endpoints' declarations; served at ``GET
/openapi.json``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from registry.server.routes.call import Call
from registry.server.routes.dispatch import MEDIA_TYPES
from registry.server.routes.endpoint import Endpoint
from registry.server.routes.query import Query
from registry.server.routes.server import CONFLUENT_VERSION
from registry.server.routes.shapes import SHAPES, shape

__all__ = ["ENDPOINT", "document"]

_ABOUT: Final = (
    "Confluent's schema registry REST API. Before any path may stand `/contexts/{context}`: then it means subjects of that context. "
    "A subject may hold any character, encoded. Answers are `application/vnd.schemaregistry.v1+json` unless only another of the "
    "media types is accepted."
)
_PARAMETERS: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "subject": ("A subject, or `:.ctx:` for settings of a whole context.", {"type": "string", "minLength": 1}),
    "version": (
        "The number of a version, `latest` or `-1`.",
        {"anyOf": [{"type": "integer", "minimum": 1, "maximum": (1 << 31) - 1}, {"enum": ["latest", "-1"]}]},
    ),
    "id": ("The id of a schema.", {"type": "integer", "minimum": 0, "maximum": (1 << 31) - 1}),
    "guid": ("The guid of a schema.", {"type": "string", "minLength": 1}),
    "resourceId": ("The id of a resource, such as a topic's.", {"type": "string", "minLength": 1}),
    "resourceName": ("The name of a resource; `-` is any.", {"type": "string", "minLength": 1}),
    "resourceNamespace": (
        "Where the resource is, such as a cluster's id; `-` is anywhere.",
        {"type": "string", "minLength": 1},
    ),
    "context": ("The name of a context, with or without its dot.", {"type": "string", "minLength": 1}),
}
_QUERY_TYPES: Final[Mapping[type, Mapping[str, Any]]] = {
    # Anything but "true" means false, as in Confluent's server.
    bool: {"anyOf": [{"type": "boolean"}, {"type": "string"}]},
    int: {
        "anyOf": [
            {"type": "integer", "minimum": -(1 << 31), "maximum": (1 << 31) - 1},
            {"type": "string", "maxLength": 0},
        ]
    },
    str: {"type": "string"},
    list: {"type": "array", "items": {"type": "string"}},
}


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The document of these endpoints, in their order."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Schema registry", "version": CONFLUENT_VERSION, "description": _ABOUT},
        "servers": [
            {"url": "/"},
            {
                "url": "/contexts/{context}",
                "description": "The same paths inside a context.",
                "variables": {"context": {"default": "."}},
            },
        ],
        "security": [{}, {"basicAuth": []}],
        "paths": paths,
        "components": {"schemas": SHAPES, "securitySchemes": {"basicAuth": {"type": "http", "scheme": "basic"}}},
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    names = re.findall(r"\{(\w+)\}", endpoint.path)
    made: dict[str, Any] = {
        "operationId": endpoint.name,
        "summary": endpoint.doc,
        "tags": [endpoint.path.split("/")[1] or "server"],
        "parameters": [*map(_path_parameter, names), *map(_query_parameter, endpoint.query)],
        "responses": {**_answer(endpoint.answer, endpoint.status), "default": _ERROR},
    }
    if endpoint.body is not None:
        made["requestBody"] = {"required": True, "content": _content(endpoint.body, MEDIA_TYPES)}
    return made


def _path_parameter(name: str) -> dict[str, Any]:
    doc, schema = _PARAMETERS[name]
    return {"name": name, "in": "path", "required": True, "description": doc, "schema": schema}


def _query_parameter(query: Query) -> dict[str, Any]:
    made: dict[str, Any] = {"name": query.name, "in": "query", "description": query.doc}
    made["schema"] = {**_QUERY_TYPES[query.type], **({} if query.default is None else {"default": query.default})}
    return made


def _answer(name: str, status: int) -> dict[str, Any]:
    if name == "none":
        return {"204": {"description": "Done; there is nothing to say."}}
    return {str(status): {"description": "Done.", "content": _content(name, MEDIA_TYPES)}}


def _content(name: str, media_types: Sequence[str]) -> dict[str, Any]:
    return {media_type: {"schema": shape(name)} for media_type in media_types}


_ERROR: Final = {
    "description": "Refused: 404 (404xx not there), 409 (40901 incompatible), 422 (422xx to be changed), 400, 401, 403, 500.",
    "content": _content("ErrorMessage", MEDIA_TYPES[:1]),
}


def get_openapi(_: Call) -> Any:
    """This document."""
    from registry.server.routes import ENDPOINTS

    return document(ENDPOINTS)


ENDPOINT: Final = Endpoint("GET", "/openapi.json", get_openapi, "object", cached=True)
