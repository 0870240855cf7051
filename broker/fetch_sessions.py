"""Fetch sessions (KIP-227): the broker remembers what a consumer fetches, so that requests and answers contain only
changes.

A session also knows which of its partitions may have news. Idle partitions cost a fetch nothing, however many there
are: a partition is read again when something is appended to it, when the client changes its request for it, and when
``look_at_all`` is called.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from broker.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from broker.log.partition import PartitionLog
from broker.protocol.fetch import FetchPartition, FetchRequest, PartitionFetched
from broker.storage.arrivals import Arrivals, Waiter

__all__ = ["CachedPartition", "FetchSession", "FetchSessions"]

Topic = str | uuid.UUID

EVICTABLE_AFTER_MS: Final = 120_000
"""A session younger than this is not evicted for a larger one.

A session unused for longer can be evicted for any (as in Kafka).
"""

_MAX_EPOCH: Final = 0x7FFFFFFF


class CachedPartition:
    """A partition of a session: the client's request for it, and the values last sent (-1: none yet)."""

    __slots__ = ("high_watermark", "log", "log_start_offset", "requested", "stuck_at", "topic")

    def __init__(self, topic: Topic, fetch: FetchPartition) -> None:
        self.topic = topic
        self.requested = fetch
        self.log: PartitionLog | None = None
        self.high_watermark = -1
        self.log_start_offset = -1
        self.stuck_at = -1
        """The last stable offset if an open transaction holds it back, otherwise -1."""


class FetchSession:
    """One consumer's partitions. ``due`` has those to read, in the order in which they get their share of an answer."""

    __slots__ = (
        "_arrivals",
        "_logs",
        "_partitions",
        "created_ms",
        "due",
        "epoch",
        "id",
        "read_committed",
        "seen",
        "used_ms",
        "uses_topic_ids",
        "waiter",
    )

    def __init__(self, session_id: int, *, uses_topic_ids: bool, arrivals: Arrivals, now_ms: int) -> None:
        self.id = session_id
        self.uses_topic_ids = uses_topic_ids
        self.epoch = 1
        self.created_ms = self.used_ms = now_ms
        self.due: dict[CachedPartition, None] = {}
        self.seen = 0
        self.read_committed = False
        self.waiter: Waiter | None = None
        """The waiting fetch, if any."""
        self._partitions: dict[tuple[Topic, int], CachedPartition] = {}
        self._logs: dict[PartitionLog, CachedPartition] = {}
        self._arrivals = arrivals

    def __len__(self) -> int:
        return len(self._partitions)

    @property
    def has_logs(self) -> bool:
        """Whether any of its partitions exists, so that a fetch has something to wait for."""
        return bool(self._logs)

    def partition(self, topic: Topic, number: int) -> CachedPartition:
        return self._partitions[topic, number]

    def want(self, topics: Iterable[tuple[Topic, Sequence[FetchPartition]]]) -> None:
        """Add partitions, or change the client's requests for them."""
        partitions, due = self._partitions, self.due
        for topic, fetches in topics:
            for fetch in fetches:
                cached = partitions.get((topic, fetch.partition))
                if cached is None:
                    cached = partitions[topic, fetch.partition] = CachedPartition(topic, fetch)
                else:
                    cached.requested = fetch
                due[cached] = None

    def forget(self, topics: Iterable[tuple[Topic, Sequence[int]]]) -> None:
        for topic, numbers in topics:
            for number in numbers:
                cached = self._partitions.pop((topic, number), None)
                if cached is not None:
                    self.due.pop(cached, None)
                    self.follow(cached, None)

    def look_at_all(self) -> None:
        for cached in self._partitions.values():
            self.due[cached] = None

    def record_result(self, cached: CachedPartition, fetched: PartitionFetched) -> bool:
        """Record a partition's result. Returns whether the answer must contain it; if not, nothing is new."""
        if fetched.error_code or fetched.diverging is not None:
            cached.high_watermark = -1  # so that it is sent again when the error is gone
            cached.log_start_offset = fetched.log_start_offset
            return True
        news = (
            fetched.records is not None
            or fetched.high_watermark != cached.high_watermark
            or fetched.log_start_offset != cached.log_start_offset
        )
        cached.high_watermark, cached.log_start_offset = fetched.high_watermark, fetched.log_start_offset
        self._note_answer(cached, fetched)
        return news

    def _note_answer(self, cached: CachedPartition, fetched: PartitionFetched) -> None:
        """Move a partition that returned records to the end of the queue; remove a drained one until something arrives."""
        stable = fetched.last_stable_offset
        cached.stuck_at = stable if stable < fetched.high_watermark else -1
        if cached.requested.fetch_offset >= (stable if self.read_committed else fetched.high_watermark):
            self.due.pop(cached, None)
        elif fetched.records is not None:
            self.due.pop(cached, None)
            self.due[cached] = None

    def arrived(self, partition: PartitionLog, size: int) -> None:
        cached = self._logs[partition]
        self.due[cached] = None
        if self.waiter is None:
            return
        if self.read_committed and size:
            stable, before = partition.last_stable_offset, cached.stuck_at
            cached.stuck_at = stable if stable < partition.log_end_offset else -1
            if stable == before or before < 0 <= cached.stuck_at:
                return
            if before >= 0:
                size = 0  # records that a transaction held back became readable: more than was appended
        self.waiter.arrived(partition, size)

    def close(self) -> None:
        for partition in self._logs:
            self._arrivals.unwatch(partition, self)
        self._logs.clear()
        if self.waiter is not None:
            self.waiter.wake()

    def follow(self, cached: CachedPartition, log: PartitionLog | None) -> None:
        """Subscribe to the partition's current log."""
        if cached.log is not None and self._logs.get(cached.log) is cached:
            del self._logs[cached.log]
            self._arrivals.unwatch(cached.log, self)
        cached.log = log
        if log is not None:
            self._logs[log] = cached
            self._arrivals.watch(log, self)


