"""Requests of consumer groups' members, and the answers: plain values, with no trace of the wire they came by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from broker.groups.modern.member import Partitions

__all__ = ["ConsumerHeartbeat", "DescribedConsumer", "DescribedConsumerGroup", "HeartbeatAnswer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeat:
    """ConsumerGroupHeartbeat; None (and -1 for the timeout) is what has not changed since the last one.

    ``epoch`` is 0 to join, -1 to leave, -2 for a static member that will be back.
    """

    group_id: str
    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout_ms: int = -1
    topics: frozenset[str] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Partitions | None = None
    client_id: str = ""
    client_host: str = ""
    may_describe: Callable[[str], bool] | None = None
    """Whether the client may see a topic that its regular expression matches; None for all."""

    @property
    def is_full(self) -> bool:
        """It says everything, as a member does that joins or is not sure of its assignment."""
        subscribed = self.topics is not None or self.regex is not None
        return self.rebalance_timeout_ms != -1 and subscribed and self.owned is not None


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """``assigned`` is None where the assignment has not changed."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Partitions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConsumer:
    """A member of a described consumer group; ``assigned`` includes what it has still to give up."""

    member_id: str
    instance_id: str | None
    rack_id: str | None
    epoch: int
    client_id: str
    client_host: str
    topics: frozenset[str]
    regex: str | None
    assigned: Partitions
    target: Partitions
    is_classic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConsumerGroup:
    """A consumer group as ConsumerGroupDescribe shows it. ``topic_names`` are those of the ids in its assignments."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[DescribedConsumer, ...]
    topic_names: Mapping[UUID, str]
