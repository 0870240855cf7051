# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "DeleteAclsFilter",
    "DeleteAclsFilterResult",
    "DeleteAclsMatchingAcl",
    "DeleteAclsRequest",
    "DeleteAclsResponse",
]


class DeleteAclsFilter(Message):
    __slots__ = (
        "resource_type_filter",
        "resource_name_filter",
        "pattern_type_filter",
        "principal_filter",
        "host_filter",
        "operation",
        "permission_type",
    )
    FIELDS: ClassVar = (
        Field(name="resource_type_filter", kind="int8", since=1),
        Field(name="resource_name_filter", kind="string", since=1, null_since=1),
        Field(name="pattern_type_filter", kind="int8", since=1),
        Field(name="principal_filter", kind="string", since=1, null_since=1),
        Field(name="host_filter", kind="string", since=1, null_since=1),
        Field(name="operation", kind="int8", since=1),
        Field(name="permission_type", kind="int8", since=1),
    )

    def __init__(
        self,
        *,
        resource_type_filter: int = 0,
        resource_name_filter: str | None = "",
        pattern_type_filter: int = 3,
        principal_filter: str | None = "",
        host_filter: str | None = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type_filter = resource_type_filter
        self.resource_name_filter = resource_name_filter
        self.pattern_type_filter = pattern_type_filter
        self.principal_filter = principal_filter
        self.host_filter = host_filter
        self.operation = operation
        self.permission_type = permission_type


class DeleteAclsRequest(Request):
    __slots__ = ("filters",)
    API_KEY = 31
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (Field(name="filters", kind=DeleteAclsFilter, array=True, since=1),)

    def __init__(self, *, filters: Sequence[DeleteAclsFilter] = ()) -> None:
        self.filters = filters


class DeleteAclsMatchingAcl(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16", since=1),
        Field(name="error_message", kind="string", since=1, null_since=1),
        Field(name="resource_type", kind="int8", since=1),
        Field(name="resource_name", kind="string", since=1),
        Field(name="pattern_type", kind="int8", since=1),
        Field(name="principal", kind="string", since=1),
        Field(name="host", kind="string", since=1),
        Field(name="operation", kind="int8", since=1),
        Field(name="permission_type", kind="int8", since=1),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.pattern_type = pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class DeleteAclsFilterResult(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "matching_acls",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16", since=1),
        Field(name="error_message", kind="string", since=1, null_since=1),
        Field(name="matching_acls", kind=DeleteAclsMatchingAcl, array=True, since=1),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        matching_acls: Sequence[DeleteAclsMatchingAcl] = (),
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.matching_acls = matching_acls


class DeleteAclsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "filter_results",
    )
    API_KEY = 31
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="filter_results", kind=DeleteAclsFilterResult, array=True, since=1),
    )

    def __init__(self, *, throttle_time_ms: int = 0, filter_results: Sequence[DeleteAclsFilterResult] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.filter_results = filter_results
