"""SCRAM credentials and delegation tokens as records of the metadata log."""

from __future__ import annotations

from collections.abc import Sequence

from broker.protocol.declare import structure, wire
from broker.protocol.metadata_record import MetadataRecord

__all__ = [
    "DelegationTokenRecord",
    "RemoveDelegationTokenRecord",
    "RemoveUserScramCredentialRecord",
    "UserScramCredentialRecord",
]


@structure
class DelegationTokenRecord(MetadataRecord):
    """A token was created or renewed. Principals are text (``User:name``), times are milliseconds since 1970."""

    API_KEY = 10
    owner: str = wire("string")
    requester: str = wire("string")
    renewers: Sequence[str] = wire("string", array=True)
    issue_timestamp: int = wire("int64")
    max_timestamp: int = wire("int64")
    expiration_timestamp: int = wire("int64")
    token_id: str = wire("string")


@structure
class RemoveDelegationTokenRecord(MetadataRecord):
    """A token expired or was revoked."""

    API_KEY = 26
    token_id: str = wire("string")


@structure
class UserScramCredentialRecord(MetadataRecord):
    """The data for verifying a user's password; the mechanism by its wire code."""

    API_KEY = 11
    name: str = wire("string")
    mechanism: int = wire("int8")
    salt: bytes = wire("bytes")
    stored_key: bytes = wire("bytes")
    server_key: bytes = wire("bytes")
    iterations: int = wire("int32")


@structure
class RemoveUserScramCredentialRecord(MetadataRecord):
    """A user's credential of this mechanism was removed."""

    API_KEY = 22
    name: str = wire("string")
    mechanism: int = wire("int8")
