"""The input and the result of all assignors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from uuid import UUID

from broker.groups.modern.member import Partitions

__all__ = ["Assignor", "GroupSpec", "MemberSpec"]


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member: the ids of the existing topics it subscribes to, and its target assignment so far."""

    topics: frozenset[UUID]
    assigned: Partitions
    instance_id: str | None = None
    rack_id: str | None = None


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group.

    ``homogeneous`` means that all members subscribe to the same topics. ``partitions`` has the number of partitions of
    each topic. ``assignable``, if set, limits which of them may be assigned (share groups). ``owners`` is the target
    assignment so far, by partition.
    """

    members: Mapping[str, MemberSpec]
    homogeneous: bool
    partitions: Mapping[UUID, int]
    owners: Mapping[UUID, Mapping[int, str]] = field(default_factory=dict)
    assignable: Mapping[UUID, frozenset[int]] | None = None

    def assignable_partitions(self, topic_id: UUID) -> frozenset[int]:
        """The partitions of a topic that may be assigned; none if the topic does not exist."""
        if self.assignable is not None:
            return self.assignable.get(topic_id, frozenset())
        return frozenset(range(self.partitions.get(topic_id, 0)))

    def is_assigned(self, topic_id: UUID, partition: int) -> bool:
        return partition in self.owners.get(topic_id, {})


Assignor = Callable[[GroupSpec], dict[str, Partitions]]
"""Assigns partitions to every member. Pure: the same spec gives the same assignment, in the spec's order of members."""
