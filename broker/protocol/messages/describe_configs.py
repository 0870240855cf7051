# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "DescribeConfigsRequest",
    "DescribeConfigsResource",
    "DescribeConfigsResourceResult",
    "DescribeConfigsResponse",
    "DescribeConfigsResult",
    "DescribeConfigsSynonym",
]


class DescribeConfigsResource(Message):
    __slots__ = (
        "resource_type",
        "resource_name",
        "configuration_keys",
    )
    FIELDS: ClassVar = (
        Field(name="resource_type", kind="int8", since=1),
        Field(name="resource_name", kind="string", since=1),
        Field(name="configuration_keys", kind="string", array=True, since=1, null_since=1),
    )

    def __init__(
        self, *, resource_type: int = 0, resource_name: str = "", configuration_keys: Sequence[str] | None = ()
    ) -> None:
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configuration_keys = configuration_keys


class DescribeConfigsRequest(Request):
    __slots__ = (
        "resources",
        "include_synonyms",
        "include_documentation",
    )
    API_KEY = 32
    FLEXIBLE_SINCE = 4
    FIELDS: ClassVar = (
        Field(name="resources", kind=DescribeConfigsResource, array=True, since=1),
        Field(name="include_synonyms", kind="bool", since=1),
        Field(name="include_documentation", kind="bool", since=3),
    )

    def __init__(
        self,
        *,
        resources: Sequence[DescribeConfigsResource] = (),
        include_synonyms: bool = False,
        include_documentation: bool = False,
    ) -> None:
        self.resources = resources
        self.include_synonyms = include_synonyms
        self.include_documentation = include_documentation


class DescribeConfigsSynonym(Message):
    __slots__ = (
        "name",
        "value",
        "source",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=1),
        Field(name="value", kind="string", since=1, null_since=1),
        Field(name="source", kind="int8", since=1),
    )

    def __init__(self, *, name: str = "", value: str | None = "", source: int = 0) -> None:
        self.name = name
        self.value = value
        self.source = source


class DescribeConfigsResourceResult(Message):
    __slots__ = (
        "name",
        "value",
        "read_only",
        "config_source",
        "is_sensitive",
        "synonyms",
        "config_type",
        "documentation",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=1),
        Field(name="value", kind="string", since=1, null_since=1),
        Field(name="read_only", kind="bool", since=1),
        Field(name="config_source", kind="int8", since=1),
        Field(name="is_sensitive", kind="bool", since=1),
        Field(name="synonyms", kind=DescribeConfigsSynonym, array=True, since=1),
        Field(name="config_type", kind="int8", since=3),
        Field(name="documentation", kind="string", since=3, null_since=3),
    )

    def __init__(
        self,
        *,
        name: str = "",
        value: str | None = "",
        read_only: bool = False,
        config_source: int = -1,
        is_sensitive: bool = False,
        synonyms: Sequence[DescribeConfigsSynonym] = (),
        config_type: int = 0,
        documentation: str | None = "",
    ) -> None:
        self.name = name
        self.value = value
        self.read_only = read_only
        self.config_source = config_source
        self.is_sensitive = is_sensitive
        self.synonyms = synonyms
        self.config_type = config_type
        self.documentation = documentation


class DescribeConfigsResult(Message):
    __slots__ = (
        "error_code",
        "error_message",
        "resource_type",
        "resource_name",
        "configs",
    )
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16", since=1),
        Field(name="error_message", kind="string", since=1, null_since=1),
        Field(name="resource_type", kind="int8", since=1),
        Field(name="resource_name", kind="string", since=1),
        Field(name="configs", kind=DescribeConfigsResourceResult, array=True, since=1),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        resource_type: int = 0,
        resource_name: str = "",
        configs: Sequence[DescribeConfigsResourceResult] = (),
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.resource_type = resource_type
        self.resource_name = resource_name
        self.configs = configs


class DescribeConfigsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    API_KEY = 32
    FLEXIBLE_SINCE = 4
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="results", kind=DescribeConfigsResult, array=True, since=1),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[DescribeConfigsResult] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results
