"""The registry's memory: a log of records, replayed at the start.

Every write is appended, and takes effect when it is read back.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Coroutine, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from registry.errors import RegistryError, SchemaTooLarge, StoreError, StoreTimeout
from registry.log.errors import NotCaughtUp, UnknownLeader
from registry.log.office import Alone, Office
from registry.metrics import RegistryMetrics
from registry.model.records import InvalidRecord, KeyType, RecordKey, UnknownKeyType, encode_key
from registry.model.state import State
from tidegate.kit.logs import get_logger

__all__ = ["Fenced", "Log", "LogRecord", "Store"]

logger = get_logger(__name__)

_MANY_INVALID: Final = 10
_MOST_TOGETHER: Final = 100
_LONGEST_REASON: Final = 200
_READ_AGAIN_S: Final = 0.2
_NO_PROGRESS_S: Final = 30.0
"""How long a start waits for the next records if the log has more."""
_STOPPED: Final = "The registry stopped before the schema log acknowledged a write"


@dataclass(frozen=True, slots=True)
class LogRecord:
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int | None = None


class Fenced(StoreError):
    """Another registry has claimed the log. The records were not written and will not be."""

    error_code = 50004
    retriable = True


class Log(Protocol):
    """One ordered partition. Methods raise StoreError; StoreTimeout if the outcome of an append is unknown.

    ``claim`` makes this the only writer: previous claimants are refused from our first append on. ``append`` returns
    the offset of the first record once the log has acknowledged all of them; their offsets are consecutive. It raises
    Fenced if another registry has claimed the log. After any other failure but SchemaTooLarge the log has to be claimed
    again. ``read`` waits for the next records, starting with the first of the log, and returns them with the offset up
    to which they are complete. ``end`` returns the offset after the last record.
    """

    async def start(self) -> None: ...

    async def claim(self) -> None: ...

    async def append(self, records: Sequence[tuple[bytes, bytes | None]], timestamp_ms: int) -> int: ...

    async def read(self) -> tuple[Sequence[LogRecord], int]: ...

    async def end(self) -> int: ...

    async def stop(self) -> None: ...


@dataclass(slots=True)
class _Write:
    records: list[tuple[bytes, bytes | None]]
    done: asyncio.Future[None]


def _fail(writes: Iterable[_Write], error: RegistryError) -> None:
    for write in writes:
        if not write.done.done():
            write.done.set_exception(error)
            write.done.exception()  # mark as retrieved: waiting callers raise it


class Store:
    """The state, which follows a log.

    A writer holds ``writing`` from its first read of the state until its last write is read back; only one can.
    Registrations hold ``registering``; many can, and their writes share batches.

    A term begins with a claim of the log. Then the election is asked whether this registry is still the writer, so that
    the claim of any later one comes after ours. Then a record of ours is written and read back: all earlier writers'
    records are before it, and only we can write after it. The same resolves a write whose outcome is unknown.
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
        self._stopped = False
        self._unread: str | None = None
        """Why the log can't be read at the moment; None if it can."""
        self._asking: asyncio.Future[int] | None = None
        self._queue: list[_Write] = []
        self._flushing: asyncio.Task[None] | None = None
        self._claims: dict[Hashable, asyncio.Future[None]] = {}
        self._alone: asyncio.Future[None] | None = None
        """The write of the holder of ``writing``."""
        self._sharing = 0
        self._changed = asyncio.Event()
        """Set, and replaced, when a holder of ``registering`` leaves or the queue becomes empty."""
        self._term: int | None = None
        """The term for which the log was taken over; None if a write with unknown outcome may be in it."""
        self._invalid = 0
        self._unknown: set[str] = set()
        self._refused: dict[int, str] = {}
        """Records skipped since the last append began, by offset: a writer must not consider its own skipped record
        stored.
        """

    @property
    def authoritative(self) -> bool:
        """Whether the state is complete: this registry writes, has taken over, and is still elected."""
        return self._term == self.office.term and self.office.certain

    @property
    def position(self) -> int:
        """The offset up to which the state is complete."""
        return self._position

    async def start(self) -> None:
        """Replay the log. Returns when everything written before the call was read.

        Raises StoreError, and StoreTimeout if the log has more records but returns none for a while.
        """
        await self._log.start()
        if self._reader is None:
            self._start_reader()
        end = await self._log.end()
        while self._position < end:
            try:
                async with asyncio.timeout(max(self._timeout_s, _NO_PROGRESS_S)):
                    await self._moved.wait()
            except TimeoutError:
                raise StoreTimeout(
                    f"The schema log ends at offset {end}, but nothing is to be read from offset {self._position} on"
                ) from None

    async def stop(self) -> None:
        self._stopped = True
        reader, self._reader = self._reader, None
        for task in (self._flushing, reader):
            if task is not None:
                task.cancel()
                await asyncio.wait([task])
        self._fail_pending((), StoreError(_STOPPED))  # if the task had not started
        await self._log.stop()

    async def require_caught_up(self) -> None:
        """Raises NotCaughtUp, with the reason, unless everything in the log was read in time."""
        try:
            if self._unread is not None:
                raise StoreError(self._unread)
            async with asyncio.timeout(self._timeout_s):
                await self._reach(await self._end())
        except (TimeoutError, StoreError) as error:
            raise self._not_caught_up(error) from error

    def _not_caught_up(self, error: Exception) -> NotCaughtUp:
        return NotCaughtUp(
            f"This registry has read the schema log up to offset {self._position} and cannot read on now: "
            f"{error or 'no answer in time'}"
        )

    async def take_office(self) -> None:
        """Do the work of a term's first write now. Raises StoreError, or UnknownLeader if the term is over."""
        async with self.writing():
            pass

    async def catch_up(self) -> bool:
        """Read what was written before this call. Returns whether there was anything new. Raises NotCaughtUp.

        The writer need not read: it wrote everything in the log.
        """
        if self.authoritative:
            return False
        before = self._position
        try:
            async with asyncio.timeout(self._timeout_s):
                await self._reach(await self._end())
        except (TimeoutError, StoreError) as error:
            raise self._not_caught_up(error) from error
        return self._position > before

    async def _end(self) -> int:
        """The end of the log, requested once for all waiting callers.

        A request sent before a call does not count for it.
        """
        if self._asking is not None:
            with contextlib.suppress(StoreError):
                await asyncio.shield(self._asking)
        if self._asking is None:
            self._asking = asyncio.ensure_future(self._ask_end())
            self._asking.add_done_callback(self._on_end_offset)
        return await asyncio.shield(self._asking)

    async def _ask_end(self) -> int:
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._log.end()
        except TimeoutError:
            raise StoreTimeout(
                f"The schema log did not say within {self._timeout_s * 1000:.0f} ms where it ends"
            ) from None

    def _on_end_offset(self, asking: asyncio.Future[int]) -> None:
        self._asking = None
        if not asking.cancelled():
            asking.exception()  # mark as retrieved: waiting callers raise it

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[State]:
        """The exclusive right to write, and the state to decide by.

        Raises NotLeader or UnknownLeader if another registry writes.
        """
        async with self._turn():
            await self._within(self._drained())
            yield self.state

    @contextlib.asynccontextmanager
    async def registering(self) -> AsyncIterator[State]:
        """The right to write concurrently with other holders.

        A decision must not depend on pending ``enqueue`` calls of others; their ``claims`` identify them (see
        ``under_way``). Raises the errors of ``writing``.
        """
        async with self._turn():
            self._sharing += 1
        try:
            yield self.state
        finally:
            self._sharing -= 1
            self._wake()

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """A turn in the queue, with the log taken over and no write of an earlier ``writing`` pending."""
        self.office.require()
        await self._within(self._lock.acquire())
        try:
            if self._alone is not None:
                await self._within(asyncio.wait([self._alone]))  # its owner was cancelled or is done
                self._alone = None
            self.office.require()
            if self._term != self.office.term:
                await self._within(self._drained())
                await self._begin_term()
            yield
        finally:
            self._lock.release()

    async def _within(self, waiting: Coroutine[Any, Any, object]) -> None:
        """Wait for earlier writes, with a time limit."""
        try:
            async with asyncio.timeout(self._timeout_s):
                await waiting
        except TimeoutError:
            raise StoreTimeout("Earlier writes to the schema log are still waiting for it; try again") from None

    async def _drained(self) -> None:
        while self._sharing or self._flushing is not None:
            await self._changed.wait()

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

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
        except RegistryError:
            raise
        except Exception as unforeseen:
            logger.exception("taking over the schema log failed")
            raise StoreError(
                f"Taking over the schema log met an error that was not foreseen: {unforeseen!r}"
            ) from unforeseen
        self._term = term
        self.state.promised.clear()
        logger.info("writing to the schema log", from_offset=self._position)

    async def put(self, key: RecordKey, value: bytes | None) -> None:
        """Write one record and wait until it is part of the state.

        Call it within ``writing``. A deletion also covers foreign spellings of the key.
        """
        await self.put_all([(key, value)])

    async def put_all(self, records: Iterable[tuple[RecordKey, bytes | None]]) -> None:
        """Write all records with consecutive offsets, or none.

        Call it within ``writing``. Returns when they are part of the state.
        """
        self._alone = self.enqueue(records)
        await asyncio.shield(self._alone)
        self._alone = None

    def under_way(self, claims: Iterable[Hashable]) -> asyncio.Future[None] | None:
        """A pending write that was enqueued with one of these claims."""
        return next((self._claims[claim] for claim in claims if claim in self._claims), None)

    def enqueue(
        self, records: Iterable[tuple[RecordKey, bytes | None]], claims: Sequence[Hashable] = ()
    ) -> asyncio.Future[None]:
        """Write records, batched with other callers' records. Done when they are part of the state.

        ``claims`` identify what this write decides about, for ``under_way``. They are released when the write is done.
        """
        written: list[tuple[bytes, bytes | None]] = []
        for key, value in records:
            if value is None:
                written += [(foreign, None) for foreign in self.state.foreign_keys(key)]
            written.append((encode_key(key), value))
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        if not written:
            done.set_result(None)
            return done
        for claim in claims:
            self._claims[claim] = done
        done.add_done_callback(lambda _: self._give_up(claims))
        self._queue.append(_Write(written, done))
        if self._flushing is None:
            self._flushing = asyncio.create_task(self._flush(), name="registry writes")
        return done

    def _give_up(self, claims: Sequence[Hashable]) -> None:
        for claim in claims:
            self._claims.pop(claim, None)

    async def _flush(self) -> None:
        """Append the queue. Records that arrive during an append form the next batch.

        However this ends, every write that it took, or that is queued then, gets an outcome.
        """
        taken: list[_Write] = []
        error = StoreError(_STOPPED)
        try:
            while self._queue:
                taken, self._queue = self._queue[:_MOST_TOGETHER], self._queue[_MOST_TOGETHER:]
                await self._append_together(taken)
        except StoreError as failure:
            error = StoreError(f"Not written, because an earlier write failed; try again: {failure.message}")
        except Exception as unforeseen:
            logger.exception("a write to the schema log failed")
            error = StoreError(f"A write to the schema log met an error that was not foreseen: {unforeseen!r}")
        finally:
            self._fail_pending(taken, error)

    def _fail_pending(self, taken: Iterable[_Write], error: StoreError) -> None:
        """Fail the writes without an outcome."""
        writes, self._queue = [*taken, *self._queue], []
        _fail(writes, error)
        self._flushing = None
        self._wake()

    async def _append_together(self, writes: list[_Write]) -> None:
        """Raises the errors of ``_append``."""
        try:
            await self._append(writes)
        except SchemaTooLarge as error:
            if len(writes) == 1:
                _fail(writes, error)
            else:  # one of them is too large, or all together
                for write in writes:
                    await self._append_together([write])

    async def _append(self, writes: list[_Write]) -> None:
        """Raises StoreError if the records are not, or may not be, in the log.

        Nothing can be written before the next term then.
        """
        try:
            self.office.require()
            if self._term != self.office.term:
                raise StoreError("Not written: an earlier write to the schema log failed; try again")
            async with asyncio.timeout(self._timeout_s):
                offset = await self._write([record for write in writes for record in write.records])
        except SchemaTooLarge:
            raise
        except TimeoutError:
            self._term = None
            error = StoreTimeout(
                f"The schema log did not acknowledge a write within {self._timeout_s * 1000:.0f} ms; it may appear later"
            )
            _fail(writes, error)
            raise error from None
        except StoreError as failure:
            self._term = None
            _fail(writes, failure)
            raise
        except BaseException:
            self._term = None
            raise
        for write in writes:
            behind = offset + len(write.records)
            self._answer(write, range(offset, behind))
            offset = behind

    def _answer(self, write: _Write, offsets: range) -> None:
        """Complete a write, with an error if the state refused its records."""
        reason = next((self._refused[offset] for offset in offsets if offset in self._refused), None)
        if reason is not None:
            _fail([write], StoreError(f"The schema log has the write, but this registry cannot take it in: {reason}"))
        elif not write.done.done():
            write.done.set_result(None)

    async def _write(self, records: Sequence[tuple[bytes, bytes | None]]) -> int:
        """The offset of the first record, once all are part of the state."""
        timestamp_ms = int(time.time() * 1000)
        self._refused.clear()
        offset = await self._log.append(records, timestamp_ms)
        if self._position == offset:
            # The reader has everything before, so the records here are known and need not be awaited.
            for number, (key, value) in enumerate(records):
                self._apply(LogRecord(offset + number, key, value, timestamp_ms))
            self._advance(offset + len(records))
        else:
            await self._reach(offset + len(records))
        return offset

    async def _reach(self, position: int) -> None:
        while self._position < position:
            await self._moved.wait()

    def _advance(self, position: int) -> None:
        if position > self._position:
            self._position = position
            moved, self._moved = self._moved, asyncio.Event()
            moved.set()

    def _start_reader(self) -> None:
        self._reader = asyncio.create_task(self._follow(), name="registry store")
        self._reader.add_done_callback(self._read_on)

    def _read_on(self, reader: asyncio.Task[None]) -> None:
        """Restart the reader if it ended unexpectedly."""
        if reader is not self._reader:
            return
        error = asyncio.CancelledError() if reader.cancelled() else reader.exception()
        self._unread = f"its reader died of {error!r}"
        self._metrics.reader_restarts.inc()
        logger.error("the reader of the schema log died; starting it again", from_offset=self._position, exc_info=error)
        self._reader = None
        asyncio.get_running_loop().call_later(_READ_AGAIN_S, self._start_reader_again)

    def _start_reader_again(self) -> None:
        if self._reader is None and not self._stopped:
            self._start_reader()

    async def _follow(self) -> None:
        while True:
            try:
                records, position = await self._log.read()
            except Exception as error:  # whatever the error is, the registry must continue to read
                if self._unread is None:
                    trace = None if isinstance(error, StoreError) else error
                    logger.warning("the schema log cannot be read; trying on", error=str(error), exc_info=trace)
                self._unread = str(error) or repr(error)
                await asyncio.sleep(_READ_AGAIN_S)
                continue
            self._unread = None
            known = self._position
            for record in records:
                if record.offset >= known:
                    self._apply(record)
            self._advance(position)

    def _apply(self, record: LogRecord) -> None:
        """Apply the next record. An invalid one is logged, counted and skipped."""
        trace: Exception | None = None
        try:
            self.state.apply(record.key, record.value, offset=record.offset, timestamp_ms=record.timestamp_ms)
            self._metrics.records_read.inc()
            return
        except UnknownKeyType as error:
            if error.keytype not in self._unknown:
                self._unknown.add(error.keytype)
                logger.warning(
                    "records of the schema log are left alone", first_offset=record.offset, reason=str(error)
                )
            return
        except InvalidRecord as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - a record nobody thought of must not keep the others away
            reason, trace = f"it could not be understood: {error!r}"[:_LONGEST_REASON], error
        self._metrics.records_invalid.inc()
        self._invalid += 1
        if self._flushing is not None:
            self._refused[record.offset] = reason
        if self._invalid <= _MANY_INVALID:
            key = (record.key or b"")[:_LONGEST_REASON].decode(errors="backslashreplace")
            logger.warning(
                "a record of the schema log was passed over",
                offset=record.offset,
                key=key,
                reason=reason,
                exc_info=trace,
            )
        if self._invalid == _MANY_INVALID:
            logger.warning("more such records are counted, not told: registry_log_records_invalid_total")
