# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "AlterConfigsRequest",
    "AlterConfigsResource",
    "AlterConfigsResourceResponse",
    "AlterConfigsResponse",
    "AlterableConfig",
]


class AlterableConfig(Message):
    __slots__ = (
        "name",
        "value",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="value", kind="string", null_since=0),
    )

    def __init__(self, *, name: str = "", value: str | None = "") -> None:
        self.name = name
        self.value = value


class AlterConfigsResource(Message):
    __slots__ = (
        "resource_type",
        "resource_name",
        "configs",
    )
    FIELDS: ClassVar = (
        Field(name="resource_type", kind="int8"),
        Field(name="resource_name", kind="string"),
        Field(name="configs", kind=AlterableConfig, array=True),
    )

    def __init__(
        self, *, resource_type: int = 0, resource_name: str = "", configs: Sequence[AlterableConfig] = ()
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = configs


class AlterConfigsRequest(Request):
    __slots__ = (
        "resources",
        "validate_only",
    )
    API_KEY = 33
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="resources", kind=AlterConfigsResource, array=True),
        Field(name="validate_only", kind="bool"),
    )

    def __init__(self, *, resources: Sequence[AlterConfigsResource] = (), validate_only: bool = False) -> None:
        self.resources = resources
        self.validate_only = validate_only


class AlterConfigsResourceResponse(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="resource_type", kind="int8"),
        Field(name="resource_name", kind="string"),
    )

    def __init__(
        self, *, error_code: int = 0, error_message: str | None = "", resource_type: int = 0, resource_name: str = ""
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name


class AlterConfigsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "responses",
    )
    API_KEY = 33
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="responses", kind=AlterConfigsResourceResponse, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, responses: Sequence[AlterConfigsResourceResponse] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.responses = responses
