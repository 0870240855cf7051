"""A run recorded as a list of events, which can be saved, loaded and checked again.

An event is a dictionary with ``t`` (seconds since the beginning), ``who`` and ``do``. The members of each type are
described where it is recorded (``producers``, ``consumers``, ``transactions``, ``run``). A record is named by its
``id``, which is unique in a history.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["Event", "History"]

Event = dict[str, Any]


class History:
    """Events in the order they were recorded. For any thread."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.events: list[Event] = list(events)
        self._began = time.monotonic()
        self._lock = threading.Lock()

    def now(self) -> float:
        return round(time.monotonic() - self._began, 6)

    def add(self, who: str, do: str, **what: Any) -> Event:
        with self._lock:
            event = {"t": self.now(), "who": who, "do": do, **what}
            self.events.append(event)
        return event

    def of(self, *kinds: str) -> Iterator[Event]:
        return (event for event in self.events if event["do"] in kinds)

    def save(self, path: Path) -> None:
        path.write_text("".join(json.dumps(event) + "\n" for event in list(self.events)))

    @classmethod
    def load(cls, path: Path) -> History:
        return cls(json.loads(line) for line in path.read_text().splitlines())
