"""Computes a group's target assignment with an assignor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar
from uuid import UUID

from broker.groups.modern.assignors.spec import Assignor, GroupSpec, MemberSpec
from broker.groups.modern.group import NO_PARTITIONS, PartitionGroup
from broker.groups.modern.member import ModernMember, Partitions
from broker.groups.modern.topics import TopicCatalog

__all__ = ["may_assign", "target_assignment"]

M = TypeVar("M", bound=ModernMember)


def may_assign(assigned_at_ms: int, interval_ms: int, now_ms: int) -> bool:
    """Whether the next target assignment may be computed yet: at most one per ``*.assignment.interval.ms``."""
    return assigned_at_ms == 0 or interval_ms == 0 or now_ms >= assigned_at_ms + interval_ms


def target_assignment(
    group: PartitionGroup[M],
    subscriptions: Mapping[str, frozenset[str]],
    members: Mapping[str, M],
    assignor: Assignor,
    topics: TopicCatalog,
    *,
    homogeneous: bool | None = None,
    replaced: Mapping[str, str] | None = None,
    assignable: Mapping[UUID, frozenset[int]] | None = None,
) -> dict[str, Partitions]:
    """The new target assignment of ``members``, which are the group's members after the current change.

    ``subscriptions`` are the topic names of each member; ``homogeneous`` overrides whether they count as equal.
    ``replaced`` maps the id of a member that replaces a static member to the old member's id: it inherits the
    assignment.
    """
    by_name = {name: topics.by_name(name) for name in frozenset().union(*subscriptions.values())}
    result = {topic.name: topic for topic in by_name.values() if topic is not None}
    topics_by_member = {
        member_id: frozenset(result[name].id for name in names if name in result)
        for member_id, names in subscriptions.items()
    }
    before = replaced or {}
    spec = GroupSpec(
        members={
            member_id: MemberSpec(
                topics_by_member[member_id],
                group.target.get(before.get(member_id, member_id), NO_PARTITIONS),
                member.instance_id,
                member.rack_id,
            )
            for member_id, member in members.items()
        },
        homogeneous=len(set(subscriptions.values())) <= 1 if homogeneous is None else homogeneous,
        partitions={topic.id: topic.partitions for topic in result.values()},
        owners=group.owners,
        assignable=assignable,
    )
    assigned = assignor(spec)
    return {member_id: assigned.get(member_id, NO_PARTITIONS) for member_id in members}
