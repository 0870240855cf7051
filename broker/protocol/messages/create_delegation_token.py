# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = ["CreatableRenewers", "CreateDelegationTokenRequest", "CreateDelegationTokenResponse"]


class CreatableRenewers(Message):
    __slots__ = (
        "principal_type",
        "principal_name",
    )
    FIELDS: ClassVar = (
        Field(name="principal_type", kind="string", since=1),
        Field(name="principal_name", kind="string", since=1),
    )

    def __init__(self, *, principal_type: str = "", principal_name: str = "") -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name


class CreateDelegationTokenRequest(Request):
    __slots__ = (
        "owner_principal_type",
        "owner_principal_name",
        "renewers",
        "max_lifetime_ms",
    )
    API_KEY = 38
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="owner_principal_type", kind="string", since=3, null_since=3),
        Field(name="owner_principal_name", kind="string", since=3, null_since=3),
        Field(name="renewers", kind=CreatableRenewers, array=True, since=1),
        Field(name="max_lifetime_ms", kind="int64", since=1),
    )

    def __init__(
        self,
        *,
        owner_principal_type: str | None = "",
        owner_principal_name: str | None = "",
        renewers: Sequence[CreatableRenewers] = (),
        max_lifetime_ms: int = 0,
    ) -> None:
        self.owner_principal_type = owner_principal_type
        self.owner_principal_name = owner_principal_name
        self.renewers = renewers
        self.max_lifetime_ms = max_lifetime_ms


class CreateDelegationTokenResponse(Response):
    __slots__ = (
        "error_code",
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp_ms",
        "expiry_timestamp_ms",
        "max_timestamp_ms",
        "token_id",
        "hmac",
        "throttle_time_ms",
    )
    API_KEY = 38
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16", since=1),
        Field(name="principal_type", kind="string", since=1),
        Field(name="principal_name", kind="string", since=1),
        Field(name="token_requester_principal_type", kind="string", since=3),
        Field(name="token_requester_principal_name", kind="string", since=3),
        Field(name="issue_timestamp_ms", kind="int64", since=1),
        Field(name="expiry_timestamp_ms", kind="int64", since=1),
        Field(name="max_timestamp_ms", kind="int64", since=1),
        Field(name="token_id", kind="string", since=1),
        Field(name="hmac", kind="bytes", since=1),
        Field(name="throttle_time_ms", kind="int32", since=1),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp_ms: int = 0,
        expiry_timestamp_ms: int = 0,
        max_timestamp_ms: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        throttle_time_ms: int = 0,
    ) -> None:
        self.error_code = error_code
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp_ms = issue_timestamp_ms
        self.expiry_timestamp_ms = expiry_timestamp_ms
        self.max_timestamp_ms = max_timestamp_ms
        self.token_id = token_id
        self.hmac = hmac
        self.throttle_time_ms = throttle_time_ms
