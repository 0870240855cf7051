"""``/associations``: the topics that subjects belong to."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from registry.domain.association_requests import Change, Request
from registry.errors import InvalidAssociation, InvalidBody, RegistryError
from registry.model.associations import ANY, TOPIC, Association
from registry.model.records import SchemaVersion
from registry.model.subjects import normalize
from registry.server.routes import answers
from registry.server.routes.association_bodies import AssociationQuery, read_batch, read_query, read_request
from registry.server.routes.call import Call
from registry.server.routes.endpoint import Endpoint
from registry.server.routes.query import (
    ASSOCIATION_TYPE,
    CASCADE_LIFECYCLE,
    CONTEXT,
    DRY_RUN,
    INCLUDE_SCHEMAS,
    LIFECYCLE,
    LIMIT,
    OFFSET,
    RESOURCE_TYPE,
)

__all__ = ["ENDPOINTS"]

T = TypeVar("T")

_MOST: Final = 1000


def get_associations_by_subject(call: Call) -> Any:
    """The associations of a subject."""
    associations = call.registry.catalog.state.associations.of_subject(
        normalize(call.params["subject"]),
        type_=_type(call),
        kinds=call.texts(ASSOCIATION_TYPE),
        lifecycle=_lifecycle(call),
    )
    return _listed(call, associations)


def get_associations_by_resource_name(call: Call) -> Any:
    """The associations of a resource by its name; `-` matches any name or namespace."""
    associations = call.registry.catalog.state.associations.of_name(
        call.params["resourceName"],
        call.params["resourceNamespace"],
        _type(call),
        call.texts(ASSOCIATION_TYPE),
        _lifecycle(call),
    )
    return _listed(call, associations)


def get_associations_by_resource_id(call: Call) -> Any:
    """The associations of a resource by its id."""
    associations = call.registry.catalog.state.associations.of_id(
        call.params["resourceId"], _type(call), call.texts(ASSOCIATION_TYPE), _lifecycle(call)
    )
    return _listed(call, associations)


async def create_association(call: Call) -> Any:
    """Create associations of a resource, and register their schemas."""
    dry_run = call.flag(DRY_RUN)
    request = read_request(call.json(), create=True, dry_run=dry_run)
    made, schemas = await call.registry.associate(request, context=_context(call), create=True, dry_run=dry_run)
    return _shown(request, made, schemas)


async def create_or_update_association(call: Call) -> Any:
    """Create or change associations of a resource."""
    dry_run = call.flag(DRY_RUN)
    request = read_request(call.json(), create=False, dry_run=dry_run, resource_id=call.params["resourceId"])
    made, schemas = await call.registry.associate(request, context=_context(call), create=False, dry_run=dry_run)
    return _shown(request, made, schemas)


async def delete_associations(call: Call) -> Any:
    """Delete associations of a resource."""
    await call.registry.disassociate(
        call.params["resourceId"],
        _type(call),
        call.texts(ASSOCIATION_TYPE),
        cascade=call.flag(CASCADE_LIFECYCLE),
        dry_run=call.flag(DRY_RUN),
    )


def batch_get_associations(call: Call) -> Any:
    """The associations of several resources."""
    return {"results": [_answer(call, query) for query in _each(call, read_query)]}


def _answer(call: Call, query: AssociationQuery | InvalidAssociation) -> dict[str, Any]:
    if isinstance(query, RegistryError):
        return {"error": {"error_code": 500, "message": f"Error while getting associations: {query.message}"}}
    name, namespace, resource_id, type_, kinds, lifecycle = query
    index = call.registry.catalog.state.associations
    if resource_id:
        associations = index.of_id(resource_id, type_, kinds, lifecycle)
    else:
        associations = index.of_name(str(name), namespace or ANY, type_, kinds, lifecycle)
    if associations:
        first = associations[0]
        name, namespace, resource_id = (
            name or first.resource.name,
            namespace or first.resource.namespace,
            resource_id or first.resource_id,
        )
    schemas: dict[str, SchemaVersion] = {}
    if call.flag(INCLUDE_SCHEMAS):
        for each in associations:
            if live := call.registry.catalog.state.versions(each.subject):
                schemas[each.kind] = live[-1]
    return {"result": _response(name, namespace, resource_id, type_, associations, schemas)}


async def mutate_associations(call: Call) -> Any:
    """Create, change and delete associations of several resources; each succeeds or fails by itself."""
    dry_run = call.flag(DRY_RUN)
    changes = _each(call, partial(read_batch, dry_run=dry_run))
    return {"results": [await _mutated(call, change, dry_run) for change in changes]}


async def _mutated(call: Call, change: Change | InvalidAssociation, dry_run: bool) -> dict[str, Any]:
    try:
        if isinstance(change, RegistryError):
            raise change
        schemas = await call.registry.change_associations(change, context=_context(call), dry_run=dry_run)
    except RegistryError as error:
        if error.http_status >= 500:
            raise  # the log failed, or another registry has to answer: not an error of a single request
        return {"error": {"error_code": error.error_code, "message": error.message}}
    request = change.request
    associations = [] if dry_run else call.registry.catalog.state.associations.of_id(request.id, request.type)
    return {"result": _response(request.name, request.namespace, request.id, request.type, associations, schemas)}


def _each(call: Call, read: Callable[[Mapping[str, Any]], T]) -> list[T | InvalidAssociation]:
    """The parsed requests of a batch.

    An invalid association is its own error; a malformed request fails the whole batch.
    """
    requests = call.json().get("requests")
    if not requests:
        raise InvalidAssociation("requests", "cannot be null or empty")
    if not isinstance(requests, list) or not all(isinstance(each, dict) for each in requests):
        raise InvalidBody("requests must be a list of objects")
    outcomes: list[T | InvalidAssociation] = []
    for each in requests:
        try:
            outcomes.append(read(each))
        except InvalidAssociation as error:
            outcomes.append(error)
    return outcomes


def _type(call: Call) -> str:
    return call.text(RESOURCE_TYPE) or TOPIC


def _lifecycle(call: Call) -> str | None:
    return call.text(LIFECYCLE) or None


def _context(call: Call) -> str:
    return call.context or call.text(CONTEXT)


def _listed(call: Call, associations: Sequence[Association]) -> list[dict[str, Any]]:
    shown = set(call.shown([each.subject for each in associations]))
    return call.page([each.as_json() for each in associations if each.subject in shown], _MOST)


def _shown(request: Request, made: Sequence[Association], schemas: Mapping[str, SchemaVersion]) -> dict[str, Any]:
    return _response(request.name, request.namespace, request.id, request.type, made, schemas)


def _response(
    name: str | None,
    namespace: str | None,
    resource_id: str | None,
    type_: str,
    associations: Sequence[Association],
    schemas: Mapping[str, SchemaVersion],
) -> dict[str, Any]:
    value: dict[str, Any] = {
        "resourceName": name,
        "resourceNamespace": namespace,
        "resourceId": resource_id,
        "resourceType": type_,
        "associations": [_info(each, schemas.get(each.kind)) for each in associations],
    }
    return {member: item for member, item in value.items() if item}


def _info(association: Association, schema: SchemaVersion | None) -> dict[str, Any]:
    shown = association.as_json()
    info: dict[str, Any] = {
        name: shown[name] for name in ("subject", "associationType", "lifecycle", "frozen") if name in shown
    }
    return info if schema is None else {**info, "schema": answers.version(schema, history=False)}


_RESOURCE: Final = "/associations/resources/{resourceId}"
_PAGED: Final = (RESOURCE_TYPE, ASSOCIATION_TYPE, LIFECYCLE, OFFSET, LIMIT)
_REQUEST: Final = "AssociationCreateOrUpdateRequest"
_RESPONSE: Final = "AssociationResponse"

ENDPOINTS: Final = (
    Endpoint(
        "GET", "/associations/subjects/{subject}", get_associations_by_subject, "list[Association]", _PAGED, cached=True
    ),
    Endpoint("GET", _RESOURCE, get_associations_by_resource_id, "list[Association]", _PAGED, cached=True),
    Endpoint(
        "GET",
        "/associations/resources/{resourceNamespace}/{resourceName}",
        get_associations_by_resource_name,
        "list[Association]",
        _PAGED,
        cached=True,
    ),
    Endpoint("POST", "/associations", create_association, _RESPONSE, (CONTEXT, DRY_RUN), body=_REQUEST),
    Endpoint("PUT", _RESOURCE, create_or_update_association, _RESPONSE, (CONTEXT, DRY_RUN), body=_REQUEST),
    Endpoint(
        "DELETE",
        _RESOURCE,
        delete_associations,
        "none",
        (RESOURCE_TYPE, ASSOCIATION_TYPE, CASCADE_LIFECYCLE, DRY_RUN),
    ),
    Endpoint(
        "POST",
        "/associations:batchGet",
        batch_get_associations,
        "AssociationBatchResponse",
        (INCLUDE_SCHEMAS,),
        body="AssociationBatchGetRequest",
        status=207,
    ),
    Endpoint(
        "POST",
        "/associations:batchMutate",
        mutate_associations,
        "AssociationBatchResponse",
        (CONTEXT, DRY_RUN),
        body="AssociationBatchRequest",
        status=207,
    ),
)
