# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from typing import ClassVar

from broker.protocol.schema import Field, Request, Response

__all__ = ["UnregisterBrokerRequest", "UnregisterBrokerResponse"]


class UnregisterBrokerRequest(Request):
    __slots__ = ("broker_id",)
    API_KEY = 64
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (Field(name="broker_id", kind="int32"),)

    def __init__(self, *, broker_id: int = 0) -> None:
        self.broker_id = broker_id


class UnregisterBrokerResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
    )
    API_KEY = 64
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
    )

    def __init__(self, *, throttle_time_ms: int = 0, error_code: int = 0, error_message: str | None = "") -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
