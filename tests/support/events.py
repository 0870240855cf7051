"""An events service on an in-memory log and registry, for tests of the layers above these."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from events.access import User
from events.config import EventsConfig
from events.errors import BusUnavailable, EventTooLarge
from events.model.definitions import EventDefinition, EventField, FieldType
from events.server.service import EventsServer
from events.store import transactions
from events.store.log import LogBounds, LogRecord, LogSlice
from tidegate.kit.config import parse
from tidegate.kit.errors import TidegateError
from tidegate.kit.service import fast_event_loop

__all__ = ["ORDER_SHIPPED", "PASSWORD", "USER", "EventsThread", "MemoryLog", "MemorySchemas", "events_config"]

T = TypeVar("T")
_MOST_BYTES: Final = 4 * 1024 * 1024
USER, PASSWORD = "developer@tidegate.local", "tidegate-dev"

ORDER_SHIPPED = EventDefinition(
    "Order_Shipped__e",
    (
        EventField("Order_Number__c", FieldType.TEXT, required=True, length=40),
        EventField("Amount__c", FieldType.NUMBER, precision=10, scale=2),
        EventField("Express__c", FieldType.CHECKBOX),
        EventField("Shipped_At__c", FieldType.DATE_TIME),
        EventField("Due__c", FieldType.DATE),
        EventField("Note__c", FieldType.LONG_TEXT_AREA, length=1000),
    ),
    label="Order Shipped",
    plural_label="Orders Shipped",
)


class MemoryLog:
    """A log of lists, which keeps ``EventLogContract`` (tests/support/event_log_contract.py) as a Kafka does.

    The index in a topic's list is the offset; None is where no record is (any more), or is not committed yet. Offset 0 of a
    topic of events belongs to nobody, so that replay ids begin with 1. ``down`` makes everything fail as a broker that is
    away does.
    """

    def __init__(self) -> None:
        self.topics: dict[str, list[LogRecord | None]] = {}
        self.counts: dict[str, int] = {}
        self.starts: dict[str, int] = {}
        self.identities: dict[str, str] = {}
        self.retentions: dict[str, int] = {}
        self.down = False
        self.reads = 0
        self._open: dict[str, list[int]] = {}
        """The first offset of each open transaction."""
        self._grown = asyncio.Condition()

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def records(self, topic: str) -> list[LogRecord]:
        """All records that a reader gets from the beginning."""
        return [record for record in self.topics[topic][self.starts.get(topic, 0) :] if record is not None]

    def _check(self) -> None:
        if self.down:
            raise BusUnavailable("The log is away")

    async def append(
        self, topic: str, records: Sequence[tuple[bytes, bytes | None, int]], *, timeout_s: float | None = None
    ) -> list[int | TidegateError]:
        if self.down:
            return [BusUnavailable("The log is away") for _ in records]
        return [
            EventTooLarge(f"{len(value)} bytes are more than {_MOST_BYTES}")
            if value is not None and len(value) > _MOST_BYTES
            else await self.put(topic, key, value, ms)
            for key, value, ms in records
        ]

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[MemoryTransaction]:
        self._check()
        opened = MemoryTransaction(self)
        began = time.monotonic()
        committed = False
        try:
            yield opened
            if self.down or time.monotonic() - began > transactions.TIMEOUT_MS / 1000:
                raise BusUnavailable("The log did not take the events of this request, and none is published")
            committed = True
        finally:
            opened.end(committed=committed)
            async with self._grown:
                self._grown.notify_all()

    async def settled(self, topic: str) -> None:
        self._check()

    async def flushed(self, topic: str) -> None:
        self._check()

    async def readable(self, topic: str) -> int:
        self._check()
        return self._readable(topic)

    async def put(self, topic: str, key: bytes | None, value: bytes | None, timestamp_ms: int) -> int:
        written = self.topics[topic]
        written.append(LogRecord(len(written), key, value, timestamp_ms))
        async with self._grown:
            self._grown.notify_all()
        return len(written) - 1

    def skip(self, topic: str, count: int) -> None:
        """Offsets that no record has, as transactions leave them."""
        self.topics[topic] += [None] * count

    def delete_records(self, topic: str, before: int) -> None:
        self.starts[topic] = before

    def delete(self, topic: str) -> None:
        for known in (self.topics, self.counts, self.starts, self.identities, self.retentions):
            known.pop(topic, None)  # type: ignore[attr-defined]

    def _readable(self, topic: str) -> int:
        return min([*self._open.get(topic, ()), len(self.topics[topic])])

    async def bounds(self, topic: str) -> LogBounds:
        self._check()
        end = len(self.topics[topic])
        return LogBounds(self.starts.get(topic, 0), end, self._readable(topic), self.identities.get(topic, ""))

    async def ends(self, topic: str, count: int) -> list[int]:
        self._check()
        return [len(self.topics[topic])] * count

    async def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        self._check()
        return next((record.offset for record in self.records(topic) if record.timestamp_ms >= timestamp_ms), None)

    async def create_compacted(self, topic: str) -> None:
        self._check()
        self.topics.setdefault(topic, [])
        self.identities.setdefault(topic, uuid.uuid4().hex)

    async def read(self, topic: str, offset: int, max_bytes: int) -> LogSlice:
        self._check()
        self.reads += 1
        return self._slice(topic, offset, max_bytes)

    def _slice(self, topic: str, offset: int, max_bytes: int) -> LogSlice:
        records: list[LogRecord] = []
        position = max(offset, self.starts.get(topic, 0))
        while position < self._readable(topic) and max_bytes > 0:
            record = self.topics[topic][position]
            position += 1
            if record is not None:
                records.append(record)
                max_bytes -= len(record.value or b"")
        return LogSlice(records, position)

    async def follow(self, topic: str, offset: int) -> AsyncGenerator[LogSlice, None]:
        while True:
            self._check()
            if offset < self._readable(topic):
                piece = self._slice(topic, offset, 1 << 20)
                offset = piece.next_offset
                yield piece
            else:
                async with self._grown:
                    if offset >= self._readable(topic):
                        await self._grown.wait()

    async def partitions(self, topic: str) -> int | None:
        self._check()
        return self.counts.get(topic, 1) if topic in self.topics else None

    async def create(self, topic: str, retention_ms: int) -> None:
        self._check()
        if topic not in self.topics:
            self.topics[topic], self.starts[topic] = [None], 1
            self.identities[topic] = uuid.uuid4().hex
            self.retentions[topic] = retention_ms

    async def keep(self, topic: str, retention_ms: int) -> None:
        self._check()
        self.retentions[topic] = retention_ms

    async def retention_ms(self, topic: str) -> int | None:
        self._check()
        return self.retentions.get(topic)

    def opened(self, topic: str) -> int:
        """A transaction writes to a topic from here on: nobody reads past this offset."""
        first = len(self.topics[topic])
        self._open.setdefault(topic, []).append(first)
        return first

    def closed(self, topic: str, first: int) -> None:
        """That transaction ends, which uses an offset for its marker."""
        self._open[topic].remove(first)
        self.topics[topic].append(None)


class MemoryTransaction:
    """Records whose offsets are given out, and which are there once it is committed."""

    def __init__(self, memory_log: MemoryLog) -> None:
        self._log = memory_log
        self._written: dict[str, list[LogRecord]] = {}
        self._firsts: dict[str, int] = {}

    async def append(self, topic: str, records: Sequence[tuple[bytes, bytes, int]]) -> list[int]:
        if topic not in self._firsts:
            self._firsts[topic] = self._log.opened(topic)
        first = len(self._log.topics[topic])
        made = [LogRecord(first + n, *record) for n, record in enumerate(records)]
        self._log.skip(topic, len(made))
        self._written.setdefault(topic, []).extend(made)
        return [record.offset for record in made]

    def end(self, *, committed: bool) -> None:
        for topic, first in self._firsts.items():
            for record in self._written[topic] if committed else ():
                self._log.topics[topic][record.offset] = record
            self._log.closed(topic, first)


class MemorySchemas:
    """A registry without rules."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.versions: dict[str, list[int]] = {}

    def subjects(self) -> list[str]:
        return list(self.versions)

    def latest(self, subject: str) -> tuple[int, str] | None:
        versions = self.versions.get(subject)
        return (versions[-1], self.texts[versions[-1] - 1]) if versions else None

    def by_id(self, schema_id: int) -> str | None:
        return self.texts[schema_id - 1] if 0 < schema_id <= len(self.texts) else None

    def register(self, subject: str, text: str) -> int:
        if text not in self.texts:
            self.texts.append(text)
        number = self.texts.index(text) + 1
        versions = self.versions.setdefault(subject, [])
        if not versions or versions[-1] != number:
            versions.append(number)
        return number

    def register_freely(self, subject: str, text: str) -> int:
        return self.register(subject, text)


