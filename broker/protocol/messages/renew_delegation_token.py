# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from typing import ClassVar

from broker.protocol.schema import Field, Request, Response

__all__ = ["RenewDelegationTokenRequest", "RenewDelegationTokenResponse"]


class RenewDelegationTokenRequest(Request):
    __slots__ = (
        "hmac",
        "renew_period_ms",
    )
    API_KEY = 39
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="hmac", kind="bytes", since=1),
        Field(name="renew_period_ms", kind="int64", since=1),
    )

    def __init__(self, *, hmac: bytes = b"", renew_period_ms: int = 0) -> None:
        self.hmac = hmac
        self.renew_period_ms = renew_period_ms


class RenewDelegationTokenResponse(Response):
    __slots__ = (
        "error_code",
        "expiry_timestamp_ms",
        "throttle_time_ms",
    )
    API_KEY = 39
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16", since=1),
        Field(name="expiry_timestamp_ms", kind="int64", since=1),
        Field(name="throttle_time_ms", kind="int32", since=1),
    )

    def __init__(self, *, error_code: int = 0, expiry_timestamp_ms: int = 0, throttle_time_ms: int = 0) -> None:
        self.error_code = error_code
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.throttle_time_ms = throttle_time_ms
