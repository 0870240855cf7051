# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Request, Response

__all__ = ["SaslHandshakeRequest", "SaslHandshakeResponse"]


class SaslHandshakeRequest(Request):
    __slots__ = ("mechanism",)
    API_KEY = 17
    FLEXIBLE_SINCE = 32768
    FIELDS: ClassVar = (Field(name="mechanism", kind="string"),)

    def __init__(self, *, mechanism: str = "") -> None:
        self.mechanism = mechanism


class SaslHandshakeResponse(Response):
    __slots__ = (
        "error_code",
        "mechanisms",
    )
    API_KEY = 17
    FLEXIBLE_SINCE = 32768
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16"),
        Field(name="mechanisms", kind="string", array=True),
    )

    def __init__(self, *, error_code: int = 0, mechanisms: Sequence[str] = ()) -> None:
        self.error_code = error_code
        self.mechanisms = mechanisms
