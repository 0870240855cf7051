"""The share coordinator: stores the state of share-partitions in ``__share_group_state`` and reads it back (KIP-932)."""

from __future__ import annotations

import asyncio
import base64
import uuid
from collections.abc import Callable
from typing import NamedTuple

from broker.coordinator.clock import Clock, Timer
from broker.coordinator.futures import accepted, fail, succeed
from broker.coordinator.state_log import Entry, PrunableStateLog, partition_for
from broker.errors import (
    BrokerError,
    CoordinatorNotAvailable,
    CorruptMessage,
    FencedLeaderEpoch,
    FencedStateEpoch,
    InvalidRequest,
    NotCoordinator,
    UnknownTopicOrPartition,
)
from broker.share_coordinator.config import SHARE_STATE_TOPIC, ShareCoordinatorConfig
from broker.share_coordinator.records import (
    SNAPSHOT,
    UPDATE,
    Snapshot,
    Update,
    decode_key,
    decode_snapshot,
    decode_update,
    encode_snapshot,
    encode_update,
)
from broker.share_coordinator.state_batches import combined
from broker.share_coordinator.values import ShareKey, StoredState
from tidegate.kit.logs import get_logger

__all__ = ["ShareCoordinator", "coordinator_key", "read_coordinator_key"]

logger = get_logger(__name__)


def coordinator_key(key: ShareKey) -> str:
    """The key that FindCoordinator uses for a share-partition: group, topic id, partition."""
    topic = base64.urlsafe_b64encode(key.topic_id.bytes).rstrip(b"=").decode()
    return f"{key.group_id}:{topic}:{key.partition}"


def read_coordinator_key(text: str) -> ShareKey:
    """Parse the result of ``coordinator_key``. Raises InvalidRequest."""
    group_id, _, rest = text.strip().partition(":")
    topic, _, partition = rest.partition(":")
    try:
        if not group_id.strip() or not topic or ":" in partition:
            raise ValueError
        return ShareKey(group_id, uuid.UUID(bytes=base64.urlsafe_b64decode(topic + "==")), int(partition))
    except ValueError:
        raise InvalidRequest(f"{text!r} is no share-partition: GROUP:TOPIC_ID:PARTITION is.") from None


class _State(NamedTuple):
    """The state of one share-partition."""

    snapshot: Snapshot
    updates: int
    """Updates since the last snapshot."""


