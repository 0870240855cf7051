"""A member of a group whose assignments the coordinator computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol
from uuid import UUID

__all__ = ["JOINING", "LEAVING", "LEAVING_STATIC", "MemberState", "ModernMember", "Partitions", "partitions_from"]

JOINING = 0
"""The member epoch with which a member joins, or joins again after it was fenced."""
LEAVING = -1
"""The member epoch with which it leaves."""
LEAVING_STATIC = -2
"""The member epoch with which a static member says that it will be back before its session ends."""

Partitions = Mapping[UUID, frozenset[int]]
"""Numbers of partitions by the id of their topic."""


class MemberState(IntEnum):
    """How far a member is on its way to the target assignment; the values are those in the log."""

    STABLE = 0
    UNREVOKED = 1
    """It has to give up partitions (or tasks) before it can go to the next epoch."""
    UNRELEASED = 2
    """It waits for partitions (or tasks) that others have not given up yet."""
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> MemberState:
        return cls(value) if value in (0, 1, 2) else cls.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernMember:
    """The fields that members of every type have. A changed member is a new object: ``dataclasses.replace``."""

    member_id: str
    epoch: int = 0
    previous_epoch: int = -1
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    """The names of the topics it subscribes to."""
    state: MemberState = MemberState.STABLE

    def is_reconciled_to(self, epoch: int) -> bool:
        return self.state is MemberState.STABLE and self.epoch == epoch


class _StoredPartitions(Protocol):
    topic_id: UUID
    partitions: Sequence[int]


def partitions_from(stored: Sequence[_StoredPartitions]) -> Partitions:
    """Partitions as a record lists them."""
    return {stored_partitions.topic_id: frozenset(stored_partitions.partitions) for stored_partitions in stored}
