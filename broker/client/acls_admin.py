"""ACLs: the part of Admin about access rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from broker.client.cluster import check
from broker.client.groups_admin import GroupsAdmin
from broker.client.messages import MessageRequest
from broker.protocol.access_codes import Operation, PatternType, Permission, ResourceType
from broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from broker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from broker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from tidegate.kit.errors import TidegateError

__all__ = ["AclBinding", "AclFilter", "AclsAdmin"]

_HIGHEST: Final = 3


@dataclass(frozen=True, slots=True)
class AclBinding:
    """One access rule. Codes of newer brokers that have no name here stay numbers."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Access rules; by default all.

    ``PatternType.MATCH`` selects all rules that apply to ``resource_name``, also prefixes of it and ``*`` (KIP-290).
    """

    resource_type: ResourceType = ResourceType.ANY
    resource_name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: Operation = Operation.ANY
    permission: Permission = Permission.ANY

    def fields(self) -> dict[str, Any]:
        """As the requests that describe and delete have them."""
        return {
            "resource_type_filter": self.resource_type,
            "resource_name_filter": self.resource_name,
            "pattern_type_filter": self.pattern_type,
            "principal_filter": self.principal,
            "host_filter": self.host,
            "operation": self.operation,
            "permission_type": self.permission,
        }


class AclsAdmin(GroupsAdmin):
    """Describes, creates and deletes ACLs. Every call raises SecurityDisabled if the cluster has no authorizer."""

    async def describe_acls(self, chosen: AclFilter) -> list[AclBinding]:
        """The ACLs that a filter selects."""
        body = DescribeAclsRequest(**chosen.fields())

        async def attempt() -> list[AclBinding]:
            about = "describing ACLs"
            answer = await self.ask(MessageRequest(body, DescribeAclsResponse, highest=_HIGHEST), about=about)
            check(answer.error_code, about, answer.error_message)
            return [
                AclBinding(
                    resource.resource_type,
                    resource.resource_name,
                    resource.pattern_type,
                    acl.principal,
                    acl.host,
                    acl.operation,
                    acl.permission_type,
                )
                for resource in answer.resources
                for acl in resource.acls
            ]

        return await self.retried(attempt)

    async def create_acls(self, bindings: Sequence[AclBinding]) -> list[tuple[AclBinding, TidegateError]]:
        """Create ACLs.

        Returns those that were refused, each with the error; an ACL that already exists is not refused.
        """
        created = [
            AclCreation(
                resource_type=acl_binding.resource_type,
                resource_name=acl_binding.resource_name,
                resource_pattern_type=acl_binding.pattern_type,
                principal=acl_binding.principal,
                host=acl_binding.host,
                operation=acl_binding.operation,
                permission_type=acl_binding.permission,
            )
            for acl_binding in bindings
        ]
        request = MessageRequest(CreateAclsRequest(creations=created), CreateAclsResponse, highest=_HIGHEST)

        async def attempt() -> list[tuple[AclBinding, TidegateError]]:
            answer = await self.ask(request, node=await self.controller(), about="creating ACLs")
            refused = []
            for binding, result in zip(bindings, answer.results, strict=True):
                try:
                    check(result.error_code, f"ACL of {binding.resource_name}", result.error_message)
                except TidegateError as error:
                    refused.append((binding, error))
            return refused

        return await self.retried(attempt)

    async def delete_acls(self, filters: Iterable[AclFilter]) -> list[AclBinding]:
        """Delete the ACLs that any of the filters selects, and return them."""
        body = DeleteAclsRequest(filters=[DeleteAclsFilter(**chosen.fields()) for chosen in filters])
        request = MessageRequest(body, DeleteAclsResponse, highest=_HIGHEST)

        async def attempt() -> list[AclBinding]:
            about = "deleting ACLs"
            answer = await self.ask(request, node=await self.controller(), about=about)
            deleted = []
            for result in answer.filter_results:
                check(result.error_code, about, result.error_message)
                for acl in result.matching_acls:
                    check(acl.error_code, f"ACL of {acl.resource_name}", acl.error_message)
                    deleted.append(
                        AclBinding(
                            acl.resource_type,
                            acl.resource_name,
                            acl.pattern_type,
                            acl.principal,
                            acl.host,
                            acl.operation,
                            acl.permission_type,
                        )
                    )
            return deleted

        return await self.retried(attempt)
