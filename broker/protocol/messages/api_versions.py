# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["ApiVersion", "ApiVersionsRequest", "ApiVersionsResponse", "FinalizedFeatureKey", "SupportedFeatureKey"]


class ApiVersionsRequest(Request):
    __slots__ = (
        "client_software_name",
        "client_software_version",
    )
    API_KEY = 18
    FLEXIBLE_SINCE = 3
    FIELDS: ClassVar = (
        Field(name="client_software_name", kind="string", since=3),
        Field(name="client_software_version", kind="string", since=3),
    )

    def __init__(self, *, client_software_name: str = "", client_software_version: str = "") -> None:
        self.client_software_name = client_software_name
        self.client_software_version = client_software_version


class ApiVersion(Message):
    __slots__ = (
        "api_key",
        "min_version",
        "max_version",
    )
    FIELDS: ClassVar = (
        Field(name="api_key", kind="int16"),
        Field(name="min_version", kind="int16"),
        Field(name="max_version", kind="int16"),
    )

    def __init__(self, *, api_key: int = 0, min_version: int = 0, max_version: int = 0) -> None:
        self.api_key = api_key
        self.min_version = min_version
        self.max_version = max_version


class SupportedFeatureKey(Message):
    __slots__ = (
        "name",
        "min_version",
        "max_version",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=3),
        Field(name="min_version", kind="int16", since=3),
        Field(name="max_version", kind="int16", since=3),
    )

    def __init__(self, *, name: str = "", min_version: int = 0, max_version: int = 0) -> None:
        self.name = name
        self.min_version = min_version
        self.max_version = max_version


class FinalizedFeatureKey(Message):
    __slots__ = (
        "name",
        "max_version_level",
        "min_version_level",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string", since=3),
        Field(name="max_version_level", kind="int16", since=3),
        Field(name="min_version_level", kind="int16", since=3),
    )

    def __init__(self, *, name: str = "", max_version_level: int = 0, min_version_level: int = 0) -> None:
        self.name = name
        self.max_version_level = max_version_level
        self.min_version_level = min_version_level


class ApiVersionsResponse(Response):
    __slots__ = (
        "error_code",
        "api_keys",
        "throttle_time_ms",
        "supported_features",
        "finalized_features_epoch",
        "finalized_features",
        "zk_migration_ready",
    )
    API_KEY = 18
    FLEXIBLE_SINCE = 3
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="api_keys", kind=ApiVersion, array=True),
        Field(name="throttle_time_ms", kind="int32", since=1),
        Field(name="supported_features", kind=SupportedFeatureKey, array=True, since=3, tag=0),
        Field(name="finalized_features_epoch", kind="int64", since=3, tag=1),
        Field(name="finalized_features", kind=FinalizedFeatureKey, array=True, since=3, tag=2),
        Field(name="zk_migration_ready", kind="bool", since=3, tag=3),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        api_keys: Sequence[ApiVersion] = (),
        throttle_time_ms: int = 0,
        supported_features: Sequence[SupportedFeatureKey] = (),
        finalized_features_epoch: int = -1,
        finalized_features: Sequence[FinalizedFeatureKey] = (),
        zk_migration_ready: bool = False,
    ) -> None:
        self.error_code = error_code
        self.api_keys = api_keys
        self.throttle_time_ms = throttle_time_ms
        self.supported_features = supported_features
        self.finalized_features_epoch = finalized_features_epoch
        self.finalized_features = finalized_features
        self.zk_migration_ready = zk_migration_ready
