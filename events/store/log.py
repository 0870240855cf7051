"""The log as the event bus needs it: one partition per topic, appended to and read by offset."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tidegate.kit.errors import TidegateError

__all__ = ["EventLog", "LogBounds", "LogRecord", "LogSlice", "LogTransaction"]


class LogRecord(NamedTuple):
    """A record in the log."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Consecutive records. Continue reading at ``next_offset``, which can be beyond the last record's offset + 1."""

    records: Sequence[LogRecord]
    next_offset: int


@dataclass(frozen=True, slots=True)
class LogBounds:
    """``start`` is the oldest retained offset, ``end`` the next one to be assigned; readers see offsets below
    ``readable``.

    ``readable`` is less than ``end`` while a transaction is open. ``identity`` changes when the topic is recreated:
    offsets of the old one are meaningless in the new one.
    """

    start: int
    end: int
    readable: int
    identity: str = ""


class LogTransaction(Protocol):
    """Appends that take effect together."""

    async def append(self, topic: str, records: Sequence[tuple[bytes, bytes, int]]) -> list[int]:
        """The offsets of the records once the transaction is committed. Raises if the log refuses one."""
        ...


class EventLog(Protocol):
    """A log whose topics have one partition. Every method raises BusUnavailable if the log does not answer in time.

    Methods may run concurrently on one event loop.
    """

    async def append(
        self, topic: str, records: Sequence[tuple[bytes, bytes | None, int]], *, timeout_s: float | None = None
    ) -> list[int | TidegateError]:
        """Append (key, value, timestamp in ms) in order. Returns for each record its offset, or why it may be missing.

        Returns when all in-sync replicas have the records, or after ``timeout_s`` (by default the log's timeout for
        publishing). Records that time out may still arrive.
        """
        ...

    def transaction(self) -> AbstractAsyncContextManager[LogTransaction]:
        """A block whose appends are committed together at its end, or aborted if it raises.

        It may last 5 s, because an open transaction holds back all readers of its topics. Raises BusUnavailable if it
        took longer or the log does not answer; the message says whether the records may still be there.
        """
        ...

    async def settled(self, topic: str) -> None:
        """Return once it is known of every record passed to ``append`` whether the topic has it."""
        ...

    async def flushed(self, topic: str) -> None:
        """Return once the outcome of all appends that are being sent to the topic at the call is known."""
        ...

    async def bounds(self, topic: str) -> LogBounds: ...

    async def readable(self, topic: str) -> int:
        """``bounds(topic).readable``, in one request."""
        ...

    async def ends(self, topic: str, count: int) -> list[int]:
        """The next offset of each partition, for topics of others with several partitions."""
        ...

    async def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        """The offset of the first record with a timestamp at or after this one; None if there is none."""
        ...

    async def read(self, topic: str, offset: int, max_bytes: int) -> LogSlice:
        """Records from ``offset`` on, at least one unless the end is reached.

        Records deleted by retention are skipped.
        """
        ...

    def follow(self, topic: str, offset: int) -> AsyncGenerator[LogSlice, None]:
        """Records from ``offset`` on as they arrive, endlessly, until the iterator is closed."""
        ...
