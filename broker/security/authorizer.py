"""Authorizes by access control entries, like Kafka's ``StandardAuthorizer``."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from broker.security.access import Operation, Resource, ResourceType
from broker.security.acls import WILDCARD, AccessControlEntry, AclSource, PatternType, Permission
from broker.security.principal import Principal
from tidegate.kit.logs import get_logger

__all__ = ["StandardAuthorizer"]

logger = get_logger(__name__)

_EVERYONE: Final = "User:*"
_MOST_REMEMBERED: Final = 20_000
"""The most decisions cached. Names come from clients, so without a limit the cache could grow forever."""

_MOST_TOLD: Final = 1000
_TOLD_AT_ONCE: Final = 50
_TOLD_WITHIN_S: Final = 10.0
"""So many refusals are logged in so many seconds, and the rest counted: a request may name 25,000 topics, a line takes 40 us."""

_ALSO_ALLOWED_BY: Final = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}
"""Operations that imply describe: allowing one of these allows it, but denying one does not deny it."""


class StandardAuthorizer:
    """Decides by the cluster's entries, which may change at any time: decisions are cached until they do.

    A denial overrides any allowance. ``allow_if_no_acl`` decides for resources without any entry.
    """

    def __init__(
        self,
        acls: AclSource,
        *,
        super_users: Iterable[str] = (),
        allow_if_no_acl: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._acls = acls
        self._always_super, self._super_users = frozenset(super_users), frozenset[str]()
        self._allow_if_no_acl = allow_if_no_acl
        self._clock = clock
        self._decided: dict[tuple[str, str, str, int, int, str], bool] = {}
        self._exact: dict[tuple[int, str], list[AccessControlEntry]] = {}
        self._prefixed: dict[int, list[AccessControlEntry]] = {}
        self._logged: set[tuple[str, str, int, Resource]] = set()
        self._seen = -1
        self._logged_since, self._logged_now, self._unlogged = float("-inf"), 0, 0

    def allows(self, principal: Principal, host: str, operation: Operation, resource: Resource) -> bool:
        if self._seen != self._acls.changes:
            self._index()
        asked = (principal.type, principal.name, host, operation, *resource)
        decided = self._decided.get(asked)
        if decided is None:
            if len(self._decided) >= _MOST_REMEMBERED:
                self._decided.clear()
            decided = self._decided[asked] = self._decide(str(principal), host, operation, resource)
        return decided

    def allows_any(self, principal: Principal, host: str, operation: Operation, resource_type: ResourceType) -> bool:
        """Whether there could be a resource of the type, existing or not, on which the client may perform the
        operation.
        """
        if self.allows(principal, host, operation, Resource(resource_type, "hardcode")):
            # Kafka uses this name: super users and "no entries at all" pass.
            return True
        allowed: list[AccessControlEntry] = []
        denied: set[tuple[int, str]] = set()
        for entry in self._acls:
            if entry.resource_type != resource_type or not _is_for(entry, str(principal), host):
                continue
            if entry.operation not in (operation, Operation.ALL):
                continue
            if entry.permission == Permission.ALLOW:
                allowed.append(entry)
            elif (entry.pattern_type, entry.resource_name) == (PatternType.LITERAL, WILDCARD):
                return False
            else:
                denied.add((entry.pattern_type, entry.resource_name))
        return any(not _dominated(entry, denied) for entry in allowed)

    def refused(self, principal: Principal, host: str, operation: Operation, resource: Resource) -> None:
        """Log what a client asked for and may not do: once, until an entry changes, and few in a short time."""
        what = (str(principal), host, int(operation), resource)
        if what in self._logged or not self._may_tell():
            return
        if len(self._logged) >= _MOST_TOLD:
            self._logged.clear()
        self._logged.add(what)
        logger.info(
            "refused",
            principal=str(principal),
            host=host,
            operation=operation.name,
            resource=f"{resource.type.name}:{resource.name}",
        )

    def _may_tell(self) -> bool:
        now = self._clock()
        if now - self._logged_since >= _TOLD_WITHIN_S:
            if self._unlogged:
                logger.info("refused more than is logged", refusals=self._unlogged)
            self._logged_since, self._logged_now, self._unlogged = now, 0, 0
        may = self._logged_now < _TOLD_AT_ONCE
        self._logged_now += may
        self._unlogged += not may
        return may

    def _index(self) -> None:
        self._decided.clear()
        self._logged.clear()
        self._exact.clear()
        self._prefixed.clear()
        self._super_users = self._always_super.union(self._acls.super_users)
        for entry in self._acls:
            if entry.pattern_type == PatternType.PREFIXED:
                self._prefixed.setdefault(entry.resource_type, []).append(entry)
            else:
                self._exact.setdefault((entry.resource_type, entry.resource_name), []).append(entry)
        self._seen = self._acls.changes

    def _applying(self, resource: Resource) -> list[AccessControlEntry]:
        name = resource.name
        return [
            *self._exact.get((resource.type, name), ()),
            *(self._exact.get((resource.type, WILDCARD), ()) if name != WILDCARD else ()),
            *(entry for entry in self._prefixed.get(resource.type, ()) if name.startswith(entry.resource_name)),
        ]

    def _decide(self, principal: str, host: str, operation: Operation, resource: Resource) -> bool:
        if principal in self._super_users:
            return True
        applying = self._applying(resource)
        if not applying:
            return self._allow_if_no_acl
        allowed = False
        for entry in applying:
            if not _is_for(entry, principal, host):
                continue
            if entry.operation in (operation, Operation.ALL):
                if entry.permission == Permission.DENY:
                    return False
                allowed = True
            elif entry.permission == Permission.ALLOW and entry.operation in _ALSO_ALLOWED_BY.get(operation, ()):
                allowed = True
        return allowed


def _is_for(entry: AccessControlEntry, principal: str, host: str) -> bool:
    return entry.principal in (principal, _EVERYONE) and entry.host in (host, WILDCARD)


def _dominated(entry: AccessControlEntry, denied: set[tuple[int, str]]) -> bool:
    """Whether another entry denies everything that an allowing entry allows."""
    name = entry.resource_name
    if entry.pattern_type == PatternType.LITERAL:
        if name == WILDCARD:
            return False
        if (PatternType.LITERAL, name) in denied:
            return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
