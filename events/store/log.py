"""What the event bus needs of a log: one partition per topic, appended to and read by offset."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tidegate.kit.errors import TidegateError

__all__ = ["EventLog", "LogBounds", "LogRecord", "LogSlice", "LogTransaction"]


class LogRecord(NamedTuple):
    """A record as the log has it."""

    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Consecutive records. ``next_offset`` is where reading goes on; it can be past the last record's offset + 1."""

    records: Sequence[LogRecord]
    next_offset: int


@dataclass(frozen=True, slots=True)
class LogBounds:
    """``start`` is the oldest kept offset, ``end`` the next one to be given out; a reader gets to ``readable``.

    ``readable`` is less than ``end`` while a transaction is open. ``identity`` changes when the topic is deleted and made
    again: offsets of the one mean nothing in the other.
    """

    start: int
    end: int
    readable: int
    identity: str = ""


class LogTransaction(Protocol):
    """Appends that count together."""

    async def append(self, topic: str, records: Sequence[tuple[bytes, bytes, int]]) -> list[int]:
        """The offsets that the records have once the transaction is committed. Raises where the log refuses one."""
        ...


class EventLog(Protocol):
    """A log whose topics have one partition. Every method raises BusUnavailable when the log does not answer in time.

    Methods may run at the same time on one event loop.
    """

    async def append(self, topic: str, records: Sequence[tuple[bytes, bytes | None, int]]) -> list[int | TidegateError]:
        """Append (key, value, timestamp in ms) in order; per record its offset, or why it is not known to be there.

        Returns when all in-sync replicas have the records. What fails by time may still arrive.
        """
        ...

    def transaction(self) -> AbstractAsyncContextManager[LogTransaction]:
        """A block whose appends are committed together at its end, and aborted when it raises.

        It may last 5 s: an open transaction holds back all readers of its topics. Raises BusUnavailable when it took
        longer or the log does not answer; the message says whether the records may still be there.
        """
        ...

    async def settled(self, topic: str) -> None:
        """Return once it is decided of every record given to ``append`` whether the topic has it."""
        ...

    async def bounds(self, topic: str) -> LogBounds: ...

    async def ends(self, topic: str, count: int) -> list[int]:
        """Of a topic with several partitions, as others write them: the next offset of each."""
        ...

    async def offset_at(self, topic: str, timestamp_ms: int) -> int | None:
        """The offset of the first record whose timestamp is at or after this one; None when there is none."""
        ...

    async def read(self, topic: str, offset: int, max_bytes: int) -> LogSlice:
        """Records from ``offset`` on, at least one unless the end is reached; what retention took away is passed over."""
        ...

    def follow(self, topic: str, offset: int) -> AsyncGenerator[LogSlice, None]:
        """Records from ``offset`` on as they come, without end, until the iterator is closed."""
        ...
