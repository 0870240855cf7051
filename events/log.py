"""What the event bus needs of a log: one partition per topic, appended to and read by offset."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["EventLog", "LogRecord", "LogSlice"]


@dataclass(frozen=True, slots=True)
class LogRecord:
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


class EventLog(Protocol):
    """A log whose topics have one partition. Every method raises BusUnavailable when the log does not answer in time.

    Methods may run at the same time on one event loop. ``append`` returns when the record is acknowledged by all
    in-sync replicas; appends that are started in order to one topic are kept in order.
    """

    async def append(self, topic: str, key: bytes, value: bytes, timestamp_ms: int) -> int:
        """The offset of the record."""
        ...

    async def bounds(self, topic: str) -> tuple[int, int]:
        """The offset of the oldest record that is kept, and the one that the next record will get."""
        ...

    async def read(self, topic: str, offset: int, max_bytes: int) -> LogSlice:
        """Records from ``offset`` on, at least one unless the end is reached; what retention took away is passed over."""
        ...

    def follow(self, topic: str, offset: int) -> AsyncIterator[LogSlice]:
        """Records from ``offset`` on as they come, without end, until the iterator is closed."""
        ...
