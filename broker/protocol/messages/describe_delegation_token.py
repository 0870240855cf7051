# Generated from kio 0.6.5's Kafka schema by `python -m broker.protocol.codegen`. Do not edit.

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.schema import Field, Message, Request, Response

__all__ = [
    "DescribeDelegationTokenOwner",
    "DescribeDelegationTokenRequest",
    "DescribeDelegationTokenResponse",
    "DescribedDelegationToken",
    "DescribedDelegationTokenRenewer",
]


class DescribeDelegationTokenOwner(Message):
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


class DescribeDelegationTokenRequest(Request):
    __slots__ = ("owners",)
    API_KEY = 41
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (Field(name="owners", kind=DescribeDelegationTokenOwner, array=True, since=1, null_since=1),)

    def __init__(self, *, owners: Sequence[DescribeDelegationTokenOwner] | None = ()) -> None:
        self.owners = owners


class DescribedDelegationTokenRenewer(Message):
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


class DescribedDelegationToken(Message):
    __slots__ = (
        "principal_type",
        "principal_name",
        "token_requester_principal_type",
        "token_requester_principal_name",
        "issue_timestamp",
        "expiry_timestamp",
        "max_timestamp",
        "token_id",
        "hmac",
        "renewers",
    )
    FIELDS: ClassVar = (
        Field(name="principal_type", kind="string", since=1),
        Field(name="principal_name", kind="string", since=1),
        Field(name="token_requester_principal_type", kind="string", since=3),
        Field(name="token_requester_principal_name", kind="string", since=3),
        Field(name="issue_timestamp", kind="int64", since=1),
        Field(name="expiry_timestamp", kind="int64", since=1),
        Field(name="max_timestamp", kind="int64", since=1),
        Field(name="token_id", kind="string", since=1),
        Field(name="hmac", kind="bytes", since=1),
        Field(name="renewers", kind=DescribedDelegationTokenRenewer, array=True, since=1),
    )

    def __init__(
        self,
        *,
        principal_type: str = "",
        principal_name: str = "",
        token_requester_principal_type: str = "",
        token_requester_principal_name: str = "",
        issue_timestamp: int = 0,
        expiry_timestamp: int = 0,
        max_timestamp: int = 0,
        token_id: str = "",
        hmac: bytes = b"",
        renewers: Sequence[DescribedDelegationTokenRenewer] = (),
    ) -> None:
        self.principal_type = principal_type
        self.principal_name = principal_name
        self.token_requester_principal_type = token_requester_principal_type
        self.token_requester_principal_name = token_requester_principal_name
        self.issue_timestamp = issue_timestamp
        self.expiry_timestamp = expiry_timestamp
        self.max_timestamp = max_timestamp
        self.token_id = token_id
        self.hmac = hmac
        self.renewers = renewers


class DescribeDelegationTokenResponse(Response):
    __slots__ = (
        "error_code",
        "tokens",
        "throttle_time_ms",
    )
    API_KEY = 41
    FLEXIBLE_SINCE = 2
    FIELDS: ClassVar = (
        Field(name="error_code", kind="int16", since=1),
        Field(name="tokens", kind=DescribedDelegationToken, array=True, since=1),
        Field(name="throttle_time_ms", kind="int32", since=1),
    )

    def __init__(
        self, *, error_code: int = 0, tokens: Sequence[DescribedDelegationToken] = (), throttle_time_ms: int = 0
    ) -> None:
        self.error_code = error_code
        self.tokens = tokens
        self.throttle_time_ms = throttle_time_ms
