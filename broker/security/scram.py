"""SCRAM credentials: the stored form of passwords (RFC 5802, KIP-554)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import Final, Protocol

from broker.errors import (
    BrokerError,
    DuplicateResource,
    ResourceNotFound,
    UnacceptableCredential,
    UnsupportedSaslMechanism,
)
from broker.protocol.metadata_record import MetadataRecord
from broker.security.credential_records import RemoveUserScramCredentialRecord, UserScramCredentialRecord
from tidegate.kit.scram import MIN_ITERATIONS, ScramCredential, from_salted

__all__ = ["ScramCredentials", "ScramMechanism", "changes"]

_MAX_ITERATIONS: Final = 16384


class ScramMechanism(IntEnum):
    """Mechanisms by wire code (``ScramMechanism`` of the admin client)."""

    SHA_256 = 1
    SHA_512 = 2

    @property
    def title(self) -> str:
        return f"SCRAM-{self.name.replace('_', '-')}"

    @property
    def digest(self) -> str:
        return self.name.replace("_", "").lower()


class ScramCredentials:
    """The credentials of all users from the metadata log."""

    def __init__(self) -> None:
        self._users: dict[str, dict[ScramMechanism, ScramCredential]] = {}

    def replay(self, record: UserScramCredentialRecord | RemoveUserScramCredentialRecord) -> None:
        mechanism = ScramMechanism(record.mechanism)
        if isinstance(record, RemoveUserScramCredentialRecord):
            credentials = self._users.get(record.name, {})
            credentials.pop(mechanism, None)
            if not credentials:
                self._users.pop(record.name, None)
        else:
            self._users.setdefault(record.name, {})[mechanism] = ScramCredential(
                bytes(record.salt), bytes(record.stored_key), bytes(record.server_key), record.iterations
            )

    def records(self) -> Iterator[MetadataRecord]:
        """The records from which ``replay`` restores these credentials."""
        for name, user in self._users.items():
            for mechanism, credential in user.items():
                yield UserScramCredentialRecord(name=name, mechanism=mechanism, **credential._asdict())

    def get(self, user: str, mechanism: ScramMechanism) -> ScramCredential | None:
        return self._users.get(user, {}).get(mechanism)

    def of(self, mechanism: ScramMechanism) -> list[tuple[str, ScramCredential]]:
        """All users of a mechanism, with their credentials."""
        return [(name, user[mechanism]) for name, user in self._users.items() if mechanism in user]

    def users(self) -> list[str]:
        return sorted(self._users)

    def iterations(self, user: str) -> list[tuple[ScramMechanism, int]]:
        """Iterations per mechanism of a user. Raises ResourceNotFound."""
        if user not in self._users:
            raise ResourceNotFound(f"Attempt to describe a user credential that does not exist: {user}")
        return sorted((mechanism, credential.iterations) for mechanism, credential in self._users[user].items())


class Deletion(Protocol):
    name: str
    mechanism: int


class Upsertion(Deletion, Protocol):
    iterations: int
    salt: bytes
    salted_password: bytes


def changes(
    credentials: ScramCredentials, deletions: Iterable[Deletion], upsertions: Iterable[Upsertion]
) -> tuple[list[MetadataRecord], dict[str, BrokerError | None]]:
    """The changes of AlterUserScramCredentials: the records, and per user None or the error."""
    removed: dict[str, MetadataRecord] = {}
    set_: dict[str, MetadataRecord] = {}
    outcome: dict[str, BrokerError | None] = {}
    for deletion in (*deletions, *upsertions):
        if deletion.name in outcome:
            if outcome[deletion.name] is None:
                outcome[deletion.name] = DuplicateResource(
                    "A user credential cannot be altered twice in the same request"
                )
                removed.pop(deletion.name, None)
                set_.pop(deletion.name, None)
            continue
        try:
            if hasattr(deletion, "salted_password"):
                set_[deletion.name] = _upsertion(deletion)  # type: ignore[arg-type]
            else:
                removed[deletion.name] = _deletion(credentials, deletion)
            outcome[deletion.name] = None
        except BrokerError as error:
            outcome[deletion.name] = error
    records: Sequence[MetadataRecord] = [*removed.values(), *set_.values()]
    return list(records), outcome


def _mechanism(name: str, code: int) -> ScramMechanism:
    if not name:
        raise UnacceptableCredential("Username must not be empty")
    try:
        return ScramMechanism(code)
    except ValueError:
        raise UnsupportedSaslMechanism("Unknown SCRAM mechanism") from None


def _deletion(credentials: ScramCredentials, deletion: Deletion) -> MetadataRecord:
    mechanism = _mechanism(deletion.name, deletion.mechanism)
    if credentials.get(deletion.name, mechanism) is None:
        raise ResourceNotFound("Attempt to delete a user credential that does not exist")
    return RemoveUserScramCredentialRecord(name=deletion.name, mechanism=mechanism)


def _upsertion(upsertion: Upsertion) -> MetadataRecord:
    mechanism = _mechanism(upsertion.name, upsertion.mechanism)
    if upsertion.iterations < MIN_ITERATIONS:
        raise UnacceptableCredential("Too few iterations")
    if upsertion.iterations > _MAX_ITERATIONS:
        raise UnacceptableCredential("Too many iterations")
    made = from_salted(mechanism.digest, bytes(upsertion.salted_password), bytes(upsertion.salt), upsertion.iterations)
    return UserScramCredentialRecord(name=upsertion.name, mechanism=mechanism, **made._asdict())
