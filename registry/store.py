"""The registry's memory: a log of records, replayed at the start, appended to by every write and read back before it counts."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from registry.cluster.errors import NotCaughtUp, UnknownLeader
from registry.errors import StoreError, StoreTimeout
from registry.metrics import RegistryMetrics
from registry.records import InvalidRecord, KeyType, RecordKey, UnknownKeyType, encode_key
from registry.state import State
from tidegate.kit.logs import logger

__all__ = ["Alone", "Fenced", "Log", "LogRecord", "Office", "Store"]

log = logger(__name__)

_MANY_INVALID = 10


@dataclass(frozen=True, slots=True)
class LogRecord:
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None = None


class Fenced(StoreError):
    """Another registry has claimed the log: what was to be written was not, and will not be."""

    error_code = 50004
    retriable = True


class Log(Protocol):
    """One partition, in order. Methods raise StoreError; StoreTimeout where the outcome of an append is unknown.

    ``claim`` makes this the one that appends: who claimed before is refused from our first append on. ``append``
    returns the offset of the first of the records, which lie side by side, once the log has acknowledged them; raises
    Fenced when another has claimed the log. After any other failure but SchemaTooLarge it has to be claimed again.
    ``read`` waits for the records after those it returned before, beginning with the first of the log, and returns them
    with the offset up to which there is nothing else. ``end`` asks for the offset after the last record.
    """

    async def start(self) -> None: ...

    async def claim(self) -> None: ...

    async def append(self, records: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int) -> int: ...

    async def read(self) -> tuple[Sequence[LogRecord], int]: ...

    async def end(self) -> int: ...

    async def stop(self) -> None: ...


class Office(Protocol):
    """Who may write. ``require`` raises NotLeader or UnknownLeader where it is not this registry; ``term`` counts how
    often it has been elected anew; ``confirm`` asks the election whether it still is the one, and ``certain`` is whether,
    without asking, nobody else can have been elected."""

    @property
    def term(self) -> int: ...

    def require(self) -> None: ...

    async def confirm(self) -> bool: ...

    @property
    def certain(self) -> bool: ...


class Alone:
    """The office of a registry that shares its log with no other."""

    certain = True
    term = 1

    def require(self) -> None:
        pass

    async def confirm(self) -> bool:
        return True


class Store:
    """State that follows a log.

    Writers hold ``writing`` from the look at the state until their last write has come back, one at a time.

    A term of office begins with a claim of the log, then the question whether this registry is still the elected one
    (so that any later one's claim comes after ours), then a record of our own, read back: all that earlier writers
    wrote lies before it, and after it nobody but us can write. The same clears up a write whose outcome is unknown.
    """

    def __init__(self, source: Log, metrics: RegistryMetrics, *, timeout_ms: int, office: Office | None = None) -> None:
        self.state = State()
        self.office: Office = Alone() if office is None else office
        self._log = source
        self._metrics = metrics
        self._timeout_s = timeout_ms / 1000
        self._lock = asyncio.Lock()
        self._position = 0
        self._moved = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self._asking: asyncio.Future[int] | None = None
        self._term: int | None = None
        """The term of office for which the log has been taken over; None when a write may lie about in it."""
        self._invalid = 0
        self._unknown: set[str] = set()

    @property
    def authoritative(self) -> bool:
        """Whether what is not known here does not exist: this registry writes, has taken over, and is still elected."""
        return self._term == self.office.term and self.office.certain

    @property
    def position(self) -> int:
        """The offset up to which the state has everything."""
        return self._position

    async def start(self) -> None:
        """Replay the log; returns when everything written before is known. Raises StoreError."""
        await self._log.start()
        if self._reader is None:
            self._reader = asyncio.create_task(self._follow(), name="registry store")
        await self._reach(await self._log.end())

    async def stop(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        await self._log.stop()

    async def take_office(self) -> None:
        """Do now what the first write of a term would have to do. Raises StoreError, or UnknownLeader if it is over."""
        async with self.writing():
            pass

    async def catch_up(self) -> bool:
        """Read what was written before this call; whether there was anything new. Raises NotCaughtUp.

        The one that writes has nothing to ask: what is in the log, it wrote.
        """
        if self.authoritative:
            return False
        before = self._position
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._reach(await self._end())
        except (TimeoutError, StoreError) as error:
            raise NotCaughtUp(
                f"This registry has read the schema log up to offset {self._position} and cannot read on now: "
                f"{error or 'no answer in time'}"
            ) from error
        return self._position > before

    async def _end(self) -> int:
        """The end of the log, asked once for all who wait: only a question that goes out after theirs counts."""
        if self._asking is not None:
            with contextlib.suppress(StoreError):
                await asyncio.shield(self._asking)
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._log.end())
            self._asking.add_done_callback(self._asked)
        return await asyncio.shield(self._asking)

    def _asked(self, asking: asyncio.Future[int]) -> None:
        self._asking = None
        if not asking.cancelled():
            asking.exception()  # whoever waits raises it

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[State]:
        """The right to write, and the state to decide by. Raises NotLeader or UnknownLeader where it is another's."""
        self.office.require()
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._lock.acquire()
        except TimeoutError:
            raise StoreTimeout("Earlier writes to the schema log are still waiting for it; try again") from None
        try:
            self.office.require()
            if self._term != self.office.term:
                await self._begin_term()
            yield self.state
        finally:
            self._lock.release()

    async def _begin_term(self) -> None:
        term = self.office.term
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._log.claim()
                if not await self.office.confirm():
                    raise UnknownLeader
                await self._write([(encode_key(RecordKey(KeyType.NOOP)), None)])
        except TimeoutError:
            raise StoreTimeout(
                f"The schema log could not be taken over within {self._timeout_s * 1000:.0f} ms; try again"
            ) from None
        self._term = term
        log.info("writing to the schema log", from_offset=self._position)

    async def put(self, key: RecordKey, value: bytes | None) -> None:
        """Write one record and wait until it is part of the state. A deletion covers foreign spellings of the key."""
        await self.put_all([(key, value)])

    async def put_all(self, records: Iterable[tuple[RecordKey, bytes | None]]) -> None:
        """Write records side by side: all of them or none. Returns when they are part of the state."""
        written: list[tuple[bytes, bytes | None]] = []
        for key, value in records:
            if value is None:
                written += [(foreign, None) for foreign in self.state.foreign_keys(key)]
            written.append((encode_key(key), value))
        if not written:
            return
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._write(written)
        except TimeoutError:
            self._term = None
            raise StoreTimeout(
                f"The schema log did not acknowledge a write within {self._timeout_s * 1000:.0f} ms; it may appear later"
            ) from None
        except BaseException:
            self._term = None
            raise

    async def _write(self, records: Sequence[tuple[bytes, bytes | None]]) -> None:
        timestamp_ms = int(time.time() * 1000)
        offset = await self._log.append(records, timestamp_ms)
        if self._position == offset:
            # The reader has everything before: what lies here now is known, and need not be waited for.
            for number, (key, value) in enumerate(records):
                self._apply(LogRecord(offset + number, key, value, timestamp_ms))
            self._advance(offset + len(records))
        else:
            await self._reach(offset + len(records))

    async def _reach(self, position: int) -> None:
        while self._position < position:
            await self._moved.wait()

    def _advance(self, position: int) -> None:
        if position > self._position:
            self._position = position
            moved, self._moved = self._moved, asyncio.Event()
            moved.set()

    async def _follow(self) -> None:
        failing = False
        while True:
            try:
                records, position = await self._log.read()
            except Exception as error:  # whatever it is, the registry must not go deaf
                if not failing:
                    trace = None if isinstance(error, StoreError) else error
                    log.warning("the schema log cannot be read; trying on", error=str(error), exc_info=trace)
                failing = True
                await asyncio.sleep(0.2)
                continue
            failing = False
            known = self._position
            for record in records:
                if record.offset >= known:
                    self._apply(record)
            self._advance(position)

    def _apply(self, record: LogRecord) -> None:
        try:
            self.state.apply(record.key, record.value, offset=record.offset, timestamp_ms=record.timestamp_ms)
            self._metrics.records_read.inc()
        except UnknownKeyType as error:
            if error.keytype not in self._unknown:
                self._unknown.add(error.keytype)
                log.warning("records of the schema log are left alone", first_offset=record.offset, reason=str(error))
        except InvalidRecord as error:
            self._metrics.records_invalid.inc()
            self._invalid += 1
            if self._invalid <= _MANY_INVALID:
                log.warning("a record of the schema log was passed over", offset=record.offset, reason=str(error))
            if self._invalid == _MANY_INVALID:
                log.warning("more such records are counted, not told: registry_log_records_invalid_total")
