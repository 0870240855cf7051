"""Access control entries: who may or may not perform which operation, on which resources, from where."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Final, NamedTuple, Protocol, TypeVar

from broker.errors import InvalidRequest
from broker.protocol.access_codes import Operation, PatternType, Permission, ResourceType
from broker.security.access import CLUSTER_NAME
from broker.security.acl_records import AccessControlEntryRecord, RemoveAccessControlEntryRecord

__all__ = [
    "WILDCARD",
    "AccessControlEntry",
    "AclFilter",
    "AclSource",
    "Acls",
    "PatternType",
    "Permission",
    "check_entry",
    "check_principal",
]

WILDCARD: Final = "*"
"""Any resource as a literal resource name, any host as a host, everyone in ``User:*``."""


class AccessControlEntry(NamedTuple):
    """One complete entry: a resource pattern, and whom it allows or denies which operation.

    It may be unvalidated client data.
    """

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int


class AclFilter(NamedTuple):
    """A filter for entries; None and ANY match all."""

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission: int

    def check(self) -> None:
        """Raises InvalidRequest for invalid codes."""
        _known(ResourceType, self.resource_type)
        _known(PatternType, self.pattern_type)
        _known(Operation, self.operation)
        _known(Permission, self.permission)

    def matches(self, entry: AccessControlEntry) -> bool:
        return (
            self.resource_type in (ResourceType.ANY, entry.resource_type)
            and self._matches_name(entry)
            and self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (Operation.ANY, entry.operation)
            and self.permission in (Permission.ANY, entry.permission)
        )

    def _matches_name(self, entry: AccessControlEntry) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, entry.pattern_type):
            return False
        if self.resource_name is None or self.resource_name == entry.resource_name:
            return True
        # MATCH selects entries that would apply to a resource of that name.
        if self.pattern_type != PatternType.MATCH:
            return False
        if entry.pattern_type == PatternType.LITERAL:
            return entry.resource_name == WILDCARD
        return self.resource_name.startswith(entry.resource_name)


class AclSource(Protocol):
    """The authorizer's source of entries."""

    @property
    def changes(self) -> int:
        """A number that changes whenever an entry changes."""
        ...

    @property
    def super_users(self) -> Collection[str]:
        """Principals that may do everything, whatever the entries are."""
        ...

    def __iter__(self) -> Iterator[AccessControlEntry]: ...


class Acls:
    """All entries of the cluster from the metadata log.

    ``changes`` counts modifications, so that caches can detect them.
    """

    super_users: Collection[str] = ()

    def __init__(self) -> None:
        self._by_id: dict[uuid.UUID, AccessControlEntry] = {}
        self._ids: dict[AccessControlEntry, uuid.UUID] = {}
        self.changes = 0

    def __iter__(self) -> Iterator[AccessControlEntry]:
        return iter(self._ids)

    def __len__(self) -> int:
        return len(self._ids)

    def __contains__(self, entry: AccessControlEntry) -> bool:
        return entry in self._ids

    @property
    def by_id(self) -> Mapping[uuid.UUID, AccessControlEntry]:
        return self._by_id

    def find(self, acl_filter: AclFilter) -> list[AccessControlEntry]:
        return [entry for entry in self._ids if acl_filter.matches(entry)]

    def replay(self, record: AccessControlEntryRecord | RemoveAccessControlEntryRecord) -> None:
        self.changes += 1
        if isinstance(record, RemoveAccessControlEntryRecord):
            gone = self._by_id.pop(record.acl_id, None)
            if gone is not None:
                del self._ids[gone]
            return
        entry = AccessControlEntry(
            record.resource_type,
            record.resource_name,
            record.pattern_type,
            record.principal,
            record.host,
            record.operation,
            record.permission_type,
        )
        self._by_id[record.acl_id] = entry
        self._ids[entry] = record.acl_id

    def additions(self, entries: Iterable[AccessControlEntry]) -> list[AccessControlEntryRecord]:
        """The records that add the missing ones of these validated entries, without duplicates."""
        return [
            AccessControlEntryRecord(
                acl_id=uuid.uuid4(),
                resource_type=entry.resource_type,
                resource_name=entry.resource_name,
                pattern_type=entry.pattern_type,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for entry in dict.fromkeys(entries)
            if entry not in self._ids
        ]

    def removals(self, entries: Iterable[AccessControlEntry]) -> list[RemoveAccessControlEntryRecord]:
        """The records that remove the existing ones of these entries, without duplicates."""
        return [
            RemoveAccessControlEntryRecord(acl_id=self._ids[entry])
            for entry in dict.fromkeys(entries)
            if entry in self._ids
        ]


def check_entry(entry: AccessControlEntry) -> None:
    """Raises InvalidRequest for an invalid entry."""
    name = entry.resource_name
    if entry.resource_type == ResourceType.CLUSTER and name != CLUSTER_NAME:
        raise InvalidRequest(f"The cluster is named {CLUSTER_NAME!r}, not {name!r}.")
    if not name:
        raise InvalidRequest("The resource name is empty.")
    if _known(ResourceType, entry.resource_type) is ResourceType.ANY:
        raise InvalidRequest("An entry is for one type of resources, not for ANY.")
    if entry.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
        raise InvalidRequest(f"Pattern type {entry.pattern_type} cannot be in an entry: LITERAL and PREFIXED can.")
    if _known(Operation, entry.operation) is Operation.ANY:
        raise InvalidRequest("An entry is for one operation or ALL, not for ANY.")
    if entry.permission not in (Permission.ALLOW, Permission.DENY):
        raise InvalidRequest(f"Permission {entry.permission} cannot be in an entry: ALLOW and DENY can.")
    try:
        check_principal(entry.principal)
    except ValueError as error:
        raise InvalidRequest(str(error)) from error


def check_principal(text: str) -> None:
    """Raises ValueError."""
    kind, colon, name = text.partition(":")
    if not (kind and colon and name):
        raise ValueError(f"{text!r} is not a principal: User:name is the form.")


E = TypeVar("E", bound=IntEnum)


def _known(kind: type[E], code: int) -> E:
    """Raises InvalidRequest."""
    try:
        result = kind(code)
    except ValueError:
        result = kind(0)
    if result == 0:
        known = ", ".join(f"{item.value} {item.name}" for item in kind if item)
        raise InvalidRequest(f"{kind.__name__} {code} is not known: {known} are.")
    return result
