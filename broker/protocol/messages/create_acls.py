# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["AclCreation", "AclCreationResult", "CreateAclsRequest", "CreateAclsResponse"]


class AclCreation(Message):
    __slots__ = (
        "resource_type",
        "resource_name",
        "resource_pattern_type",
        "principal",
        "host",
        "operation",
        "permission_type",
    )
    FIELDS: ClassVar = (
        Field(name="resource_type", kind="int8", since=1),
        Field(name="resource_name", kind="string", since=1),
        Field(name="resource_pattern_type", kind="int8", since=1),
        Field(name="principal", kind="string", since=1),
        Field(name="host", kind="string", since=1),
        Field(name="operation", kind="int8", since=1),
        Field(name="permission_type", kind="int8", since=1),
    )

    def __init__(
        self,
        *,
        resource_type: int = 0,
        resource_name: str = "",
        resource_pattern_type: int = 3,
        principal: str = "",
        host: str = "",
        operation: int = 0,
        permission_type: int = 0,
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.resource_pattern_type = resource_pattern_type
        self.principal = principal
        self.host = host
        self.operation = operation
        self.permission_type = permission_type


class CreateAclsRequest(Request):
    __slots__ = ("creations",)
    API_KEY = 30
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (Field(name="creations", kind=AclCreation, array=True, since=1),)

    def __init__(self, *, creations: Sequence[AclCreation] = ()) -> None:
        self.creations = creations


class AclCreationResult(Message):
    __slots__ = (
        "error_code",
        "error_message",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16", since=1),
        Field(name="error_message", kind="string", since=1, null_since=1),
    )

    def __init__(self, *, error_code: int = 0, error_message: str | None = "") -> None:
        self.error_code = error_code
        self.error_message = error_message


class CreateAclsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    API_KEY = 30
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="results", kind=AclCreationResult, array=True, since=1),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[AclCreationResult] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results
