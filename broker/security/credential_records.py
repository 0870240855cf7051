"""SCRAM credentials and delegation tokens as records of the metadata log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from broker.protocol.metadata_record import MetadataRecord
from broker.protocol.schema import Field

__all__ = [
    "DelegationTokenRecord",
    "RemoveDelegationTokenRecord",
    "RemoveUserScramCredentialRecord",
    "UserScramCredentialRecord",
]


class DelegationTokenRecord(MetadataRecord):
    """A token was made or renewed. Principals are text (``User:name``), times milliseconds since 1970."""

    __slots__ = (
        "expiration_timestamp", "issue_timestamp", "max_timestamp", "owner", "renewers", "requester", "token_id",
    )  # fmt: skip
    API_KEY = 10
    FIELDS: ClassVar = (
        Field(name="owner", kind="string"),
        Field(name="requester", kind="string"),
        Field(name="renewers", kind="string", array=True),
        Field(name="issue_timestamp", kind="int64"),
        Field(name="max_timestamp", kind="int64"),
        Field(name="expiration_timestamp", kind="int64"),
        Field(name="token_id", kind="string"),
    )

    def __init__(
        self,
        *,
        owner: str = "",
        requester: str = "",
        renewers: Sequence[str] = (),
        issue_timestamp: int = 0,
        max_timestamp: int = 0,
        expiration_timestamp: int = 0,
        token_id: str = "",
    ) -> None:
        self.owner = owner
        self.requester = requester
        self.renewers = renewers
        self.issue_timestamp = issue_timestamp
        self.max_timestamp = max_timestamp
        self.expiration_timestamp = expiration_timestamp
        self.token_id = token_id


class RemoveDelegationTokenRecord(MetadataRecord):
    """A token expired or was taken back."""

    __slots__ = ("token_id",)
    API_KEY = 26
    FIELDS: ClassVar = (Field(name="token_id", kind="string"),)

    def __init__(self, *, token_id: str = "") -> None:
        self.token_id = token_id


class UserScramCredentialRecord(MetadataRecord):
    """What a user's password is checked against; the mechanism by its wire code."""

    __slots__ = ("iterations", "mechanism", "name", "salt", "server_key", "stored_key")
    API_KEY = 11
    FIELDS: ClassVar = (
        Field(name="name", kind="string"),
        Field(name="mechanism", kind="int8"),
        Field(name="salt", kind="bytes"),
        Field(name="stored_key", kind="bytes"),
        Field(name="server_key", kind="bytes"),
        Field(name="iterations", kind="int32"),
    )

    def __init__(
        self,
        *,
        name: str = "",
        mechanism: int = 0,
        salt: bytes = b"",
        stored_key: bytes = b"",
        server_key: bytes = b"",
        iterations: int = 0,
    ) -> None:
        self.name = name
        self.mechanism = mechanism
        self.salt = salt
        self.stored_key = stored_key
        self.server_key = server_key
        self.iterations = iterations


class RemoveUserScramCredentialRecord(MetadataRecord):
    """A user has no credential of this mechanism any more."""

    __slots__ = ("mechanism", "name")
    API_KEY = 22
    FIELDS: ClassVar = (Field(name="name", kind="string"), Field(name="mechanism", kind="int8"))

    def __init__(self, *, name: str = "", mechanism: int = 0) -> None:
        self.name = name
        self.mechanism = mechanism
