"""Maps users of the platform's file (``tidegate.kit.users``) to Kafka's terms: SCRAM credentials and access control
entries.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from itertools import chain
from typing import Final

from broker.security.access import CLUSTER_NAME, Operation, ResourceType
from broker.security.acls import WILDCARD, AccessControlEntry, Acls, PatternType, Permission
from tidegate.kit.users import PlatformUser, Right, Users, UsersFile

__all__ = ["AclsOfUsers", "entries_of"]

_LOOK_S: Final = 1.0
"""How often requests check the file for changes. A login checks it each time."""

_SINK_GROUP: Final = "connect-"
"""Before the name of a sink connector it is the group in which its tasks consume, as in Kafka Connect: who manages the connector manages
its offsets."""

_WORKERS_GROUP: Final = "connect-cluster"
"""The group of the platform's own Connect workers: a client that joins it stops them all."""

_RESOURCES: Final = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transaction": ResourceType.TRANSACTIONAL_ID,
    "platform": ResourceType.CLUSTER,
}
_OPERATIONS: Final = {
    ("read", "topic"): (Operation.READ, Operation.DESCRIBE_CONFIGS),
    ("write", "topic"): (Operation.WRITE, Operation.DESCRIBE_CONFIGS),
    ("read", "group"): (Operation.READ,),
    ("write", "group"): (Operation.READ,),
    ("read", "transaction"): (Operation.DESCRIBE,),
    ("write", "transaction"): (Operation.WRITE,),
    ("read", "platform"): (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS),
    ("write", "platform"): (Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS),
}
"""The operations that a verb allows on a resource; ``manage`` allows all."""


class AclsOfUsers:
    """The cluster's entries, together with those that follow from users' rights."""

    def __init__(self, acls: Acls, file: UsersFile, clock: Callable[[], float] = time.monotonic) -> None:
        self._acls, self._file, self._clock = acls, file, clock
        self._users: Users = file.users
        self._entries = [entry for user in self._users for entry in entries_of(user)]
        self._looked, self._generations = clock(), 0

    def _look(self) -> None:
        now = self._clock()
        if now - self._looked >= _LOOK_S:
            self._looked, users = now, self._file.users
        else:
            # A login has read the file, so that user's rights come from the same read.
            users = self._file.last_read
        if users is not self._users:
            self._users, self._generations = users, self._generations + 1
            self._entries = [entry for user in users for entry in entries_of(user)]

    @property
    def changes(self) -> int:
        self._look()
        return self._acls.changes + (self._generations << 40)

    @property
    def super_users(self) -> Collection[str]:
        return {f"User:{user.name}" for user in self._users if user.active and user.is_admin}

    def __iter__(self) -> Iterator[AccessControlEntry]:
        return chain(self._acls, self._entries)


def entries_of(user: PlatformUser) -> Iterator[AccessControlEntry]:
    """The entries for a user's rights on a broker. An admin needs none."""
    if not user.active:
        return
    for right in user.rights:
        if right.kind == "connector" and right.verb == "manage":
            right = Right("manage", "group", f"{_SINK_GROUP}{right.name}")
            if right.covers("manage", "group", _WORKERS_GROUP):
                yield AccessControlEntry(
                    ResourceType.GROUP,
                    _WORKERS_GROUP,
                    PatternType.LITERAL,
                    f"User:{user.name}",
                    WILDCARD,
                    Operation.ALL,
                    Permission.DENY,
                )
        kind = _RESOURCES.get(right.kind)
        if kind is None:
            continue
        name, pattern = _pattern(right)
        operations = (Operation.ALL,) if right.verb == "manage" else _OPERATIONS[right.verb, right.kind]
        for operation in operations:
            yield AccessControlEntry(kind, name, pattern, f"User:{user.name}", WILDCARD, operation, Permission.ALLOW)


def _pattern(right: Right) -> tuple[str, PatternType]:
    if right.kind == "platform":
        return CLUSTER_NAME, PatternType.LITERAL
    if right.name == "*" or not right.name.endswith("*"):
        return right.name, PatternType.LITERAL
    return right.name[:-1], PatternType.PREFIXED
