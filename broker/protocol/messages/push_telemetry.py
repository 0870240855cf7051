# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

import uuid
from typing import ClassVar

from broker.protocol.primitives import ZERO_UUID
from broker.protocol.schema import Field, Request, Response

__all__ = ["PushTelemetryRequest", "PushTelemetryResponse"]


class PushTelemetryRequest(Request):
    __slots__ = (
        "client_instance_id",
        "subscription_id",
        "terminating",
        "compression_type",
        "metrics",
    )
    API_KEY = 72
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="client_instance_id", kind="uuid"),
        Field(name="subscription_id", kind="int32"),
        Field(name="terminating", kind="bool"),
        Field(name="compression_type", kind="int8"),
        Field(name="metrics", kind="bytes"),
    )

    def __init__(
        self,
        *,
        client_instance_id: uuid.UUID = ZERO_UUID,
        subscription_id: int = 0,
        terminating: bool = False,
        compression_type: int = 0,
        metrics: bytes = b"",
    ) -> None:
        self.client_instance_id = client_instance_id
        self.subscription_id = subscription_id
        self.terminating = terminating
        self.compression_type = compression_type
        self.metrics = metrics


class PushTelemetryResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
    )
    API_KEY = 72
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