class FetchSessions:
    """The sessions of one broker, at most ``slots``."""

    def __init__(self, slots: int, arrivals: Arrivals, now_ms: Callable[[], int] | None = None) -> None:
        self._slots = slots
        self._arrivals = arrivals
        self._now_ms = now_ms or _monotonic_ms
        self._sessions: dict[int, FetchSession] = {}
        """Least recently used first."""
        self._round = 0
        self._smallest = (0, 0)
        """The size of the smallest session that may be evicted for a larger one, and the time until which this is
        valid.
        """
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partitions(self) -> int:
        return sum(map(len, self._sessions.values()))

    def create(self, size: int, *, uses_topic_ids: bool) -> FetchSession | None:
        """A new session for ``size`` partitions; None if there is no room.

        It evicts the session that was unused for longest, if that is two minutes; otherwise the smallest session that
        is at least two minutes old, if that is smaller than the new one.
        """
        now = self._now_ms()
        if len(self._sessions) >= self._slots and not self._evict_for(size, now):
            return None
        session_id = 0
        while session_id == 0 or session_id in self._sessions:
            session_id = random.randrange(1, 1 << 31)
        session = FetchSession(session_id, uses_topic_ids=uses_topic_ids, arrivals=self._arrivals, now_ms=now)
        session.seen = self._round
        self._sessions[session_id] = session
        return session

    def _evict_for(self, size: int, now: int) -> bool:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None:
            return False
        if now - oldest.used_ms > EVICTABLE_AFTER_MS:
            gone = oldest
        else:
            smallest, known_until = self._smallest
            if now < known_until and size <= smallest:
                return False
            old = [session for session in self._sessions.values() if now - session.created_ms > EVICTABLE_AFTER_MS]
            gone = min(old, key=lambda fetch_session: (len(fetch_session), fetch_session.id), default=oldest)
            if not old or size <= len(gone):
                # Clients without a session ask for one with each fetch: avoid a scan for each.
                self._smallest = (len(gone) if old else size, now + 1000)
                return False
        self.evictions += 1
        self.close(gone.id)
        return True

    def resume(self, request: FetchRequest, *, uses_topic_ids: bool) -> FetchSession | None:
        """The session that an incremental fetch continues, updated; None if it has no partition left.

        Raises FetchSessionIdNotFound, InvalidFetchSessionEpoch, or FetchSessionTopicIdError if names and ids are mixed.
        """
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionIdNotFound(f"There is no fetch session {request.session_id}.")
        if session.epoch != request.session_epoch:
            raise InvalidFetchSessionEpoch(
                f"Fetch session {session.id} is in epoch {session.epoch}, not {request.session_epoch}."
            )
        if session.uses_topic_ids is not uses_topic_ids:
            began = "with" if session.uses_topic_ids else "without"
            raise FetchSessionTopicIdError(f"Fetch session {session.id} was begun {began} topic ids.")
        if request.topics:
            session.want(request.topics)
        if request.forgotten:
            session.forget(request.forgotten)
        if not len(session):
            self.close(session.id)
            return None
        if session.seen != self._round:
            session.seen = self._round
            session.look_at_all()
        read_committed = request.isolation_level == 1
        if session.read_committed is not read_committed:
            session.read_committed = read_committed
            session.look_at_all()
        session.epoch = 1 if session.epoch == _MAX_EPOCH else session.epoch + 1
        session.used_ms = self._now_ms()
        if session.waiter is not None:
            session.waiter.wake()  # its client has abandoned it
        del self._sessions[session.id]
        self._sessions[session.id] = session
        return session

    def close(self, session_id: int) -> None:
        """End a session. Does nothing if there is none."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()

    def look_at_all(self) -> None:
        """Make every session read all its partitions with its next fetch, after a change that no append reports."""
        self._round += 1


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