def events_config(data: Path, **more: object) -> EventsConfig:
    addresses = ("http.listen", "https.listen", "pubsub.listen", "pubsub.plain.listen")
    config: dict[str, object] = {"data.dir": str(data), **dict.fromkeys(addresses, "127.0.0.1:0"), **more}
    return parse(EventsConfig, config)


class EventsThread:
    """An events service in a separate thread, for blocking clients; in memory unless log and registry are real.

    With ``real="log"`` only the log is real, and the registry is ``schemas``.
    """

    def __init__(self, data: Path, *, real: bool | str = False, **more: object) -> None:
        self._config, self._real = events_config(data, **more), real
        self._loop = fast_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.memory_log: MemoryLog
        self.schemas = MemorySchemas()

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float = 120) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout_s)

    async def _start(self) -> None:
        self.memory_log = MemoryLog()
        if self._real == "log":
            self.server = EventsServer(self._config, schemas=self.schemas)
        elif self._real:
            self.server = EventsServer(self._config)
        else:
            self.server = EventsServer(self._config, event_log=self.memory_log, schemas=self.schemas)
        self.addresses = dict(await self.server.start())

    def __enter__(self) -> EventsThread:
        self._thread.start()
        self.run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.server.stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def define(self, definition: EventDefinition = ORDER_SHIPPED) -> None:
        self.run(self.server.catalog.define(definition, retention_ms=3_600_000))

    @property
    def url(self) -> str:
        return self.addresses["events"]

    @property
    def secure_url(self) -> str:
        return self.addresses["events-tls"]

    @property
    def user(self) -> User:
        """The user to whom ``token`` belongs."""
        account = self.server.access.accounts.named(USER)
        assert account is not None
        return account

    def token(self) -> str:
        return self.run(self.server.access.login(USER, PASSWORD)).id
