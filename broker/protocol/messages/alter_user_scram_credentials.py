# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "AlterUserScramCredentialsRequest",
    "AlterUserScramCredentialsResponse",
    "AlterUserScramCredentialsResult",
    "ScramCredentialDeletion",
    "ScramCredentialUpsertion",
]


class ScramCredentialDeletion(Message):
    __slots__ = (
        "name",
        "mechanism",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="mechanism", kind="int8"),
    )

    def __init__(self, *, name: str = "", mechanism: int = 0) -> None:
        self.name = name
        self.mechanism = mechanism


class ScramCredentialUpsertion(Message):
    __slots__ = (
        "name",
        "mechanism",
        "iterations",
        "salt",
        "salted_password",
    )
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="mechanism", kind="int8"),
        Field(name="iterations", kind="int32"),
        Field(name="salt", kind="bytes"),
        Field(name="salted_password", kind="bytes"),
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        iterations: int = 0,
        salt: bytes = b"",
        salted_password: bytes = b"",
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = salt
        self.salted_password = salted_password


class AlterUserScramCredentialsRequest(Request):
    __slots__ = (
        "deletions",
        "upsertions",
    )
    API_KEY = 51
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="deletions", kind=ScramCredentialDeletion, array=True),
        Field(name="upsertions", kind=ScramCredentialUpsertion, array=True),
    )

    def __init__(
        self, *, deletions: Sequence[ScramCredentialDeletion] = (), upsertions: Sequence[ScramCredentialUpsertion] = ()
    ) -> None:
        self.deletions = deletions
        self.upsertions = upsertions


class AlterUserScramCredentialsResult(Message):
    __slots__ = (
        "user",
        "error_code",
        "error_message",
    )
    FIELDS: ClassVar = (
        Field(name="user", kind="string"),
        Field(name="error_code", kind="int16"),
        Field(name="error_message", kind="string", null_since=0),
    )

    def __init__(self, *, user: str = "", error_code: int = 0, error_message: str | None = "") -> None:
        self.user = user
        self.error_code = error_code
        self.error_message = error_message


class AlterUserScramCredentialsResponse(Response):
    __slots__ = (
        "throttle_time_ms",
        "results",
    )
    API_KEY = 51
    FLEXIBLE_SINCE = 0
    FIELDS: ClassVar = (
        Field(name="throttle_time_ms", kind="int32"),
        Field(name="results", kind=AlterUserScramCredentialsResult, array=True),
    )

    def __init__(self, *, throttle_time_ms: int = 0, results: Sequence[AlterUserScramCredentialsResult] = ()) -> None:
        self.throttle_time_ms = throttle_time_ms
        self.results = results
