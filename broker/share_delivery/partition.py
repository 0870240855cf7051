"""A share-partition: the window of records in flight in one group, from its start to its end offset."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from enum import Enum

from broker.coordinator.clock import Clock, Timer
from broker.coordinator.futures import fail, succeed, when_done
from broker.errors import (
    BrokerError,
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    FencedLeaderEpoch,
    FencedStateEpoch,
    GroupIdNotFound,
    LeaderNotAvailable,
    NotCoordinator,
    NotLeaderOrFollower,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from broker.share_coordinator.values import (
    ShareKey,
    SharePersister,
    StateBatch,
    StoredState,
)
from broker.share_delivery.delivery import NOBODY, Delivery, InFlight, InFlightBatch, RecordState
from broker.share_delivery.values import ShareSettings
from tidegate.kit.logs import get_logger

__all__ = ["Change", "SharePartition"]

logger = get_logger(__name__)

_SWEEP_MS = 10
"""Locks that expire within this time of each other are released together."""

Change = tuple[Delivery, StateBatch]
"""A changed state, and its stored form."""


class _Activity(Enum):
    EMPTY = 0
    ACTIVE = 1
    FENCED = 2


class SharePartition:
    """Used on one event loop. ``broker.share_delivery.acquiring`` and ``acknowledging`` carry out members' requests.

    ``changed`` is called when records, or room for more, may have become available. Invariants: (1) batches in flight
    do not overlap, and none ends before the start offset, though the first may begin there; (2) an acquired record has
    a member and a lock; (3) the start offset never goes back; (4) below it everything is done.
    """

    def __init__(
        self,
        key: ShareKey,
        *,
        leader_epoch: int,
        settings: Callable[[], ShareSettings],
        persister: SharePersister,
        clock: Clock,
        changed: Callable[[], None],
    ) -> None:
        self.key = key
        self.leader_epoch = leader_epoch
        self.clock = clock
        self.in_flight = InFlight()
        self.start_offset = 0
        self.end_offset = 0
        """The last offset in flight; if none is, the next offset to fetch."""
        self.some_available = False
        """Whether records in flight may be available, so that the next fetch offset has to be searched."""
        self.complete = 0
        """How many records from the start offset on are done."""
        self._settings = settings
        self._persister = persister
        self._changed = changed
        self._activity = _Activity.EMPTY
        self._state_epoch = 0
        self._gap: tuple[int, int] | None = None
        """Where the restored state may lack offsets: from this offset on, and its end offset at that time."""
        self._timer: Timer | None = None
        self._timer_at = 0

    @property
    def settings(self) -> ShareSettings:
        return self._settings()

    @property
    def is_active(self) -> bool:
        return self._activity is _Activity.ACTIVE

    # Opening and fencing

    def open(self, find_start: Callable[[str], int]) -> None:
        """Read the state back. ``find_start`` returns the offset for a ``share.auto.offset.reset`` if there is no start
        offset yet.

        Does nothing if it is open. Raises the errors of ``SharePersister.read``, and LeaderNotAvailable after
        ``fence``.
        """
        if self._activity is _Activity.ACTIVE:
            return
        if self._activity is _Activity.FENCED:
            raise LeaderNotAvailable(f"The share-partition {self} is fenced.")
        try:
            stored = self._persister.read(self.key, self.leader_epoch)
        except BrokerError as error:
            raise _member_error(error) from error
        start = stored.start_offset
        self.start_offset = start if start != -1 else find_start(self.settings.auto_offset_reset)
        self._state_epoch = stored.state_epoch
        self._restore(stored.batches)
        self._activity = _Activity.ACTIVE

    def _restore(self, batches: Sequence[StateBatch]) -> None:
        gap, expected = None, self.start_offset
        for batch in batches:
            if batch.first < self.start_offset:
                raise UnknownServerError(
                    f"The state of {self} has records from {batch.first} on, before its start offset {self.start_offset}."
                )
            if gap is None and batch.first > expected:
                gap = expected
            expected = batch.last + 1
            state = RecordState(batch.state)
            self.in_flight.add(InFlightBatch(batch.first, batch.last, Delivery(state, batch.deliveries, NOBODY)))
            if state.is_final:
                self.complete += batch.last - batch.first + 1
        self.end_offset = self.start_offset
        if len(self.in_flight):
            self.some_available = True
            self.end_offset = self.in_flight[-1].last
            self._gap = None if gap is None else (gap, self.end_offset)
            self.move_start()

    def fence(self) -> None:
        """Stop all activity: the state was changed or deleted elsewhere."""
        self._activity = _Activity.FENCED
        if self._timer is not None:
            self._timer.cancel()
        self._changed()

    def __str__(self) -> str:
        return f"{self.key.group_id}:{self.key.topic_id}-{self.key.partition}"

    # The window

    @property
    def records_in_flight(self) -> int:
        return self.end_offset - self.start_offset + 1 if len(self.in_flight) else 0

    @property
    def can_acquire(self) -> bool:
        return (
            self.next_fetch_offset() != self.end_offset + 1 or self.records_in_flight < self.settings.max_record_locks
        )

    def next_fetch_offset(self) -> int:
        """The first available offset, or the first one after the window."""
        if not len(self.in_flight) or self.start_offset > self.in_flight[-1].last:
            self.some_available = False
            return self.end_offset
        if self.some_available:
            result = self._first_available()
            if result is not None:
                return result
            self.some_available = False
        return self.end_offset + 1

    def _first_available(self) -> int | None:
        gap = self.gap_start
        for batch in self.in_flight:
            if gap is not None:
                if batch.first > gap:
                    return gap
                gap = max(batch.last + 1, gap)
            for first, last, delivery in batch.runs():
                if delivery.is_available and last >= self.start_offset:
                    return max(first, self.start_offset)
        return None

    @property
    def gap_start(self) -> int | None:
        """Where offsets may be missing in the window, because the restored state lacked them."""
        return self._gap[0] if self._gap is not None and self._gap[1] == self.end_offset else None

    def fetched_up_to(self, offset: int) -> None:
        """Mark offsets below this one as not missing."""
        if self._gap is None:
            return
        missing, end = self._gap
        missing = max(missing, offset)
        for batch in self.in_flight:
            if batch.first <= missing <= batch.last:
                missing = batch.last + 1
        self._gap = (missing, end) if end == self.end_offset and missing <= end else None

    def in_window(self, first: int, last: int) -> int:
        """How many of these offsets are at or after the start."""
        return max(last - max(self.start_offset, first) + 1, 0)

    def has_start_within(self, batch: InFlightBatch) -> bool:
        return batch.first < self.start_offset <= batch.last

    def move_start(self) -> bool:
        """Advance the start past the first records that are done. Returns whether it moved.

        Offsets before a batch that are not in flight are not in the log, unless they are missing (``gap_start``).
        """
        start, done = self._first_not_done()
        if start == self.start_offset:
            return False
        self.complete -= done
        self.start_offset = start
        self._drop_below_start()
        return True

    def _first_not_done(self) -> tuple[int, int]:
        """Where the start can advance to, and how many records below that are counted in ``complete``."""
        at, count, gap = self.start_offset, 0, self.gap_start
        for batch in self.in_flight:
            if batch.first > at:
                if gap is not None and gap < batch.first:
                    return max(at, gap), count
                at = batch.first
            for first, last, delivery in batch.runs():
                if last < at:
                    continue
                if delivery.is_changing or not delivery.state.is_final:
                    return at, count
                count += last - max(at, first) + 1
                at = last + 1
        return at, count

    def _drop_below_start(self) -> None:
        kept = next((batch.first for batch in self.in_flight if batch.last >= self.start_offset), None)
        if kept is not None:
            self.in_flight.drop_before(kept)
            return
        self.in_flight.clear()
        self.end_offset = self.start_offset
        self._gap = None

    def make_room(self) -> None:
        """Advance the start past archived records that no member will acknowledge."""
        if self.move_start():
            self._changed()

    # Log start and missing records

    def log_starts_at(self, offset: int) -> None:
        """Remove records below the log's start from the window, acquired or not. Does nothing if the start is ahead."""
        if offset <= self.start_offset:
            return
        self.complete -= sum(
            self.in_window(first, min(last, offset - 1))
            for batch in self.in_flight
            for first, last, delivery in batch.runs()
            if delivery.state.is_final
        )
        self.start_offset = offset
        self._drop_below_start()
        self.fetched_up_to(offset)
        self.move_start()
        self._changed()

    def archive(self, first: int, last: int, state: RecordState, batches: Sequence[InFlightBatch]) -> bool:
        """Archive records in the given state. Returns whether there were any."""
        some = False
        for batch in batches:
            if batch.first > last:
                break
            for edge in (first, last + 1):
                batch.divide_at(edge)  # not while a change is in progress for both sides: the rest is found again
            for begin, end, delivery in batch.runs():
                if first <= begin and end <= last and delivery.state is state:
                    delivery.archive()
                    self.complete += self.in_window(begin, end)
                    some = True
        return some

    # Locks

    def lock_until(self) -> int:
        """When a lock taken now expires."""
        until = self.clock.now_ms() + self.settings.record_lock_ms
        if self._timer is None or until < self._timer_at:
            self._wake_at(until)
        return until

    def _wake_at(self, at_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = at_ms
        self._timer = self.clock.call_later(max(at_ms - self.clock.now_ms(), 0), self._sweep)

    def _sweep(self) -> None:
        """Release records whose locks have expired."""
        self._timer = None
        if not self.is_active:
            return
        self._release_expired(self.clock.now_ms() + _SWEEP_MS)
        ends = [
            delivery.locked_until_ms
            for batch in self.in_flight
            for delivery in batch.deliveries()
            if delivery.locked_until_ms is not None and not delivery.is_changing
        ]
        if ends and self._timer is None:
            self._wake_at(min(ends))

    def _release_expired(self, now_ms: int) -> None:
        limit = self.settings.delivery_count_limit
        released: list[StateBatch] = []
        for batch in self.in_flight:
            if self.has_start_within(batch):
                batch.divide_at(self.start_offset)
            for first, last, delivery in batch.runs():
                if not _is_over(delivery, now_ms):
                    continue
                to = RecordState.ARCHIVED if last < self.start_offset else RecordState.AVAILABLE
                delivery.leave(to, limit)
                delivery.locked_until_ms = None
                released.append(StateBatch(first, last, delivery.count, delivery.state))
                if delivery.state.is_final:
                    self.complete += self.in_window(first, last)
                else:
                    self.some_available = True
        if released:
            when_done(self._write(released), self._after_release)

    def _after_release(self, error: BrokerError | None) -> None:
        if error is not None:
            logger.warning(
                "records released by time could not be written down", share_partition=str(self), error=str(error)
            )
        self.move_start()
        self._changed()

    # Writing

    def finish(self, changes: Sequence[Change], error: BrokerError | None, future: asyncio.Future[None]) -> None:
        """Write begun changes, then make them effective; or undo them if there was an ``error``."""
        if error is not None:
            self._undo(changes)
            fail(future, error)
        elif not changes:
            succeed(future, None)
        else:
            when_done(
                self._write([batch for _, batch in changes]), lambda failure: self._written(changes, failure, future)
            )

    def _written(self, changes: Sequence[Change], error: BrokerError | None, future: asyncio.Future[None]) -> None:
        if error is not None:
            self._undo(changes)
            fail(future, _member_error(error))
            return
        now = self.clock.now_ms()
        for delivery, _ in changes:
            delivery.finish(now, written=True)
            if delivery.state is RecordState.AVAILABLE:
                self.some_available = True
        self.move_start()
        succeed(future, None)
        self._changed()

    def _undo(self, changes: Sequence[Change]) -> None:
        now = self.clock.now_ms()
        for delivery, batch in changes:
            delivery.finish(now, written=False)
            if delivery.state is RecordState.AVAILABLE:
                self.some_available = True
            if RecordState(batch.state).is_final and not delivery.state.is_final:
                self.complete -= self.in_window(batch.first, batch.last)
            if delivery.locked_until_ms is not None and (
                self._timer is None or delivery.locked_until_ms < self._timer_at
            ):
                self._wake_at(delivery.locked_until_ms)

    def _write(self, batches: Sequence[StateBatch]) -> asyncio.Future[None]:
        state = StoredState(self.start_offset, self._state_epoch, self.leader_epoch, self.complete, batches)
        return self._persister.write(self.key, state)


def _member_error(error: BrokerError) -> BrokerError:
    """The error for a member when the coordinator refuses, because its errors mean other things between brokers."""
    if isinstance(error, NotCoordinator | CoordinatorNotAvailable | CoordinatorLoadInProgress):
        return CoordinatorNotAvailable(error.message)
    if isinstance(error, FencedLeaderEpoch | FencedStateEpoch):
        return NotLeaderOrFollower(error.message)
    if isinstance(error, GroupIdNotFound | UnknownTopicOrPartition):
        return error
    return UnknownServerError(error.message)


def _is_over(delivery: Delivery, now_ms: int) -> bool:
    return (
        delivery.state is RecordState.ACQUIRED
        and not delivery.is_changing
        and delivery.locked_until_ms is not None
        and delivery.locked_until_ms <= now_ms
    )
