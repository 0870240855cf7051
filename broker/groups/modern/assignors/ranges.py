"""The range assignor: every subscriber gets a range of consecutive partitions of each topic.

Members are ordered by instance id; those without one follow, ordered by member id. So a member gets the same partition
numbers of all topics, which joins of topics rely on.
"""

from __future__ import annotations

from uuid import UUID

from broker.groups.modern.assignors.spec import GroupSpec, MemberSpec
from broker.groups.modern.member import Partitions

__all__ = ["assign_ranges"]


def assign_ranges(spec: GroupSpec) -> dict[str, Partitions]:
    """If a topic's partitions can't be divided evenly, earlier members get one more."""
    ordered = sorted(spec.members.items(), key=_order)
    left: dict[UUID, int] = {}
    for _, member in ordered:
        for topic_id in member.topics:
            left[topic_id] = left.get(topic_id, 0) + 1
    begins = dict.fromkeys(left, 0)
    assigned: dict[str, Partitions] = {}
    for member_id, member in ordered:
        runs: dict[UUID, frozenset[int]] = {}
        for topic_id in member.topics:
            begin = begins[topic_id]
            # The rest divided by the remaining members, rounded up: as even as possible from here on.
            end = begin - (begin - spec.partitions[topic_id]) // left[topic_id]
            left[topic_id] -= 1
            begins[topic_id] = end
            if begin < end:
                runs[topic_id] = frozenset(range(begin, end))
        assigned[member_id] = runs
    return assigned


def _order(item: tuple[str, MemberSpec]) -> tuple[bool, str]:
    member_id, member = item
    return (True, member_id) if member.instance_id is None else (False, member.instance_id)
