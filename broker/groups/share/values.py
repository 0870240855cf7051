"""Requests of share groups' members, and the answers: plain values."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol
from uuid import UUID

from broker.groups.modern.member import Partitions

__all__ = [
    "DescribedShareGroup",
    "DescribedShareMember",
    "ShareAnswer",
    "ShareHeartbeat",
    "ShareState",
    "TopicState",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareHeartbeat:
    """ShareGroupHeartbeat. None means unchanged since the last one. ``epoch`` is 0 to join, -1 to leave."""

    group_id: str
    member_id: str
    epoch: int
    rack_id: str | None = None
    topics: frozenset[str] | None = None
    client_id: str = ""
    client_host: str = ""


class ShareAnswer(NamedTuple):
    """The answer. ``assigned`` is None if the assignment has not changed."""

    member_id: str
    epoch: int
    heartbeat_interval_ms: int = 0
    assigned: Partitions | None = None


class TopicState(NamedTuple):
    """Partitions of a topic for which a group has, or is creating, state, and since when."""

    name: str
    partitions: frozenset[int]
    at_ms: int


class ShareState(Protocol):
    """The store of share-partition state (the share coordinator). Futures fail with BrokerError."""

    def initialize_partition(
        self, group_id: str, topic_id: UUID, partition: int, *, epoch: int, start_offset: int
    ) -> asyncio.Future[None]: ...

    def delete_partition(self, group_id: str, topic_id: UUID, partition: int) -> asyncio.Future[None]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedShareMember:
    member_id: str
    rack_id: str | None
    epoch: int
    client_id: str
    client_host: str
    topics: frozenset[str]
    assigned: Partitions


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedShareGroup:
    """A share group as ShareGroupDescribe shows it. ``topic_names`` maps the topic ids of its assignments."""

    group_id: str
    state: str
    epoch: int
    assignment_epoch: int
    members: tuple[DescribedShareMember, ...]
    topic_names: Mapping[UUID, str]
