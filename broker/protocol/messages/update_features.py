# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["FeatureUpdateKey", "UpdatableFeatureResult", "UpdateFeaturesRequest", "UpdateFeaturesResponse"]


class FeatureUpdateKey(Message):
    __slots__ = (
        "feature",
        "max_version_level",
        "allow_downgrade",
        "upgrade_type",
    )
    FIELDS: ClassVar = (
        Field(name="feature", kind="string"),
        Field(name="max_version_level", kind="int16"),
        Field(name="allow_downgrade", kind="bool", until=0),
        Field(name="upgrade_type", kind="int8", since=1),
    )

    def __init__(
        self, *, feature: str = "", max_version_level: int = 0, allow_downgrade: bool = False, upgrade_type: int = 1
    ) -> None:
        self.feature = feature
        self.max_version_level = max_version_level
        self.allow_downgrade = allow_downgrade
        self.upgrade_type = upgrade_type


class UpdateFeaturesRequest(Request):
    __slots__ = (
        "timeout_ms",
        "feature_updates",
        "validate_only",
    )
    API_KEY = 57
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="timeout_ms", kind="int32"),
        Field(name="feature_updates", kind=FeatureUpdateKey, array=True),
        Field(name="validate_only", kind="bool", since=1),
    )

    def __init__(
        self, *, timeout_ms: int = 60000, feature_updates: Sequence[FeatureUpdateKey] = (), validate_only: bool = False
    ) -> None:
        self.timeout_ms = timeout_ms
        self.feature_updates = feature_updates
        self.validate_only = validate_only


class UpdatableFeatureResult(Message):
    __slots__ = (
        "feature",
        "error_code",
        "error_message",
    )
    FIELDS: ClassVar = (
        Field(name="feature", kind="string"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
    )

    def __init__(self, *, feature: str = "", error_code: int = 0, error_message: str | None = "") -> None:
        self.feature = feature
        self.error_code = error_code
        self.error_message = error_message


class UpdateFeaturesResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "results",
    )
    API_KEY = 57
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="results", kind=UpdatableFeatureResult, array=True, until=1),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: Sequence[UpdatableFeatureResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = results
