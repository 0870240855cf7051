# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Request, Response

__all__ = ["GetTelemetrySubscriptionsRequest", "GetTelemetrySubscriptionsResponse"]


class GetTelemetrySubscriptionsRequest(Request):
    __slots__ = ("client_instance_id",)
    API_KEY = 71
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (Field(name="client_instance_id", kind="uuid"),)

    def __init__(self, *, client_instance_id: uuid.UUID = ZERO_UUID) -> None:
        self.client_instance_id = client_instance_id


class GetTelemetrySubscriptionsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "client_instance_id",
        "subscription_id",
        "accepted_compression_types",
        "push_interval_ms",
        "telemetry_max_bytes",
        "delta_temporality",
        "requested_metrics",
    )
    API_KEY = 71
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="client_instance_id", kind="uuid"),
        Field(name="subscription_id", kind="int32"),
        Field(name="accepted_compression_types", kind="int8", array=True),
        Field(name="push_interval_ms", kind="int32"),
        Field(name="telemetry_max_bytes", kind="int32"),
        Field(name="delta_temporality", kind="bool"),
        Field(name="requested_metrics", kind="string", array=True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        client_instance_id: uuid.UUID = ZERO_UUID,
        subscription_id: int = 0,
        accepted_compression_types: Sequence[int] = (),
        push_interval_ms: int = 0,
        telemetry_max_bytes: int = 0,
        delta_temporality: bool = False,
        requested_metrics: Sequence[str] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.accepted_compression_types = accepted_compression_types
        self.push_interval_ms = push_interval_ms
        self.telemetry_max_bytes = telemetry_max_bytes
        self.delta_temporality = delta_temporality
        self.requested_metrics = requested_metrics
