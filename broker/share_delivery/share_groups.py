"""The open share-partitions of this broker: opens them, acknowledges in them, and closes them when a group has no
members here.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence

from broker.coordinator.clock import Clock
from broker.coordinator.futures import when_done
from broker.errors import (
    BrokerError,
    FencedStateEpoch,
    GroupIdNotFound,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
)
from broker.log.partition import PartitionLog
from broker.share_coordinator.coordinator import ShareCoordinator
from broker.share_coordinator.values import ShareKey
from broker.share_delivery.acknowledging import acknowledge, release
from broker.share_delivery.offset_reset import offset_for
from broker.share_delivery.partition import SharePartition
from broker.share_delivery.sessions import ShareSessions
from broker.share_delivery.values import AcknowledgeBatch, ShareSettings
from broker.storage.arrivals import Arrivals
from broker.storage.partitions import LEADER_EPOCH, Partitions

__all__ = ["OpenShare", "ShareGroups"]

_FENCES = (NotLeaderOrFollower, FencedStateEpoch, GroupIdNotFound, UnknownTopicOrPartition)
"""Errors after which a share-partition has to be reopened."""

Partition = tuple[uuid.UUID, int]


class OpenShare:
    """A share-partition, its log, and the fetches that wait for it."""

    __slots__ = ("log", "share", "waiting")

    def __init__(self, share: SharePartition, log: PartitionLog) -> None:
        self.share = share
        self.log = log
        self.waiting: dict[Callable[[], None], None] = {}

    def changed(self) -> None:
        for look in list(self.waiting):
            look()


class ShareGroups:
    """Called from one thread. ``settings`` returns a group's configuration."""

    def __init__(
        self,
        coordinator: ShareCoordinator,
        partitions: Partitions,
        arrivals: Arrivals,
        clock: Clock,
        settings: Callable[[str], ShareSettings],
        most_sessions: int,
    ) -> None:
        self.coordinator = coordinator
        self.partitions = partitions
        self.arrivals = arrivals
        self.settings = settings
        self.sessions = ShareSessions(most_sessions)
        self._clock = clock
        self._open: dict[ShareKey, OpenShare] = {}

    def __len__(self) -> int:
        return len(self._open)

    def open(self, key: ShareKey) -> OpenShare:
        """The share-partition, with its state read back if it was not open. Raises the errors of opening it."""
        known = self._open.get(key)
        log = self.partitions.find(key.topic_id, key.partition)
        if known is not None and known.log is log:
            return known
        share = SharePartition(
            key,
            leader_epoch=LEADER_EPOCH,
            settings=lambda: self.settings(key.group_id),
            persister=self.coordinator,
            clock=self._clock,
            changed=lambda: opened.changed(),  # noqa: PLW0108 - made below
        )
        opened = OpenShare(share, log)
        share.open(lambda reset: offset_for(log, reset, self._clock.now_ms()))
        self._open[key] = opened
        return opened

    # Requests of members

    def acknowledge(
        self, group_id: str, member_id: str, batches: Mapping[Partition, Sequence[AcknowledgeBatch]]
    ) -> dict[Partition, asyncio.Future[None]]:
        """A future per partition. It fails with UnknownTopicOrPartition if no member has fetched from it here."""
        return {
            (topic_id, partition): self._acknowledge(ShareKey(group_id, topic_id, partition), member_id, batch)
            for (topic_id, partition), batch in batches.items()
        }

    def _acknowledge(self, key: ShareKey, member_id: str, batches: Sequence[AcknowledgeBatch]) -> asyncio.Future[None]:
        opened = self._open.get(key)
        if opened is None:
            future: asyncio.Future[None] = self._clock.create_future()
            future.set_exception(UnknownTopicOrPartition(f"Group {key.group_id} has not fetched from this partition."))
            future.exception()
            return future
        future = acknowledge(opened.share, member_id, batches)
        self._watch(key, future)
        return future

    def end_session(self, group_id: str, member_id: str) -> None:
        """Release a member's records: its session ends. Does nothing without a session."""
        session = self.sessions.end(group_id, member_id)
        if session is None:
            return
        for topic_id, partition in session.partitions:
            key = ShareKey(group_id, topic_id, partition)
            opened = self._open.get(key)
            if opened is not None:
                self._watch(key, release(opened.share, member_id))
                opened.changed()
        if not self.sessions.members(group_id):
            self.close(lambda key: key.group_id == group_id)

    def disconnected(self, connection: object) -> None:
        """End the session that was begun on a closed connection."""
        session = self.sessions.on_connection(connection)
        if session is not None:
            self.end_session(session.group_id, session.member_id)

    def _watch(self, key: ShareKey, future: asyncio.Future[None]) -> None:
        def look(error: BrokerError | None) -> None:
            if isinstance(error, _FENCES):
                self.close(lambda share_key: share_key == key)

        when_done(future, look)

    # Requests of the group coordinator

    def initialize_partition(
        self, group_id: str, topic_id: uuid.UUID, partition: int, *, epoch: int, start_offset: int
    ) -> asyncio.Future[None]:
        """Reset the state of a share-partition."""
        key = ShareKey(group_id, topic_id, partition)
        self.close(lambda share_key: share_key == key)
        return self.coordinator.initialize(key, epoch, start_offset)

    def delete_partition(self, group_id: str, topic_id: uuid.UUID, partition: int) -> asyncio.Future[None]:
        """Delete the state of a share-partition."""
        key = ShareKey(group_id, topic_id, partition)
        self.close(lambda share_key: share_key == key)
        return self.coordinator.delete(key)

    # Changes of topics and groups

    def close(self, which: Callable[[ShareKey], bool]) -> None:
        """Close share-partitions. They are read back when a member fetches from them."""
        for key in [key for key in self._open if which(key)]:
            self._open.pop(key).share.fence()

    def forget_topic(self, topic_id: uuid.UUID) -> None:
        """A topic was deleted."""
        self.close(lambda key: key.topic_id == topic_id)
        self.coordinator.forget_topic(topic_id)
