"""The simple assignor of share groups (KIP-932): partitions are distributed evenly, and several members may share one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

from broker.groups.modern.assignors.spec import GroupSpec
from broker.groups.modern.member import Partitions

__all__ = ["assign_simply"]

Partition = tuple[UUID, int]


def assign_simply(spec: GroupSpec) -> dict[str, Partitions]:
    """Every partition gets as many members as needed to give each member at least one. Members keep what they have.

    If members subscribe to different topics, each topic is distributed separately among its subscribers.
    """
    topics_by_member = {member_id: member.topics for member_id, member in spec.members.items()}
    topics = sorted(set().union(*topics_by_member.values()))
    assigned: dict[str, set[Partition]] = {member_id: set() for member_id in spec.members}
    pools = [topics] if spec.homogeneous else [[topic_id] for topic_id in topics]
    for pool in pools:
        partitions = [(topic, number) for topic in pool for number in sorted(spec.assignable_partitions(topic))]
        members = [member_id for member_id in spec.members if not topics_by_member[member_id].isdisjoint(pool)]
        present = {
            member_id: [
                partition
                for partition in partitions
                if partition[1] in spec.members[member_id].assigned.get(partition[0], ())
            ]
            for member_id in members
        }
        for member_id, topic_partitions in _share_out(partitions, members, present).items():
            assigned[member_id] |= topic_partitions
    return {member_id: _by_topic(topic_partitions) for member_id, topic_partitions in assigned.items()}


def _by_topic(partitions: set[Partition]) -> Partitions:
    topics: dict[UUID, set[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, set()).add(number)
    return {topic: frozenset(numbers) for topic, numbers in topics.items()}


def _share_out(
    partitions: Sequence[Partition], members: Sequence[str], present: Mapping[str, Sequence[Partition]]
) -> dict[str, set[Partition]]:
    """The assignment of one pool of partitions. Members' numbers of partitions differ by one at most."""
    if not partitions or not members:
        return {}
    sharing = -(-len(members) // len(partitions))
    total = sharing * len(partitions)
    shares = {
        member_id: -(-total * (at + 1) // len(members)) + (-total * at // len(members))
        for at, member_id in enumerate(members)
    }
    owners: dict[Partition, set[str]] = {partition: set() for partition in partitions}
    partitions_by_member: dict[str, set[Partition]] = {}
    for member_id in members:
        partitions_by_member[member_id] = set()
        for topic_partition in present[member_id]:
            if len(partitions_by_member[member_id]) < shares[member_id] and len(owners[topic_partition]) < sharing:
                partitions_by_member[member_id].add(topic_partition)
                owners[topic_partition].add(member_id)
    _fill_up(owners, partitions_by_member, shares, sharing)
    return partitions_by_member


def _fill_up(
    owners: dict[Partition, set[str]],
    partitions_by_member: dict[str, set[Partition]],
    shares: Mapping[str, int],
    sharing: int,
) -> None:
    hungry = [
        member_id for member_id in partitions_by_member if len(partitions_by_member[member_id]) < shares[member_id]
    ]
    at = 0
    for partition, holders in owners.items():
        passed = 0
        while len(holders) < sharing and passed < len(hungry):
            at %= len(hungry)
            member_id = hungry[at]
            if member_id in holders:
                at, passed = at + 1, passed + 1
                continue
            holders.add(member_id)
            partitions_by_member[member_id].add(partition)
            if len(partitions_by_member[member_id]) == shares[member_id]:
                del hungry[at]
            else:
                at += 1
