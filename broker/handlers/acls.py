"""Access control entries as administrators see and change them."""

from __future__ import annotations

from collections.abc import Sequence

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

_WITHOUT_AUTHORIZER = "The broker has no authorizer: set authorizer.class.name."


@routes.handles(ApiKey.DESCRIBE_ACLS, versions=range(1, 4))
def describe_acls(context: Context, request: DescribeAclsRequest) -> DescribeAclsResponse:
    """List the access control entries that a filter finds.

    v1 prefixed patterns (KIP-290) · v2 flexible · v3 users as resources (KIP-373)
    """
    context.require(Operation.DESCRIBE, ResourceType.CLUSTER)
    if context.broker.authorizer is None:
        raise SecurityDisabled(_WITHOUT_AUTHORIZER)
    wanted = AclFilter(
        request.resource_type_filter,
        request.resource_name_filter,
        request.pattern_type_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )
    resources: dict[tuple[int, str, int], list[AclDescription]] = {}
    for one in context.broker.metadata.acls.find(wanted):
        resources.setdefault((one.resource_type, one.resource_name, one.pattern_type), []).append(
            AclDescription(
                principal=one.principal, host=one.host, operation=one.operation, permission_type=one.permission
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
def create_acls(context: Context, request: CreateAclsRequest) -> CreateAclsResponse:
    """Add access control entries; those that are there already are left as they are.

    v1 prefixed patterns · v2 flexible · v3 users as resources
    """
    refusal = _refusal(context)
    results: list[AclCreationResult] = []
    wanted: list[AccessControlEntry] = []
    for creation in request.creations:
        entry = _entry(creation)
        error = refusal
        if error is None:
            try:
                check_entry(entry)
                wanted.append(entry)
            except BrokerError as refused:
                error = refused
        results.append(
            AclCreationResult(error_code=error.code if error else 0, error_message=error.message if error else None)
        )
    metadata = context.broker.metadata
    metadata.append(metadata.acls.additions(wanted))
    return CreateAclsResponse(results=results)


@routes.handles(ApiKey.DELETE_ACLS, versions=range(1, 4))
def delete_acls(context: Context, request: DeleteAclsRequest) -> DeleteAclsResponse:
    """Remove the access control entries that filters find, and name them.

    v1 prefixed patterns · v2 flexible · v3 users as resources
    """
    refusal = _refusal(context)
    results: list[DeleteAclsFilterResult] = []
    gone: list[AccessControlEntry] = []
    acls = context.broker.metadata.acls
    for one in request.filters:
        wanted = _filter(one)
        try:
            if refusal is not None:
                raise refusal
            wanted.check()
        except BrokerError as error:
            results.append(DeleteAclsFilterResult(error_code=error.code, error_message=error.message))
            continue
        found = acls.find(wanted)
        gone += found
        results.append(DeleteAclsFilterResult(error_message=None, matching_acls=_matching(found)))
    context.broker.metadata.append(acls.removals(gone))
    return DeleteAclsResponse(filter_results=results)


def _refusal(context: Context) -> BrokerError | None:
    """Why nothing may be changed at all, if so: these answers have an error for each part only."""
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


def _filter(given: DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        given.resource_type_filter,
        given.resource_name_filter,
        given.pattern_type_filter,
        given.principal_filter,
        given.host_filter,
        given.operation,
        given.permission_type,
    )


def _matching(found: Sequence[AccessControlEntry]) -> list[DeleteAclsMatchingAcl]:
    return [
        DeleteAclsMatchingAcl(
            error_message=None,
            resource_type=one.resource_type,
            resource_name=one.resource_name,
            pattern_type=one.pattern_type,
            principal=one.principal,
            host=one.host,
            operation=one.operation,
            permission_type=one.permission,
        )
        for one in found
    ]
