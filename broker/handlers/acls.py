"""Lists and changes access control entries for administrators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from broker.api.parts import Common, WithMetadata
from broker.api.routes import Context, Routes
from broker.errors import BrokerError, SecurityDisabled
from broker.protocol.api import ApiKey
from broker.protocol.messages.create_acls import (
    AclCreation,
    AclCreationResult,
    CreateAclsRequest,
    CreateAclsResponse,
)
from broker.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from broker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from broker.security.access import Operation, ResourceType
from broker.security.acls import AccessControlEntry, AclFilter, check_entry

__all__ = ["routes"]

routes = Routes()


class _Parts(Common, WithMetadata, Protocol):
    """The parts of a broker that these handlers use."""


_WITHOUT_AUTHORIZER = "The broker has no authorizer: set authorizer.class.name."


@routes.handles(ApiKey.DESCRIBE_ACLS, versions=range(1, 4))
def describe_acls(context: Context[_Parts], request: DescribeAclsRequest) -> DescribeAclsResponse:
    """List the access control entries that match a filter.

    v1 prefixed patterns (KIP-290) · v2 flexible · v3 users as resources (KIP-373)
    """
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    if context.broker.authorizer is None:
        raise SecurityDisabled(_WITHOUT_AUTHORIZER)
    acl_filter = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    resources: dict[tuple[int, str, int], list[AclDescription]] = {}
    for entry in context.broker.metadata.acls.find(acl_filter):
        resources.setdefault((entry.resource_type, entry.resource_name, entry.pattern_type), []).append(
            AclDescription(
                principal=entry.principal, host=entry.host, operation=entry.operation, permission_type=entry.permission
            )
        )
    return DescribeAclsResponse(
        error_message=None,
        resources=[
            DescribeAclsResource(resource_type=kind, resource_name=name, pattern_type=pattern, acls=acls)
            for (kind, name, pattern), acls in resources.items()
        ],
    )


@routes.handles(ApiKey.CREATE_ACLS, versions=range(1, 4))
def create_acls(context: Context[_Parts], request: CreateAclsRequest) -> CreateAclsResponse:
    """Add access control entries. Existing ones stay unchanged.

    v1 prefixed patterns · v2 flexible · v3 users as resources
    """
    refusal = _refusal(context)
    results: list[AclCreationResult] = []
    entries: list[AccessControlEntry] = []
    for creation in request.creations:
        entry = _entry(creation)
        error = refusal
        if error is None:
            try:
                check_entry(entry)
                entries.append(entry)
            except BrokerError as refused:
                error = refused
        results.append(
            AclCreationResult(error_code=error.code if error else 0, error_message=error.message if error else None)
        )
    metadata = context.broker.metadata
    metadata.append(metadata.acls.additions(entries))
    return CreateAclsResponse(results=results)


@routes.handles(ApiKey.DELETE_ACLS, versions=range(1, 4))
def delete_acls(context: Context[_Parts], request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Remove the access control entries that match filters, and return them.

    v1 prefixed patterns · v2 flexible · v3 users as resources
    """
    refusal = _refusal(context)
    results: list[DeleteAclsFilterResult] = []
    gone: list[AccessControlEntry] = []
    acls = context.broker.metadata.acls
    for acls_filter in request.filters:
        acl_filter = _filter(acls_filter)
        try:
            if refusal is not None:
                raise refusal
            acl_filter.check()
        except BrokerError as error:
            results.append(DeleteAclsFilterResult(error_code=error.code, error_message=error.message))
            continue
        entries = acls.find(acl_filter)
        gone += entries
        results.append(DeleteAclsFilterResult(error_message=None, matching_acls=_matching(entries)))
    context.broker.metadata.append(acls.removals(gone))
    return DeleteAclsResponse(filter_results=results)


def _refusal(context: Context[_Parts]) -> BrokerError | None:
    """The error if nothing may be changed at all: these answers have errors only per entry."""
    try:
        context.require(Operation.ALTER, ResourceType.CLUSTER)
    except BrokerError as error:
        return error
    return SecurityDisabled(_WITHOUT_AUTHORIZER) if context.broker.authorizer is None else None


def _entry(creation: AclCreation) -> AccessControlEntry:
    return AccessControlEntry(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _filter(acl_filter: DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        acl_filter.resource_type_filter,
        acl_filter.resource_name_filter,
        acl_filter.pattern_type_filter,
        acl_filter.principal_filter,
        acl_filter.host_filter,
        acl_filter.operation,
        acl_filter.permission_type,
    )


def _matching(entries: Sequence[AccessControlEntry]) -> list[DeleteAclsMatchingAcl]:
    return [
        DeleteAclsMatchingAcl(
            error_message=None,
            resource_type=entry.resource_type,
            resource_name=entry.resource_name,
            pattern_type=entry.pattern_type,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission,
        )
        for entry in entries
    ]
