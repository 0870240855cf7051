"""The event bus: publishes to the log; any number of subscribers read a topic at their own pace.

One reader per topic follows the log and keeps the newest events in a bounded window. A subscription is a position: it
reads from the window while it keeps up, and from the log when it lags. So a slow subscriber costs no memory and delays
no other. A replay id is the event's offset in its topic's only partition.
"""

from __future__ import annotations

import asyncio
import contextlib
from bisect import bisect_left
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple, Protocol

from events.errors import BusUnavailable, InvalidReplayId, UndecodablePayload
from events.model.payloads import frame, unframe
from events.store.log import EventLog, LogBounds, LogRecord, LogSlice
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["EARLIEST", "LATEST", "Event", "EventBus", "Outgoing", "Stale", "Start", "Subscription"]

logger = get_logger(__name__)

LATEST: Final = -1
"""Replay only events published from now on."""
EARLIEST: Final = -2
"""Replay all retained events."""


class Stale(Enum):
    """How to handle a subscriber with an invalid replay id, or one whose next events have been deleted."""

    ERROR = "error"
    EARLIEST = "earliest"
    LATEST = "latest"


class Start(NamedTuple):
    """The start of a subscription: after ``replay_id``, or at the first event published at or after ``since_ms``.

    LATEST and EARLIEST are replay ids too. ``since_ms`` (publish time, milliseconds since 1970) takes precedence if
    set.
    """

    replay_id: int = LATEST
    since_ms: int | None = None
    stale: Stale = Stale.ERROR


_HISTORY_BYTES: Final = 256 * 1024
_RETRY_S: Final = (0.1, 0.2, 0.5, 1.0, 2.0)


class Event(NamedTuple):
    """A published event; ``payload`` is the Avro body without framing, written with schema ``schema_id``."""

    replay_id: int
    uuid: str
    schema_id: int
    payload: bytes
    timestamp_ms: int

    @property
    def size(self) -> int:
        """Its size in memory and in a response, in bytes.

        The id is its record's key, which other clients of the log choose.
        """
        return len(self.payload) + len(self.uuid) + 200  # the objects around a payload take about this much


@dataclass(frozen=True, slots=True)
class Outgoing:
    """An event to publish."""

    uuid: str
    schema_id: int
    payload: bytes


class Wakeable(Protocol):
    """Is notified when events may be available."""

    def set(self) -> None: ...


