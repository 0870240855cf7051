"""The uniform assignor for different subscriptions: topic by topic, it moves partitions from the most to the least
loaded.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from broker.groups.modern.assignors.balancer import Balancer
from broker.groups.modern.assignors.spec import GroupSpec
from broker.groups.modern.member import Partitions

__all__ = ["MixedAssignment"]

_MOST_ROUNDS: Final = 16
"""Each round about halves the imbalance.

The limit is for subscriptions that overlap in chains, which could take long.
"""
_NOBODY: Final = -1


class MixedAssignment:
    """One assignment. Members are numbered in the order of the spec."""

    def __init__(self, spec: GroupSpec) -> None:
        self._spec = spec
        self._ids = list(spec.members)
        self._sizes = [0] * len(self._ids)
        self._subscribers: dict[UUID, list[int]] = {}
        for index, member in enumerate(spec.members.values()):
            for topic_id in member.topics:
                self._subscribers.setdefault(topic_id, []).append(index)
        self._owners = {topic_id: [_NOBODY] * spec.partitions[topic_id] for topic_id in self._subscribers}

    def build(self) -> dict[str, Partitions]:
        self._keep()
        order = sorted(self._subscribers, key=self._urgency)
        for topic_id in order:
            self._assign_free(topic_id)
        self._balance([topic_id for topic_id in order if len(self._subscribers[topic_id]) > 1])
        made: dict[str, dict[UUID, set[int]]] = {member_id: {} for member_id in self._ids}
        for topic_id, owners in self._owners.items():
            for partition, owner in enumerate(owners):
                if owner != _NOBODY:
                    made[self._ids[owner]].setdefault(topic_id, set()).add(partition)
        return {
            member_id: {topic_id: frozenset(partitions) for topic_id, partitions in topics.items()}
            for member_id, topics in made.items()
        }

    def _urgency(self, topic_id: UUID) -> tuple[float, int, int, int]:
        """Topics with many partitions per subscriber come first: little of them can be moved once they are assigned."""
        count = len(self._subscribers[topic_id])
        high, low = topic_id.int >> 64, topic_id.int & (1 << 64) - 1
        return -self._spec.partitions[topic_id] / count, count, _signed(high), _signed(low)

    def _keep(self) -> None:
        for index, member in enumerate(self._spec.members.values()):
            for topic_id, partitions in member.assigned.items():
                if topic_id not in member.topics:
                    continue
                for partition in partitions:
                    if partition < len(self._owners[topic_id]):
                        self._owners[topic_id][partition] = index
                        self._sizes[index] += 1

    def _assign_free(self, topic_id: UUID) -> None:
        free = [partition for partition, owner in enumerate(self._owners[topic_id]) if owner == _NOBODY]
        if not free:
            return
        balancer = Balancer(self._sizes, self._subscribers[topic_id])
        for partition in free:
            self._move(topic_id, partition, balancer.next_least())

    def _move(self, topic_id: UUID, partition: int, to: int) -> None:
        owner = self._owners[topic_id][partition]
        if owner != _NOBODY:
            self._sizes[owner] -= 1
        self._owners[topic_id][partition] = to
        self._sizes[to] += 1

    def _balance(self, order: list[UUID]) -> None:
        """Iterate over the topics until a whole round has moved nothing."""
        last_moved: UUID | None = None
        for _ in range(_MOST_ROUNDS):
            for topic_id in order:
                if topic_id == last_moved:
                    return
                if self._balance_topic(topic_id) or last_moved is None:
                    last_moved = topic_id

    def _balance_topic(self, topic_id: UUID) -> bool:
        """Move partitions from the most to the least loaded until they differ by one. Returns whether any moved."""
        balancer = Balancer(self._sizes, self._subscribers[topic_id])
        if balancer.imbalance <= 1:
            return False
        has: dict[int, list[int]] = {}
        for partition, owner in enumerate(self._owners[topic_id]):
            has.setdefault(owner, []).append(partition)
        moved = False
        while not balancer.balanced:
            most = balancer.next_most()
            while most is not None and not has.get(most):
                balancer.exclude_most()
                most = balancer.next_most()
            if most is None:
                break
            partition = has[most].pop()
            least = balancer.next_least()
            if balancer.balanced:
                break
            self._move(topic_id, partition, least)
            moved = True
        return moved


def _signed(value: int) -> int:
    """The value as a signed long, as Java compares the halves of a UUID."""
    return value - (1 << 64) if value >> 63 else value
