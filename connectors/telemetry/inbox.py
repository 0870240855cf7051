"""Messages that are not in the log yet: a bounded queue between the listeners' thread and the task's."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from dataclasses import dataclass
from datetime import datetime
from typing import Any

__all__ = ["Arrival", "Counts", "Inbox"]


@dataclass(frozen=True, slots=True)
class Arrival:
    """A message as it came. ``error`` says why it is malformed, if that is known already."""

    listener: str
    sender: str
    received: datetime
    data: bytes
    error: str = ""
    signal: str = ""
    """Of OTLP: logs, metrics or traces."""
    request: Any = None
    """Of OTLP: the decoded request."""
    number: int = 0
    """Of OTLP: tells the request from others that wait for the log."""


@dataclass(slots=True)
class Counts:
    """Messages since the start of the task."""

    received: int = 0
    dropped: int = 0
    """UDP messages for which the queue had no room."""
    malformed: int = 0
    refused: int = 0
    """Connections above the limit, and HTTP requests that got 503."""


class Inbox:
    """At most so many messages and bytes; one message fits always. ``loop`` is the listeners'."""

    def __init__(self, most: int, most_bytes: int, loop: asyncio.AbstractEventLoop) -> None:
        self._most, self._most_bytes, self._loop = most, most_bytes, loop
        self._arrivals: deque[Arrival] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._room = asyncio.Event()

    def offer(self, arrival: Arrival) -> bool:
        """False if there is no room for it."""
        with self._changed:
            size = len(arrival.data)
            full = len(self._arrivals) >= self._most or self._bytes + size > self._most_bytes
            if full and self._arrivals:
                self._room.clear()
                return False
            self._arrivals.append(arrival)
            self._bytes += size
            self._changed.notify()
            return True

    async def put(self, arrival: Arrival) -> None:
        """Wait until there is room for it."""
        while not self.offer(arrival):
            await self._room.wait()

    def take(self, most: int, most_bytes: int, patience_s: float) -> list[Arrival]:
        """From the task's thread: what is there, after a wait for the first; at least one fits always."""
        with self._changed:
            self._changed.wait_for(lambda: bool(self._arrivals), patience_s)
            taken: list[Arrival] = []
            size = 0
            while self._arrivals and len(taken) < most:
                size += len(self._arrivals[0].data)
                if taken and size > most_bytes:
                    break
                taken.append(self._arrivals.popleft())
                self._bytes -= len(taken[-1].data)
        if taken:
            self._loop.call_soon_threadsafe(self._room.set)
        return taken

    def __len__(self) -> int:
        return len(self._arrivals)
