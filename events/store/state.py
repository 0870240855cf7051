"""The shared state of all events servers over one log: channels, managed subscriptions, committed positions.

It is a compacted topic of JSON values by key. Each server follows it, so that a write reaches the others a moment
later. A server that starts reads it from the beginning.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any, Final, Protocol

from events.errors import BusUnavailable, LaterFormat
from events.store.log import EventLog, LogRecord
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["FORMAT", "STATE_TOPIC", "EventState", "StateLog"]

logger = get_logger(__name__)

STATE_TOPIC: Final = "_tidegate-events"
FORMAT: Final = 1
"""The format of the values that this release writes. Those of a higher number come from a later release and are refused."""

_FORMAT_KEY: Final = "format"
_READY_S: Final = 10.0
_RETRY_S: Final = 0.5


class StateLog(EventLog, Protocol):
    """An event log that can create the compacted topic."""

    async def partitions(self, topic: str) -> int | None: ...

    async def create_compacted(self, topic: str) -> None:
        """Create a topic with one partition that keeps the newest value of each key; an existing one stays unchanged."""
        ...


class EventState:
    """Values by key, the same on every server. ``start`` begins to follow the log. Use it on one event loop."""

    def __init__(self, state_log: StateLog, clock_ms: Callable[[], int]) -> None:
        self._log, self._clock_ms = state_log, clock_ms
        self._values: dict[str, Any] = {}
        self._end = 0
        self._ready = asyncio.Event()
        self._grown = asyncio.Condition()
        self._listeners: set[Callable[[str], None]] = set()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="events state")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def ready(self) -> None:
        """Return once everything written before this server started is known. Raises BusUnavailable after 10 s, and LaterFormat."""
        await self._within(self._ready.wait(), "read")
        written = self._values.get(_FORMAT_KEY, FORMAT)
        if not isinstance(written, int) or written > FORMAT:
            raise LaterFormat(
                f"topic {STATE_TOPIC} has format {written}, written by a later release of Tidegate; "
                f"this one reads up to {FORMAT}: start the later release again"
            )

    async def take_format(self) -> None:
        """Write our format's number where there is none. Raises BusUnavailable, and LaterFormat."""
        if await self.get(_FORMAT_KEY) is None:
            await self.put(_FORMAT_KEY, FORMAT)

    async def check(self) -> None:
        """Raises BusUnavailable unless the state is known and the log answers now."""
        await self.ready()
        await self._log.bounds(STATE_TOPIC)

    async def get(self, key: str) -> Any:
        """The value of a key, or None."""
        await self.ready()
        return self._values.get(key)

    async def under(self, prefix: str) -> dict[str, Any]:
        """The values whose keys have this prefix, by the rest of the key, in order."""
        await self.ready()
        return {key[len(prefix) :]: self._values[key] for key in sorted(self._values) if key.startswith(prefix)}

    async def put(self, key: str, value: Any) -> None:
        """Set a value, or delete it with None. Returns when the log has it and this server knows it."""
        await self.ready()
        written = None if value is None else json.dumps(value, separators=(",", ":")).encode()
        (answer,) = await self._log.append(STATE_TOPIC, [(key.encode(), written, self._clock_ms())])
        if isinstance(answer, TidegateError):
            raise answer
        async with self._grown:
            await self._within(self._grown.wait_for(lambda: self._end > answer), "follow")

    @contextlib.contextmanager
    def listening(self, listener: Callable[[str], None]) -> Iterator[None]:
        """Call ``listener`` with the key of every change while the context lasts."""
        self._listeners.add(listener)
        try:
            yield
        finally:
            self._listeners.discard(listener)

    async def _within(self, waiting: Any, what: str) -> None:
        try:
            async with asyncio.timeout(_READY_S):
                await waiting
        except TimeoutError as error:
            raise BusUnavailable(f"Cannot {what} topic {STATE_TOPIC} of the log yet") from error

    async def _run(self) -> None:
        said = False
        while True:
            try:
                await self._follow()
            except BusUnavailable as error:
                if not said:
                    logger.warning("cannot follow the state of the events service; trying on", error=str(error))
                said = True
            except Exception:
                logger.exception("the reader of the state of the events service broke; trying on")
            await asyncio.sleep(_RETRY_S)

    async def _follow(self) -> None:
        if await self._log.partitions(STATE_TOPIC) is None:
            await self._log.create_compacted(STATE_TOPIC)
        bounds = await self._log.bounds(STATE_TOPIC)
        self._end = max(self._end, bounds.start)
        following = self._log.follow(STATE_TOPIC, self._end)
        async with contextlib.aclosing(following):
            if self._end >= bounds.readable:
                self._ready.set()
            async for piece in following:
                for record in piece.records:
                    self._apply(record)
                async with self._grown:
                    self._end = max(self._end, piece.next_offset)
                    self._grown.notify_all()
                if self._end >= bounds.readable:
                    self._ready.set()

    def _apply(self, record: LogRecord) -> None:
        try:
            key = (record.key or b"").decode()
            value = None if record.value is None else json.loads(record.value)
        except ValueError:
            logger.warning("a record in the state of the events service is not JSON", offset=record.offset)
            return
        if value is None:
            self._values.pop(key, None)
        else:
            self._values[key] = value
        for listener in list(self._listeners):
            listener(key)
