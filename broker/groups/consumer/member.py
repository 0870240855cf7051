"""A member of a consumer group, of either protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from broker.groups.modern.member import ModernMember, Partitions

__all__ = ["NOTHING", "ClassicMember", "ConsumerMember", "Epochs", "partitions_of", "with_epoch"]

Epochs = Mapping[UUID, Mapping[int, int]]
"""Partitions by topic id, each with the epoch in which it was assigned."""

NOTHING: Epochs = {}


class ClassicMember(NamedTuple):
    """The timeout and protocols of a member of the classic protocol: its assignors, preferred first, with their
    metadata.
    """

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerMember(ModernMember):
    """A member. ``regex`` is the regular expression it subscribes to; empty or None for none."""

    rebalance_timeout_ms: int = -1
    regex: str | None = ""
    assignor: str | None = None
    assigned: Epochs = field(default_factory=dict)
    revoking: Epochs = field(default_factory=dict)
    """Partitions it still has to release; no other member gets them before."""
    classic: ClassicMember | None = None

    def assignment_epoch(self, topic_id: UUID, partition: int) -> int | None:
        """The epoch in which it was assigned a partition that it has or has not released yet."""
        for epochs in (self.assigned, self.revoking):
            epoch = epochs.get(topic_id, {}).get(partition)
            if epoch is not None:
                return epoch
        return None


def partitions_of(epochs: Epochs) -> Partitions:
    return {topic_id: frozenset(partitions) for topic_id, partitions in epochs.items() if partitions}


def with_epoch(partitions: Partitions, epoch: int) -> Epochs:
    return {topic_id: dict.fromkeys(sorted(numbers), epoch) for topic_id, numbers in partitions.items() if numbers}
