"""Requests of consumer groups' members, and the answers, as plain values independent of the wire format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from broker.groups.modern.member import Partitions

__all__ = ["ConsumerHeartbeat", "DescribedConsumer", "DescribedConsumerGroup", "HeartbeatAnswer"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeat:
    """ConsumerGroupHeartbeat; None (and -1 for the timeout) means unchanged since the last one.

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
    """Whether the client may see a topic that its regular expression matches; None permits all."""

    @property
    def is_full(self) -> bool:
        """Whether it contains everything, as when a member joins or is not sure of its assignment."""
        subscribed = self.topics is not None or self.regex is not None
        return self.rebalance_timeout_ms != -1 and subscribed and self.owned is not None


@dataclass(frozen=True, slots=True)
class HeartbeatAnswer:
    """The answer. ``assigned`` is None if the assignment has not changed."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Partitions | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConsumer:
    """A member of a described consumer group. ``assigned`` includes partitions it still has to release."""

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
    """A consumer group as ConsumerGroupDescribe shows it. ``topic_names`` maps the topic ids of its assignments."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    assignor: str
    members: tuple[DescribedConsumer, ...]
    topic_names: Mapping[UUID, str]
