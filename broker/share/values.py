"""What goes in and out of share-partitions: plain values."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import NamedTuple, Protocol

__all__ = [
    "GAP",
    "RENEW",
    "AcknowledgeBatch",
    "Acquired",
    "BatchSpan",
    "ShareKey",
    "SharePersister",
    "ShareSettings",
    "StateBatch",
    "StoredState",
]

GAP = 0
"""The type of an acknowledgement that says that there is no record with this offset."""
RENEW = 4
"""The type of an acknowledgement that asks for more time."""


class ShareKey(NamedTuple):
    """A share-partition."""

    group_id: str
    topic_id: uuid.UUID
    partition: int


class BatchSpan(NamedTuple):
    """A batch of records in the log, by its offsets."""

    first: int
    last: int


class Acquired(NamedTuple):
    """Records that a fetch got, both ends included, and how often they have been delivered by now."""

    first: int
    last: int
    deliveries: int

    @property
    def size(self) -> int:
        return self.last - self.first + 1


class AcknowledgeBatch(NamedTuple):
    """``types`` has one type for all records, or one for each."""

    first: int
    last: int
    types: Sequence[int]


class StateBatch(NamedTuple):
    """Records of one state as they are written down; ordered as Kafka orders them."""

    first: int
    last: int
    deliveries: int
    state: int


class StoredState(NamedTuple):
    """What the coordinator knows of a share-partition. A start offset of -1 is still to be found."""

    start_offset: int
    state_epoch: int
    leader_epoch: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


class ShareSettings(NamedTuple):
    """What goes for a group's share-partitions now."""

    delivery_count_limit: int = 5
    max_record_locks: int = 2000
    record_lock_ms: int = 30_000
    read_committed: bool = False
    auto_offset_reset: str = "latest"
    renew_enabled: bool = True


class SharePersister(Protocol):
    """Where share-partitions write down what happened to records."""

    def read(self, key: ShareKey, leader_epoch: int) -> StoredState:
        """Raises InvalidRequest where there is no state, FencedLeaderEpoch, UnknownTopicOrPartition."""
        ...

    def write(self, key: ShareKey, state: StoredState) -> asyncio.Future[None]:
        """Done when the state is durable. ``batches`` are changes; the start offset -1 changes nothing.

        Fails with InvalidRequest where there is no state, FencedStateEpoch, FencedLeaderEpoch, UnknownTopicOrPartition.
        """
        ...
