"""The state of share-partitions in the share coordinator, as plain values."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import NamedTuple, Protocol

__all__ = ["ShareKey", "SharePersister", "StateBatch", "StoredState"]


class ShareKey(NamedTuple):
    """A share-partition."""

    group_id: str
    topic_id: uuid.UUID
    partition: int


class StateBatch(NamedTuple):
    """Records with one state, as stored, in Kafka's order."""

    first: int
    last: int
    deliveries: int
    state: int


class StoredState(NamedTuple):
    """The state of a share-partition. A start offset of -1 is not determined yet."""

    start_offset: int
    state_epoch: int
    leader_epoch: int
    delivery_complete_count: int
    batches: Sequence[StateBatch]


class SharePersister(Protocol):
    """Stores the delivery states of share-partitions' records."""

    def read(self, key: ShareKey, leader_epoch: int) -> StoredState:
        """Raises InvalidRequest if there is no state, FencedLeaderEpoch, UnknownTopicOrPartition."""
        ...

    def write(self, key: ShareKey, state: StoredState) -> asyncio.Future[None]:
        """Done when the state is durable. ``batches`` are changes; a start offset of -1 changes nothing.

        Fails with InvalidRequest if there is no state, FencedStateEpoch, FencedLeaderEpoch, UnknownTopicOrPartition.
        """
        ...
