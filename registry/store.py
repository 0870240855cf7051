"""The registry's memory: a log of records, replayed at the start, appended to by every write and read back before it counts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from registry.errors import StoreError, StoreTimeout
from registry.metrics import RegistryMetrics
from registry.records import InvalidRecord, KeyType, RecordKey, encode_key
from registry.state import State
from tidegate.kit.logs import logger

__all__ = ["Log", "LogRecord", "Store"]

log = logger(__name__)


@dataclass(frozen=True, slots=True)
class LogRecord:
    offset: int
    key: bytes | None
    value: bytes | None


class Log(Protocol):
    """One partition, in order. Methods raise StoreError; StoreTimeout where the outcome of an append is unknown.

    ``append`` returns the offset once the log has acknowledged the record; appends keep the order of their calls.
    ``read`` waits for the records after those it returned before, beginning with the first of the log.
    """

    async def start(self) -> None: ...

    async def append(self, key: bytes, value: bytes | None) -> int: ...

    async def read(self) -> Sequence[LogRecord]: ...

    async def stop(self) -> None: ...


class Store:
    """State that follows a log.

    Writers hold ``writing`` from the look at the state until their last write has come back, one at a time.
    """

    def __init__(self, source: Log, metrics: RegistryMetrics, *, timeout_ms: int) -> None:
        self.state = State()
        self._log = source
        self._metrics = metrics
        self._timeout_s = timeout_ms / 1000
        self._lock = asyncio.Lock()
        self._applied = -1
        self._moved = asyncio.Event()
        self._reader: asyncio.Task[None] | None = None
        self._uncertain = False

    async def start(self) -> None:
        """Replay the log; returns when everything written before is known. Raises StoreError."""
        await self._log.start()
        if self._reader is None:
            self._reader = asyncio.create_task(self._follow(), name="registry store")
        # Our own record coming back proves that all before it has been read, whatever compaction left of it.
        offset = await self._log.append(encode_key(RecordKey(KeyType.NOOP)), None)
        while self._applied < offset:
            await self._next_move()
        self._uncertain = False

    async def stop(self) -> None:
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
        await self._log.stop()

    @contextlib.asynccontextmanager
    async def writing(self) -> AsyncIterator[State]:
        """The right to write, and the state to decide by."""
        try:
            await asyncio.wait_for(self._lock.acquire(), self._timeout_s)
        except TimeoutError:
            raise StoreTimeout("Earlier writes to the schema log are still waiting for it; try again") from None
        try:
            if self._uncertain:
                # An earlier write may still arrive: a record behind it shows whether it did.
                await self._write(encode_key(RecordKey(KeyType.NOOP)), None)
                self._uncertain = False
            yield self.state
        finally:
            self._lock.release()

    async def put(self, key: RecordKey, value: bytes | None) -> None:
        """Write one record and wait until it is part of the state. A deletion covers foreign spellings of the key."""
        if value is None:
            for foreign in self.state.foreign_keys(key):
                await self._write(foreign, None)
        await self._write(encode_key(key), value)

    async def _write(self, key: bytes, value: bytes | None) -> None:
        try:
            async with asyncio.timeout(self._timeout_s):
                offset = await self._log.append(key, value)
                while self._applied < offset:
                    await self._next_move()
        except TimeoutError:
            self._uncertain = True
            raise StoreTimeout(
                f"The schema log did not acknowledge a write within {self._timeout_s * 1000:.0f} ms; it may appear later"
            ) from None
        except (StoreError, asyncio.CancelledError):
            self._uncertain = True
            raise

    async def _next_move(self) -> None:
        await self._moved.wait()

    async def _follow(self) -> None:
        failing = False
        while True:
            try:
                records = await self._log.read()
            except Exception as error:  # whatever it is, the registry must not go deaf
                if not failing:
                    trace = None if isinstance(error, StoreError) else error
                    log.warning("the schema log cannot be read; trying on", error=str(error), exc_info=trace)
                failing = True
                await asyncio.sleep(0.2)
                continue
            failing = False
            for record in records:
                self._apply(record)
            moved, self._moved = self._moved, asyncio.Event()
            moved.set()

    def _apply(self, record: LogRecord) -> None:
        try:
            self.state.apply(record.key, record.value)
            self._metrics.records_read.inc()
        except InvalidRecord as error:
            self._metrics.records_invalid.inc()
            log.warning("a record of the schema log was passed over", offset=record.offset, reason=str(error))
        self._applied = record.offset
