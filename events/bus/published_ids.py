"""The event ids published in the last 24 hours, so that a retried event is stored once.

The log is authoritative: an event's id is its record's key. This index is an SQLite file, because a day's ids may not
fit in memory. It is written after the log has acknowledged. Ids missing after a kill, events whose outcome was unknown,
and events of other servers over the same log are read from the log before the next answer. A damaged index, for example
after a power cut, is recreated.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from events.errors import BusUnavailable
from events.store.log import EventLog, LogSlice
from tidegate.kit.logs import get_logger

__all__ = ["KEPT_MS", "PublishedId", "PublishedIds"]

logger = get_logger(__name__)

KEPT_MS: Final = 24 * 3600 * 1000
_MARGIN_MS: Final = 120_000
"""An id is written within this time of its record's timestamp, or its topic is marked as doubtful."""
_READ_BYTES: Final = 1024 * 1024
_CHECK_MS: Final = 5000
_ASKED_AT_ONCE: Final = 500
_ROUNDS: Final = 3
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS seen (topic TEXT PRIMARY KEY, identity TEXT NOT NULL, seen_ms INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS published (topic TEXT, id BLOB, replay_id INTEGER NOT NULL, ms INTEGER NOT NULL, digest BLOB,
  PRIMARY KEY (topic, id)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS published_by_age ON published (ms);
"""


class PublishedId(NamedTuple):
    """An event in the log."""

    replay_id: int
    digest: bytes = b""
    """The digest of the event sent with an Idempotency-Key; empty if unknown."""


class PublishedIds:
    """Replay ids by topic and event id. Use it on one event loop; ``close`` it when done."""

    def __init__(self, path: Path, event_log: EventLog, clock_ms: Callable[[], int]) -> None:
        self._log, self._clock_ms = event_log, clock_ms
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path, self._database = path, _opened(path)
        self._made = 0
        """How often the index was recreated."""
        self._checked_ms: dict[str, int] = {}
        self._doubts: dict[str, int] = {}
        """By topic, the number of doubts since the last ones were resolved."""
        self._read_to: dict[str, int] = {}
        """By topic, the offset below which the index has every id."""
        self._turns: dict[str, asyncio.Lock] = {}
        self._next: dict[str, asyncio.Task[None]] = {}
        """By topic, the look at the log that begins when the present one ends."""
        self._looks: set[asyncio.Task[None]] = set()
        self._swept_ms = 0

    def close(self) -> None:
        for look in self._looks:
            look.cancel()
        self._database.close()

    async def find(self, topic: str, ids: Collection[str]) -> dict[str, PublishedId]:
        """The events that are in the log, whoever published them. Raises BusUnavailable if that can't be determined now.

        One that is in an open transaction, or on its way from another server, is not in the log yet. If the call is
        cancelled, the read of the log goes on for later calls.
        """
        for _ in range(_ROUNDS):
            await self._catch_up(topic)
            if topic in self._checked_ms and topic not in self._doubts:
                try:
                    return self._known(topic, ids)
                except sqlite3.OperationalError as error:
                    raise self._unusable(error) from error
                except sqlite3.DatabaseError as error:
                    self._make_anew(error)
        # Another event became doubtful each time: the log fails intermittently.
        raise BusUnavailable(f"Whether earlier events of {topic} were published is not known yet; send the event again")

    async def search(self, topic: str, ids: Collection[str], since_ms: int) -> dict[str, int] | None:
        """The replay ids of the events that are in the log since a time, however long ago; None if retention has
        deleted part of that range.

        It reads the whole log since then. A recreated topic has none of them. Raises BusUnavailable.
        """
        await self._log.settled(topic)
        offset = await self._log.offset_at(topic, since_ms)
        by_bytes = {id_.encode(): id_ for id_ in ids}
        replay_ids: dict[str, int] = {}
        if offset is not None:
            end = (await self._log.bounds(topic)).end
            async for piece in self._slices(topic, offset, end):
                for record in piece.records:
                    if record.key is not None and record.key in by_bytes:
                        replay_ids.setdefault(by_bytes[record.key], record.offset)
        # Checked last, because retention may delete records during the read.
        start = (await self._log.bounds(topic)).start
        return None if start > 1 and (offset is None or offset <= start) else replay_ids

    def _known(self, topic: str, ids: Collection[str]) -> dict[str, PublishedId]:
        published_by_id: dict[str, PublishedId] = {}
        asked = [id_.encode() for id_ in ids]
        since = self._clock_ms() - KEPT_MS
        for first in range(0, len(asked), _ASKED_AT_ONCE):
            some = asked[first : first + _ASKED_AT_ONCE]
            marks = ",".join("?" * len(some))
            rows = self._database.execute(
                f"SELECT id, replay_id, digest FROM published WHERE topic = ? AND ms >= ? AND id IN ({marks})",
                (topic, since, *some),
            )
            published_by_id.update(
                {id_.decode(): PublishedId(replay_id, digest or b"") for id_, replay_id, digest in rows}
            )
        return published_by_id

    def put(self, topic: str, published: Mapping[str, PublishedId]) -> None:
        """Store acknowledged events by id. If that fails, they are read from the log later."""
        try:
            self._remember(topic, published)
        except sqlite3.OperationalError as error:
            logger.warning("published ids cannot be written down", file=str(self._path), error=str(error))
            self.doubt(topic)
        except sqlite3.DatabaseError as error:
            self._make_anew(error)

    def _make_anew(self, error: sqlite3.DatabaseError) -> None:
        logger.warning("the index of published ids is damaged; making it anew", file=str(self._path), error=str(error))
        self._database.close()
        _delete(self._path)
        self._database = _opened(self._path)
        self._checked_ms.clear()
        self._made += 1

    def _remember(self, topic: str, published: Mapping[str, PublishedId]) -> None:
        now = self._clock_ms()
        with self._database:
            rows = [(id_.encode(), entry.replay_id, now, entry.digest or None) for id_, entry in published.items()]
            self._insert(topic, rows)
            self._database.execute("UPDATE seen SET seen_ms = max(seen_ms, ?) WHERE topic = ?", (now, topic))
            if now - self._swept_ms > 60_000:
                self._swept_ms = now
                self._database.execute("DELETE FROM published WHERE ms < ?", (now - KEPT_MS,))

    def appended(self, topic: str, first: int, end: int) -> None:
        """Record that this server appended the records with the offsets from ``first`` to below ``end``."""
        if self._read_to.get(topic) == first:
            self._read_to[topic] = end

    def doubt(self, topic: str) -> None:
        """Record that an unknown event of the topic may be in the log: read the log before the next answer."""
        self._doubts[topic] = self._doubts.get(topic, 0) + 1

    def _insert(self, topic: str, rows: Sequence[tuple[bytes, int, int, bytes | None]]) -> None:
        """The first event with an id wins, as long as ids are kept."""
        self._database.executemany(
            "INSERT INTO published VALUES (?, ?, ?, ?, ?) ON CONFLICT (topic, id) DO UPDATE "
            "SET replay_id = excluded.replay_id, ms = excluded.ms, digest = excluded.digest WHERE ms < excluded.ms - ?",
            [(topic, *row, KEPT_MS) for row in rows],
        )

    async def _catch_up(self, topic: str) -> None:
        """Have the index know what is in the log now. Those who call while it is being read share the next look."""
        look = self._next.get(topic)
        if look is None:
            look = self._next[topic] = asyncio.create_task(self._look(topic), name=f"look at the ids of {topic}")
            self._looks.add(look)
            look.add_done_callback(self._looks.discard)
            look.add_done_callback(lambda done: done.cancelled() or done.exception())  # its callers may all have left
        await asyncio.shield(look)

    async def _look(self, topic: str) -> None:
        async with self._turns.setdefault(topic, asyncio.Lock()):
            del self._next[topic]
            try:
                try:
                    await self._catch_up_once(topic)
                except sqlite3.OperationalError:
                    raise
                except sqlite3.DatabaseError as error:
                    self._make_anew(error)
                    await self._catch_up_once(topic)
            except sqlite3.DatabaseError as error:
                raise self._unusable(error) from error

    def _unusable(self, error: sqlite3.DatabaseError) -> BusUnavailable:
        return BusUnavailable(f"The index of published ids in {self._path} cannot be used: {error}")

    async def _catch_up_once(self, topic: str) -> None:
        now = self._clock_ms()
        checked, made = self._checked_ms.get(topic), self._made
        doubts = self._doubts.get(topic, 0)
        has_doubts = doubts > 0
        if checked is not None and not has_doubts and now - checked < _CHECK_MS:
            await self._follow(topic)
            return
        bounds = await self._log.bounds(topic)
        known = self._database.execute("SELECT identity, seen_ms FROM seen WHERE topic = ?", (topic,)).fetchone()
        if known is not None and known[0] != bounds.identity:
            with self._database:
                self._database.execute("DELETE FROM published WHERE topic = ?", (topic,))
                self._database.execute("DELETE FROM seen WHERE topic = ?", (topic,))
            known = None
        if has_doubts:
            await self._log.settled(topic)
            bounds = await self._log.bounds(topic)
        is_behind = known is None or has_doubts or checked is None
        if is_behind:
            seen_ms = known[1] if known is not None else 0
            offset = await self._log.offset_at(topic, max(now - KEPT_MS, seen_ms - _MARGIN_MS))
            self._read_to[topic] = bounds.readable if offset is None else offset
            if offset is not None:
                await self._read(topic, bounds.end)
        else:
            await self._follow(topic)
        if made != self._made:
            raise BusUnavailable(f"The index of published ids of {topic} is being made anew; send the event again")
        if is_behind:
            with self._database:
                self._database.execute("INSERT OR REPLACE INTO seen VALUES (?, ?, ?)", (topic, bounds.identity, now))
        if self._doubts.get(topic, 0) == doubts:  # otherwise another doubt arose while the log was read
            self._doubts.pop(topic, None)
        self._checked_ms[topic] = now

    async def _follow(self, topic: str) -> None:
        """Read the events of other servers since the last look."""
        end = await self._log.readable(topic)
        if end > self._read_to[topic]:
            await self._log.flushed(topic)  # they are our own, mostly
            await self._read(topic, end)

    async def _read(self, topic: str, end: int) -> None:
        """Read the log from where the index ends to an offset. Raises BusUnavailable if it can't be read that far."""
        async for piece in self._slices(topic, self._read_to[topic], end):
            keyed = [(r.key, r.offset, r.timestamp_ms, None) for r in piece.records if r.key is not None]
            with self._database:
                self._insert(topic, keyed)
            self._read_to[topic] = max(self._read_to[topic], piece.next_offset)

    async def _slices(self, topic: str, offset: int, end: int) -> AsyncIterator[LogSlice]:
        """The log from an offset to another. Raises BusUnavailable if it can't be read that far."""
        while offset < end:
            piece = await self._log.read(topic, offset, _READ_BYTES)
            if piece.next_offset <= offset:
                # A transaction is open there, which may contain the very event that is being retried.
                raise BusUnavailable(
                    f"The log of {topic} cannot be read to its end yet; send the event again in a moment"
                )
            yield piece
            offset = piece.next_offset


def _opened(path: Path) -> sqlite3.Connection:
    """The database. A damaged one is recreated, because its content is in the log."""
    for attempt in range(2):
        database = sqlite3.connect(path, check_same_thread=False)
        try:
            database.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF;" + _TABLES)
        except sqlite3.DatabaseError as error:
            database.close()
            if attempt or isinstance(error, sqlite3.OperationalError):
                raise
            logger.warning("the index of published ids is damaged; making it anew", file=str(path), error=str(error))
            _delete(path)
        else:
            return database
    raise AssertionError("unreachable")


def _delete(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