class ShareCoordinator:
    """The states of all share-partitions. Call it from one thread.

    Memory follows the log at once, as when the log is read at start. Futures are done when the change is durable.
    ``exists`` returns whether a topic id has a partition.
    """

    def __init__(
        self,
        log: PrunableStateLog,
        config: ShareCoordinatorConfig,
        clock: Clock,
        exists: Callable[[uuid.UUID, int], bool],
    ) -> None:
        self._log = log
        self._config = config
        self._clock = clock
        self._exists = exists
        self._states: dict[ShareKey, _State] = {}
        self._snapshot_at: dict[int, dict[ShareKey, int]] = {}
        """The offset of each share-partition's last snapshot, by partition of the log.

        Records before all of them are redundant.
        """
        self._timers: list[Timer] = []

    def start(self) -> None:
        """Read the log. An unreadable record is logged and skipped."""
        for partition in range(self._log.partitions):
            for offset, key, value in self._log.read(partition):
                try:
                    self._replay(partition, offset, key, value)
                except CorruptMessage as error:
                    logger.error(
                        "record cannot be read",
                        topic=SHARE_STATE_TOPIC,
                        partition=partition,
                        offset=offset,
                        error=str(error),
                    )
        self._repeat(self._config.share_prune_interval_ms, self.prune)
        self._repeat(self._config.share_cold_snapshot_interval_ms, self.snapshot_cold)

    def stop(self) -> None:
        for timer in self._timers:
            timer.cancel()

    def _repeat(self, interval_ms: int, do: Callable[[], None]) -> None:
        slot = len(self._timers)

        def again() -> None:
            try:
                do()
            except BrokerError as error:
                logger.warning("housekeeping failed", topic=SHARE_STATE_TOPIC, error=str(error))
            self._timers[slot] = self._clock.call_later(interval_ms, again)

        self._timers.append(self._clock.call_later(interval_ms, again))

    def __len__(self) -> int:
        return len(self._states)

    # Reading

    def read(self, key: ShareKey, leader_epoch: int) -> StoredState:
        """The state for the partition's leader, whose epoch is recorded (-1 for other readers)."""
        self._check(key)
        state = self._initialized(key, "Read")
        self._check_leader(state, leader_epoch)
        if leader_epoch not in (-1, state.leader_epoch):
            self._append(
                key, Update(state.snapshot_epoch, leader_epoch, state.start_offset, state.delivery_complete_count, ())
            )
        return self._stored(self._states[key].snapshot)

    def summary(self, key: ShareKey) -> StoredState:
        """The state without its batches. Without a state the start offset and epoch are -1."""
        self._check(key)
        state = self._states.get(key)
        if state is None:
            return StoredState(-1, -1, 0, 0, ())
        return self._stored(state.snapshot)._replace(batches=())

    @staticmethod
    def _stored(state: Snapshot) -> StoredState:
        return StoredState(
            state.start_offset, state.state_epoch, state.leader_epoch, state.delivery_complete_count, state.batches
        )

    # Writing

    def write(self, key: ShareKey, state: StoredState) -> asyncio.Future[None]:
        """Apply changes."""
        try:
            self._check_partition(key)
            known = self._initialized(key, "Write")
            self._check_leader(known, state.leader_epoch)
            if state.state_epoch != -1 and known.state_epoch > state.state_epoch:
                raise FencedStateEpoch(f"The state epoch of {key} is {known.state_epoch}, not {state.state_epoch}.")
            self._check(key)
        except BrokerError as error:
            return self._refused(error)
        batches = combined((), state.batches, state.start_offset)
        return self._append(
            key,
            Update(
                known.snapshot_epoch, known.leader_epoch, state.start_offset, state.delivery_complete_count, batches
            ),
        )

    def initialize(self, key: ShareKey, state_epoch: int, start_offset: int) -> asyncio.Future[None]:
        """Reset the state. -1 leaves the start offset to the first fetch."""
        try:
            self._check_partition(key)
            known = self._states.get(key)
            if known is not None and state_epoch != -1 and known.snapshot.state_epoch > state_epoch:
                raise FencedStateEpoch(f"The state epoch of {key} is {known.snapshot.state_epoch}, not {state_epoch}.")
            self._check(key)
        except BrokerError as error:
            return self._refused(error)
        now = self._clock.now_ms()
        epoch = 0 if known is None else known.snapshot.snapshot_epoch + 1
        complete = -1 if start_offset == -1 else 0
        return self._write(
            key, encode_snapshot(key, Snapshot(epoch, state_epoch, 0, start_offset, now, now, complete, ()))
        )

    def delete(self, key: ShareKey) -> asyncio.Future[None]:
        """Delete the state. Does nothing without a state."""
        try:
            self._check(key)
        except BrokerError as error:
            return self._refused(error)
        if key not in self._states:
            done: asyncio.Future[None] = self._clock.create_future()
            succeed(done, None)
            return done
        return self._write(key, encode_snapshot(key, None))

    def forget_topic(self, topic_id: uuid.UUID) -> None:
        """Drop the states of a deleted topic."""
        for key in [key for key in self._states if key.topic_id == topic_id]:
            self._write(key, encode_snapshot(key, None))

    def _append(self, key: ShareKey, update: Update) -> asyncio.Future[None]:
        """Write an update, or a snapshot after many updates."""
        known, updates = self._states[key]
        if updates < self._config.share_updates_per_snapshot:
            return self._write(key, encode_update(key, update))
        now = self._clock.now_ms()
        snapshot = _merged(known, update)._replace(
            snapshot_epoch=known.snapshot_epoch + 1, created_ms=now, written_ms=now
        )
        return self._write(key, encode_snapshot(key, snapshot))

    def _write(self, key: ShareKey, entry: Entry) -> asyncio.Future[None]:
        partition = self._partition_of(key)
        try:
            written = self._log.append(partition, [entry])
        except BrokerError as error:
            return self._refused(CoordinatorNotAvailable(f"{SHARE_STATE_TOPIC}: {error}"))
        if accepted(written):
            self._replay(partition, self._log.end_offset(partition) - 1, *entry)
        done: asyncio.Future[None] = self._clock.create_future()
        if written.done():
            _resolve(done, written)
        else:
            written.add_done_callback(lambda _: _resolve(done, written))
        return done

    def _refused(self, error: BrokerError) -> asyncio.Future[None]:
        future: asyncio.Future[None] = self._clock.create_future()
        fail(future, error)
        return future

    def _partition_of(self, key: ShareKey) -> int:
        return partition_for(coordinator_key(key), self._log.partitions)

    # Checks, in Kafka's order

    def _check_partition(self, key: ShareKey) -> None:
        if key.partition < 0:
            raise InvalidRequest("The partition id cannot be a negative number.")

    def _check(self, key: ShareKey) -> None:
        self._check_partition(key)
        if not self._exists(key.topic_id, key.partition):
            raise UnknownTopicOrPartition(
                f"There is no partition {key.partition} of a topic with the id {key.topic_id}."
            )

    def _initialized(self, key: ShareKey, operation: str) -> Snapshot:
        state = self._states.get(key)
        if state is None:
            raise InvalidRequest(f"{operation} operation on uninitialized share partition not allowed.")
        return state.snapshot

    def _check_leader(self, state: Snapshot, leader_epoch: int) -> None:
        if leader_epoch != -1 and state.leader_epoch > leader_epoch:
            raise FencedLeaderEpoch(f"The leader epoch is {state.leader_epoch} by now, not {leader_epoch}.")

    # Memory

    def _replay(self, partition: int, offset: int, key_data: bytes | None, value: bytes | None) -> None:
        kind, key = decode_key(key_data or b"")
        at = self._snapshot_at.setdefault(partition, {})
        if kind == SNAPSHOT and value is None:
            self._states.pop(key, None)
            at.pop(key, None)
        elif kind == SNAPSHOT and value is not None:
            self._states[key] = _State(decode_snapshot(value), 0)
            at[key] = offset
        elif kind == UPDATE and value is not None:
            update = decode_update(value)
            known = self._states.get(key)
            if known is None:
                first = Snapshot(update.snapshot_epoch, 0, *update[1:3], 0, 0, *update[3:])
                self._states[key] = _State(first, 1)
                at.setdefault(key, offset)
            else:
                self._states[key] = _State(_merged(known.snapshot, update), known.updates + 1)

    # Housekeeping

    def prune(self) -> None:
        """Delete records before the oldest of the share-partitions' last snapshots."""
        for partition, offsets in self._snapshot_at.items():
            redundant = min(offsets.values(), default=self._log.end_offset(partition))
            if redundant > 0:
                self._log.delete_before(partition, redundant)

    def snapshot_cold(self) -> None:
        """Write snapshots of states that were not written for long, so that earlier records can be deleted."""
        now = self._clock.now_ms()
        oldest = now - self._config.share_cold_snapshot_interval_ms
        if all(state.snapshot.created_ms != state.snapshot.written_ms for state in self._states.values()):
            return
        for key, (snapshot, _) in list(self._states.items()):
            if snapshot.written_ms <= oldest:
                fresh = snapshot._replace(snapshot_epoch=snapshot.snapshot_epoch + 1, written_ms=now)
                self._write(key, encode_snapshot(key, fresh))


def _resolve(done: asyncio.Future[None], written: asyncio.Future[None]) -> None:
    if written.cancelled():
        fail(done, NotCoordinator("The broker stopped before the state was on disk."))
    elif (error := written.exception()) is not None:
        fail(done, CoordinatorNotAvailable(f"{SHARE_STATE_TOPIC}: {error}"))
    else:
        succeed(done, None)


def _merged(known: Snapshot, update: Update) -> Snapshot:
    start = known.start_offset if update.start_offset == -1 else update.start_offset
    return known._replace(
        leader_epoch=known.leader_epoch if update.leader_epoch == -1 else update.leader_epoch,
        start_offset=start,
        delivery_complete_count=update.delivery_complete_count,
        batches=combined(known.batches, update.batches, start),
    )