class EventBus:
    """Publishes and subscribes. Use it on one event loop. ``close`` ends every subscription."""

    def __init__(
        self,
        event_log: EventLog,
        *,
        clock_ms: Callable[[], int],
        tail_bytes: int = 4 * 1024 * 1024,
        on_skipped: Callable[[str], None] = lambda _: None,
        check_s: float = 5,
    ) -> None:
        """``on_skipped`` is called with the topic of each record that is not an event; subscribers do not see it.

        Every ``check_s`` seconds a check detects whether a followed topic was recreated.
        """
        self.check_s = check_s
        self._log, self._clock_ms, self._tail_bytes, self._on_skipped = event_log, clock_ms, tail_bytes, on_skipped
        self._tails: dict[str, _Tail] = {}

    async def publish(
        self, topic: str, events: Sequence[Outgoing], *, timeout_s: float | None = None
    ) -> list[int | TidegateError]:
        """Append events in order. Returns for each event its replay id, or why it was not acknowledged.

        ``timeout_s`` is as in ``EventLog.append``.
        """
        return await self._log.append(topic, self._records(events), timeout_s=timeout_s)

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[Callable[[str, Sequence[Outgoing]], Awaitable[list[int]]]]:
        """A block whose events are all published when it ends, or none; see ``EventLog.transaction``."""
        async with self._log.transaction() as transaction:

            async def publish(topic: str, events: Sequence[Outgoing]) -> list[int]:
                return await transaction.append(topic, self._records(events))

            yield publish

    def _records(self, events: Sequence[Outgoing]) -> list[tuple[bytes, bytes, int]]:
        now = self._clock_ms()
        return [(event.uuid.encode(), frame(event.schema_id, event.payload), now) for event in events]

    async def subscribe(self, topic: str, start: Start | int, wake: Wakeable | None = None) -> Subscription:
        """A subscription from ``start`` on; a number is a replay id, LATEST or EARLIEST.

        ``wake`` is set whenever events may be available; subscriptions may share one. Raises InvalidReplayId for an id
        that was never assigned or whose next events have been deleted, unless the start says what to do then.
        """
        start = start if isinstance(start, Start) else Start(start)
        bounds = await self._log.bounds(topic)
        if start.since_ms is None:
            position = _position(bounds, start)
        else:
            offset = await self._log.offset_at(topic, start.since_ms)
            position = bounds.readable if offset is None else max(offset, bounds.start)
        tail = self._tails.get(topic)
        if tail is None:
            tail = self._tails[topic] = _Tail(self, topic, bounds)
        return Subscription(self, tail, position, wake or asyncio.Event())

    @property
    def subscriptions(self) -> int:
        """The number of open subscriptions."""
        return sum(len(tail.subscriptions) for tail in self._tails.values())

    async def close(self) -> None:
        for tail in list(self._tails.values()):
            for subscription in list(tail.subscriptions):
                subscription.close()
            await tail.stop()
        self._tails.clear()

    def event_of(self, topic: str, record: LogRecord) -> Event | None:
        """The event in a record; None, with a log message, for any other record in the topic."""
        try:
            if record.value is None:
                raise UndecodablePayload("The record has no value")
            schema_id, payload = unframe(record.value)
            uuid = record.key.decode() if record.key else ""
        except (UndecodablePayload, UnicodeDecodeError) as error:
            self._on_skipped(topic)
            logger.warning(
                "a record in an event topic is not an event", topic=topic, offset=record.offset, error=str(error)
            )
            return None
        return Event(record.offset, uuid, schema_id, payload, record.timestamp_ms)

    def events_of(self, topic: str, piece: LogSlice) -> list[Event]:
        return [event for record in piece.records if (event := self.event_of(topic, record)) is not None]

    async def read(self, topic: str, offset: int) -> tuple[list[Event], int]:
        piece = await self._log.read(topic, offset, _HISTORY_BYTES)
        return self.events_of(topic, piece), piece.next_offset

    def follow(self, topic: str, offset: int) -> AsyncGenerator[LogSlice, None]:
        return self._log.follow(topic, offset)

    async def identity(self, topic: str) -> str:
        return (await self._log.bounds(topic)).identity

    def left(self, tail: _Tail) -> None:
        """Stop following a topic: its last subscriber has left, or the topic was recreated."""
        if self._tails.get(tail.topic) is tail:
            del self._tails[tail.topic]
            tail.cancel()

    @property
    def tail_bytes(self) -> int:
        return self._tail_bytes


def _position(bounds: LogBounds, start: Start) -> int:
    replay_id = start.replay_id
    if replay_id not in (LATEST, EARLIEST) and not bounds.start - 1 <= replay_id < bounds.end:
        if start.stale is Stale.ERROR:
            raise InvalidReplayId(replay_id)
        replay_id = EARLIEST if start.stale is Stale.EARLIEST else LATEST
    # Events of an open transaction are published when it commits, which is after the subscription began.
    return {LATEST: bounds.readable, EARLIEST: bounds.start}.get(replay_id, replay_id + 1)


