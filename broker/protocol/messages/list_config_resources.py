# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["ConfigResource", "ListConfigResourcesRequest", "ListConfigResourcesResponse"]


class ListConfigResourcesRequest(Request):
    __slots__ = ("resource_types",)
    API_KEY = 74
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (Field(name="resource_types", kind="int8", array=True, since=1),)

    def __init__(self, *, resource_types: Sequence[int] = ()) -> None:
        self.resource_types = resource_types


class ConfigResource(Message):
    __slots__ = (
        "resource_name",
        "resource_type",
    )
    FIELDS: ClassVar = (
        Field(name="resource_name", kind="string"),
        Field(name="resource_type", kind="int8", since=1),
    )

    def __init__(self, *, resource_name: str = "", resource_type: int = 16) -> None:
        self.resource_name = resource_name
        self.resource_type = resource_type


class ListConfigResourcesResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "config_resources",
    )
    API_KEY = 74
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="config_resources", kind=ConfigResource, array=True),
    )

    def __init__(
        self, *, throttle_time_ms: int = 0, error_code: int = 0, config_resources: Sequence[ConfigResource] = ()
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.config_resources = config_resources
