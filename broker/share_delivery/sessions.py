"""Share sessions (KIP-932): the share-partitions that a member fetches, so that requests contain only changes."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Final

from broker.errors import InvalidRequest, InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound

__all__ = ["FINAL", "INITIAL", "ShareSession", "ShareSessions"]

INITIAL: Final = 0
"""The session epoch of a request that begins a session."""
FINAL: Final = -1
"""The session epoch of a request that ends it."""
_MAX_EPOCH: Final = 0x7FFFFFFF

Partition = tuple[uuid.UUID, int]


class ShareSession:
    """One member's partitions, least recently served first; each with whether the next answer has to name it."""

    __slots__ = ("connection", "epoch", "group_id", "member_id", "partitions")

    def __init__(self, group_id: str, member_id: str, connection: object) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.connection = connection
        self.epoch = 1
        self.partitions: dict[Partition, bool] = {}

    def update(self, partitions: Iterable[Partition], forgotten: Iterable[Partition]) -> None:
        for partition in partitions:
            self.partitions.setdefault(partition, True)
        for partition in forgotten:
            self.partitions.pop(partition, None)

    def record_result(self, partition: Partition, *, has_records: bool, failed: bool) -> bool:
        """Record a partition's result. Returns whether the answer has to name it."""
        due = self.partitions.get(partition)
        if due is None:
            return has_records or failed
        if has_records:
            del self.partitions[partition]
        if has_records or due != failed:
            self.partitions[partition] = failed
        return has_records or due or failed

    def _next(self) -> None:
        self.epoch = 1 if self.epoch == _MAX_EPOCH else self.epoch + 1


class ShareSessions:
    """The sessions of one broker, at most ``most``: one per member, on one connection."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._by_connection: dict[object, tuple[str, str]] = {}
        self._members: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, group_id: str, member_id: str) -> ShareSession | None:
        return self._sessions.get((group_id, member_id))

    def members(self, group_id: str) -> int:
        """How many members of a group have a session."""
        return self._members.get(group_id, 0)

    def begin(
        self, group_id: str, member_id: str, partitions: Iterable[Partition], connection: object, *, acknowledges: bool
    ) -> ShareSession:
        """A new session, which replaces the member's existing one.

        Raises InvalidRequest if the request has acknowledgements, ShareSessionLimitReached.
        """
        if acknowledges:
            raise InvalidRequest("The first fetch of a share session cannot acknowledge records.")
        self.end(group_id, member_id)
        if len(self._sessions) >= self._most:
            raise ShareSessionLimitReached(f"There are {self._most} share sessions (group.share.max.share.sessions).")
        session = ShareSession(group_id, member_id, connection)
        session.partitions = dict.fromkeys(partitions, False)
        self._sessions[group_id, member_id] = session
        self._by_connection[connection] = (group_id, member_id)
        self._members[group_id] = self.members(group_id) + 1
        return session

    def go_on(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """The session for its next request. Raises ShareSessionNotFound, InvalidShareSessionEpoch."""
        session = self.find(group_id, member_id)
        if session.epoch != epoch:
            raise InvalidShareSessionEpoch(
                f"The share session of {member_id} in group {group_id} is in epoch {session.epoch}, not {epoch}."
            )
        session._next()
        return session

    def find(self, group_id: str, member_id: str) -> ShareSession:
        """Raises ShareSessionNotFound."""
        session = self.get(group_id, member_id)
        if session is None:
            raise ShareSessionNotFound(f"Member {member_id} of group {group_id} has no share session here.")
        return session

    def end(self, group_id: str, member_id: str) -> ShareSession | None:
        session = self._sessions.pop((group_id, member_id), None)
        if session is None:
            return None
        if self._by_connection.get(session.connection) == (group_id, member_id):
            del self._by_connection[session.connection]
        left = self._members.pop(group_id) - 1
        if left:
            self._members[group_id] = left
        return session

    def on_connection(self, connection: object) -> ShareSession | None:
        """The session that was begun on a connection and ends with it."""
        key = self._by_connection.get(connection)
        return None if key is None else self._sessions.get(key)