class _Tail:
    """The newest events of one topic, [covered_from, end), and the task that follows the log.

    ``ended`` is set when the topic was deleted or recreated: positions in it are then invalid.
    """

    def __init__(self, bus: EventBus, topic: str, bounds: LogBounds) -> None:
        self.topic, self.end, self.covered_from = topic, bounds.readable, bounds.readable
        self.ended = False
        self.identity = bounds.identity
        self.subscriptions: set[Subscription] = set()
        self._bus = bus
        self._events: list[Event] = []
        self._offsets: list[int] = []
        self._bytes = 0
        self._task = asyncio.create_task(self._run(), name=f"events {topic}")
        self._checking = asyncio.create_task(self._check(), name=f"events {topic} check")

    def since(self, position: int, max_events: int) -> list[Event]:
        first = bisect_left(self._offsets, position)
        return self._events[first : first + max_events]

    def cancel(self) -> None:
        self._task.cancel()
        self._checking.cancel()

    async def stop(self) -> None:
        self.cancel()
        await asyncio.gather(self._task, self._checking, return_exceptions=True)

    async def _check(self) -> None:
        """Detect a recreated topic, which its reader does not notice."""
        while True:
            await asyncio.sleep(self._bus.check_s)
            try:
                identity = await self._bus.identity(self.topic)
            except TidegateError:
                continue  # a topic that is unavailable for a moment is checked again
            if identity != self.identity:
                logger.warning(
                    "an event topic was made anew; its subscribers have to subscribe again", topic=self.topic
                )
                self.ended = True
                for subscription in self.subscriptions:
                    subscription.wake.set()
                self._bus.left(self)

    async def _run(self) -> None:
        failures = 0
        while True:
            following = self._bus.follow(self.topic, self.end)
            try:
                async with contextlib.aclosing(following):
                    async for piece in following:
                        failures = 0
                        self._add(piece)
            except BusUnavailable as error:
                if failures == 0:
                    logger.warning("cannot follow an event topic; trying again", topic=self.topic, error=str(error))
            except Exception:
                logger.exception("the reader of an event topic broke; trying again", topic=self.topic)
            await asyncio.sleep(_RETRY_S[min(failures, len(_RETRY_S) - 1)])
            failures += 1

    def _add(self, piece: LogSlice) -> None:
        for event in self._bus.events_of(self.topic, piece):
            self._events.append(event)
            self._offsets.append(event.replay_id)
            self._bytes += event.size
        self.end = max(self.end, piece.next_offset)
        if self._bytes > self._bus.tail_bytes:
            self._trim()
        for subscription in self.subscriptions:
            subscription.wake.set()

    def _trim(self) -> None:
        """Drop the older half, so that trimming costs little per event."""
        drop = 0
        while self._bytes > self._bus.tail_bytes // 2 and drop < len(self._events):
            self._bytes -= self._events[drop].size
            drop += 1
        self.covered_from = self._offsets[drop - 1] + 1
        del self._events[:drop], self._offsets[:drop]


class Subscription:
    """A position in a topic. Call ``take`` from one task at a time. ``close`` is final and idempotent."""

    def __init__(self, bus: EventBus, tail: _Tail, position: int, wake: Wakeable) -> None:
        self._bus, self._tail = bus, tail
        self.position = position
        """The offset of the next event to read; ``position - 1`` is the latest replay id."""
        self.wake = wake
        self._read_ahead: list[Event] = []
        self._read_to = position
        tail.subscriptions.add(self)
        if self.available:
            wake.set()

    @property
    def topic(self) -> str:
        return self._tail.topic

    @property
    def identity(self) -> str:
        """The identity of the topic when the subscription began."""
        return self._tail.identity

    @property
    def available(self) -> bool:
        """Whether ``take`` will return without waiting: with an event at or after the position, or because the topic is
        gone.
        """
        return self.position < self._tail.end or self._tail.ended

    async def take(self, max_events: int) -> list[Event]:
        """The next events, up to ``max_events``; empty if the subscription has caught up.

        Raises BusUnavailable if older events have to be read and the log does not answer; the position then stays.
        Raises InvalidReplayId if the topic was recreated, which invalidates the position.
        """
        while (events := self.take_now(max_events)) is None:
            await self.read_ahead()
        return events

    def take_now(self, max_events: int) -> list[Event] | None:
        """Like ``take`` without waiting; None if the events have to be read from the log first, by ``read_ahead``."""
        while self.available and max_events > 0:
            if self._tail.ended:
                raise InvalidReplayId(self.position - 1)
            if self._read_ahead:
                events, self._read_ahead = self._read_ahead[:max_events], self._read_ahead[max_events:]
                self.position = events[-1].replay_id + 1 if self._read_ahead else max(self._read_to, self.position)
            elif self.position < self._tail.covered_from:
                return None
            else:
                events, end = self._tail.since(self.position, max_events), self._tail.end
                self.position = events[-1].replay_id + 1 if len(events) == max_events else end
            if events:
                return events
        return []

    async def read_ahead(self) -> None:
        """Read the next events from the log, if they are not in the window. Raises BusUnavailable."""
        before = self.position
        events, read_to = await self._bus.read(self.topic, before)
        if not events and read_to <= before:
            # The log returned nothing although its end is reported to be further: read again later.
            raise BusUnavailable(f"The log of {self.topic} has nothing at offset {before} yet")
        if self.position != before or self._read_ahead:
            return  # another task has read and taken them meanwhile
        self._read_ahead, self._read_to = events, read_to
        if not events:
            self.position = read_to

    def rewind(self, replay_id: int) -> None:
        """Go back to an event that was taken, so that it is taken next."""
        self.position = replay_id
        self._read_ahead = []

    def close(self) -> None:
        if self in self._tail.subscriptions:
            self._tail.subscriptions.discard(self)
            if not self._tail.subscriptions:
                self._bus.left(self._tail)
