"""A member of a group whose assignments the coordinator computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Protocol
from uuid import UUID

__all__ = ["JOINING", "LEAVING", "LEAVING_STATIC", "MemberState", "ModernMember", "Partitions", "partitions_from"]

JOINING = 0
"""The member epoch of a join, also after a member was fenced."""
LEAVING = -1
"""The member epoch of a leave."""
LEAVING_STATIC = -2
"""The member epoch of a static member that leaves and will be back before its session expires."""

Partitions = Mapping[UUID, frozenset[int]]
"""Partition numbers by topic id."""


class MemberState(IntEnum):
    """A member's progress towards the target assignment. The values are those in the log."""

    STABLE = 0
    UNREVOKED = 1
    """It has to release partitions (or tasks) before it can advance to the next epoch."""
    UNRELEASED = 2
    """It waits for partitions (or tasks) that others have not released yet."""
    UNKNOWN = 127

    @classmethod
    def of(cls, value: int) -> MemberState:
        return cls(value) if value in (0, 1, 2) else cls.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class ModernMember:
    """The fields of members of every type. Change a member with ``dataclasses.replace``, which makes a new object."""

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
    """The partitions listed in a record."""
    return {stored_partitions.topic_id: frozenset(stored_partitions.partitions) for stored_partitions in stored}
