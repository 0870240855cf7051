"""The uniform assignor: members differ by one partition at most, and keep what they have as far as possible."""

from __future__ import annotations

from uuid import UUID

from broker.groups.modern.assignors.mixed import MixedAssignment
from broker.groups.modern.assignors.spec import GroupSpec
from broker.groups.modern.member import Partitions

__all__ = ["assign_uniformly"]


def assign_uniformly(spec: GroupSpec) -> dict[str, Partitions]:
    if not spec.members:
        return {}
    return _assign_equal_subscriptions(spec) if spec.homogeneous else MixedAssignment(spec).build()


def _assign_equal_subscriptions(spec: GroupSpec) -> dict[str, Partitions]:
    """With equal subscriptions two passes suffice: one takes excess partitions, one assigns them, since any member can
    take any.
    """
    subscribed = next(iter(spec.members.values())).topics
    if not subscribed:
        return {}
    free = [
        (topic_id, partition)
        for topic_id, count in spec.partitions.items()
        if topic_id in subscribed
        for partition in range(count)
        if not spec.is_assigned(topic_id, partition)
    ]
    total = sum(count for topic_id, count in spec.partitions.items() if topic_id in subscribed)
    least, larger_shares = divmod(total, len(spec.members))
    assigned: dict[str, dict[UUID, set[int]]] = {}
    unfilled: list[tuple[str, int]] = []
    for index, (member_id, member) in enumerate(spec.members.items()):
        room = least + (larger_shares > 0)
        takes_larger = larger_shares > 0
        kept: dict[UUID, set[int]] = {}
        for topic_id, partitions in member.assigned.items():
            if topic_id not in subscribed:
                continue
            ordered = sorted(partitions)
            free += ((topic_id, partition) for partition in ordered[room:])
            if ordered[:room]:
                kept[topic_id] = set(ordered[:room])
            room -= len(ordered[:room])
        if room > 0 and takes_larger and len(spec.members) - index > larger_shares:
            # A later member may have a larger share already: leave the extra one to it, as long as there are enough.
            room -= 1
            takes_larger = False
        larger_shares -= takes_larger
        if room > 0:
            unfilled.append((member_id, room))
        assigned[member_id] = kept
    waiting = iter(free)
    for member_id, room in unfilled:
        for _, (topic_id, partition) in zip(range(room), waiting, strict=False):
            assigned[member_id].setdefault(topic_id, set()).add(partition)
    return _frozen(assigned)


def _frozen(assigned: dict[str, dict[UUID, set[int]]]) -> dict[str, Partitions]:
    return {
        member_id: {topic_id: frozenset(partitions) for topic_id, partitions in topics.items()}
        for member_id, topics in assigned.items()
    }
