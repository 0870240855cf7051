"""With many CometD clients an event waits a moment, so that one answer brings several events."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["Gathering", "Wake"]

GATHER_FROM: Final = 100
GATHERING_S: Final = 15e-6
MOST_GATHERING_S: Final = 0.015
"""From this many sessions on events wait for others; the wait per session, and its maximum."""


class Gathering:
    """Delays wake-ups while there are many sessions, and releases them together."""

    def __init__(self, sessions: Callable[[], int]) -> None:
        self._sessions = sessions
        self._collecting: dict[Wake, None] = {}

    @property
    def pause_s(self) -> float:
        """How long an event waits for more: a round of connects costs per client, not per event."""
        sessions = self._sessions()
        return 0.0 if sessions < GATHER_FROM else min(MOST_GATHERING_S, sessions * GATHERING_S)

    def hold(self, wake: Wake) -> bool:
        """Whether the wake-up is delayed; it then happens after the pause of the first delayed one."""
        if not self._collecting:
            pause_s = self.pause_s
            if not pause_s:
                return False
            asyncio.get_running_loop().call_later(pause_s, self._release)
        self._collecting[wake] = None
        return True

    def _release(self) -> None:
        releases, self._collecting = self._collecting, {}
        for wake in releases:
            wake.now()


class Wake:
    """Wakes the waiting connect of one client, if any: ``set`` for an event, which may be combined with others,
    otherwise ``now``.

    The connect runs in a separate turn of the loop, because the caller may not be finished.
    """

    __slots__ = ("_due", "_gathering", "look")

    def __init__(self, gathering: Gathering) -> None:
        self._gathering, self._due = gathering, False
        self.look: Callable[[], None] | None = None
        """The waiting connect's callback."""

    def set(self) -> None:
        if self.look is not None and not self._gathering.hold(self):
            self.now()

    def now(self) -> None:
        if self.look is not None and not self._due:
            self._due = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._due = False
        if self.look is not None:
            self.look()
