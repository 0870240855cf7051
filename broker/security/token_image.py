"""The delegation tokens in the metadata log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from broker.protocol.metadata_record import MetadataRecord
from broker.security.credential_records import DelegationTokenRecord, RemoveDelegationTokenRecord
from broker.security.principal import Principal

__all__ = ["DelegationToken", "TokenImage"]


class DelegationToken(NamedTuple):
    """Times in milliseconds since 1970."""

    token_id: str
    owner: Principal
    requester: Principal
    renewers: tuple[Principal, ...]
    issued_at: int
    max_at: int
    expires_at: int

    def belongs_to(self, principal: Principal) -> bool:
        """Whether a principal is the owner or a renewer, regardless of how it logged in."""
        return any(principal[:2] == item[:2] for item in (self.owner, *self.renewers))

    def record(self) -> DelegationTokenRecord:
        return DelegationTokenRecord(
            owner=str(self.owner),
            requester=str(self.requester),
            renewers=[str(renewer) for renewer in self.renewers],
            issue_timestamp=self.issued_at,
            max_timestamp=self.max_at,
            expiration_timestamp=self.expires_at,
            token_id=self.token_id,
        )


class TokenImage:
    """All tokens of the metadata log, by id."""

    def __init__(self) -> None:
        self._tokens: dict[str, DelegationToken] = {}

    def __iter__(self) -> Iterator[DelegationToken]:
        return iter(self._tokens.values())

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, token_id: str) -> DelegationToken | None:
        return self._tokens.get(token_id)

    def replay(self, record: DelegationTokenRecord | RemoveDelegationTokenRecord) -> None:
        if isinstance(record, RemoveDelegationTokenRecord):
            self._tokens.pop(record.token_id, None)
        else:
            self._tokens[record.token_id] = DelegationToken(
                record.token_id,
                _principal(record.owner),
                _principal(record.requester),
                tuple(map(_principal, record.renewers)),
                record.issue_timestamp,
                record.max_timestamp,
                record.expiration_timestamp,
            )

    def records(self) -> Iterator[MetadataRecord]:
        """The records from which ``replay`` restores these tokens."""
        return (token.record() for token in self)


def _principal(text: str) -> Principal:
    kind, _, name = text.partition(":")
    return Principal(kind, name)
