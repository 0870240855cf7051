# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "CredentialInfo",
    "DescribeUserScramCredentialsRequest",
    "DescribeUserScramCredentialsResponse",
    "DescribeUserScramCredentialsResult",
    "UserName",
]


class UserName(Message):
    __slots__ = ("name",)
    FIELDS: ClassVar = (Field(name="name", kind="string"),)

    def __init__(self, *, name: str = "") -> None:
        self.name = name


class DescribeUserScramCredentialsRequest(Request):
    __slots__ = ("users",)
    API_KEY = 50
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (Field(name="users", kind=UserName, array=True, null_since=0),)

    def __init__(self, *, users: Sequence[UserName] | None = ()) -> None:
        self.users = users


class CredentialInfo(Message):
    __slots__ = (
        "mechanism",
        "iterations",
    )
    FIELDS: ClassVar = (
        Field(name="mechanism", kind="int8"),
        Field(name="iterations", kind="int32"),
    )

    def __init__(self, *, mechanism: int = 0, iterations: int = 0) -> None:
        self.mechanism = mechanism
        self.iterations = iterations


class DescribeUserScramCredentialsResult(Message):
    __slots__ = (
        "user",
        "error_code",
        "error_message",
        "credential_infos",
    )
    FIELDS: ClassVar = (
        Field(name="user", kind="string"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="credential_infos", kind=CredentialInfo, array=True),
    )

    def __init__(
        self,
        *,
        user: str = "",
        error_code: int = 0,
        error_message: str | None = "",
        credential_infos: Sequence[CredentialInfo] = (),
    ) -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message
        self.credential_infos = credential_infos


class DescribeUserScramCredentialsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "error_code",
        "error_message",
        "results",
    )
    API_KEY = 50
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
        Field(name="results", kind=DescribeUserScramCredentialsResult, array=True),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = "",
        results: Sequence[DescribeUserScramCredentialsResult] = (),
    ) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.error_code = error_code
        self.error_message = error_message
        self.results = results
