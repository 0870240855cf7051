"""ACLs: the part of Admin about access rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from broker.client.cluster import check
from broker.client.groups_admin import GroupsAdmin
from broker.client.messages import MessageRequest
from broker.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from broker.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse
from tidegate.kit.errors import TidegateError

__all__ = ["AclBinding", "AclsAdmin"]

_ANY: Final = 1
_HIGHEST: Final = 3


@dataclass(frozen=True, slots=True)
class AclBinding:
    """One access rule. Types, patterns, operations and permissions are Kafka's codes, for example ``AclOperation``."""

    TOPIC = 2
    LITERAL = 3
    ALL, READ, WRITE = 2, 3, 4
    DENY, ALLOW = 2, 3

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


class AclsAdmin(GroupsAdmin):
    """Describes and creates ACLs."""

    async def describe_topic_acls(self) -> list[AclBinding]:
        """The ACLs of topics. Raises SecurityDisabled if the cluster has no authorizer."""
        body = DescribeAclsRequest(
            resource_type_filter=AclBinding.TOPIC,
            resource_name_filter=None,
            pattern_type_filter=_ANY,
            principal_filter=None,
            host_filter=None,
            operation=_ANY,
            permission_type=_ANY,
        )

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
