# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from typing import ClassVar

from broker.protocol.schema import Field, Request, Response

__all__ = ["SaslAuthenticateRequest", "SaslAuthenticateResponse"]


class SaslAuthenticateRequest(Request):
    __slots__ = ("auth_bytes",)
    API_KEY = 36
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (Field(name="auth_bytes", kind="bytes"),)

    def __init__(self, *, auth_bytes: bytes = b"") -> None:
        self.auth_bytes = auth_bytes


class SaslAuthenticateResponse(Response):
    __slots__ = (
        "error_code",
        "error_message",
        "auth_bytes",
        "session_lifetime_ms",
    )
    API_KEY = 36
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="auth_bytes", kind="bytes"),
        Field(name="session_lifetime_ms", kind="int64", since=1),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = "",
        auth_bytes: bytes = b"",
        session_lifetime_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.error_message = error_message
        self.auth_bytes = auth_bytes
        self.session_lifetime_ms = session_lifetime_ms
