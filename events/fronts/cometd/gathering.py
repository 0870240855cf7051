"""In a crowd of CometD clients an event waits a moment, so that one answer brings several."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["Gathering", "Wake"]

GATHER_FROM: Final = 100
GATHERING_S: Final = 15e-6
MOST_GATHERING_S: Final = 0.015
"""From so many sessions on an event waits a moment for others, by the session and at most: one answer brings them all."""


class Gathering:
    """Holds back who is woken by an event while there are many, and lets all go together."""

    def __init__(self, sessions: Callable[[], int]) -> None:
        self._sessions = sessions
        self._collecting: dict[Wake, None] = {}

    @property
    def pause_s(self) -> float:
        """How long an event waits for more: a round of connects costs by the client, not by the event."""
        sessions = self._sessions()
        return 0.0 if sessions < GATHER_FROM else min(MOST_GATHERING_S, sessions * GATHERING_S)

    def hold(self, wake: Wake) -> bool:
        """Whether it is held; then its turn comes after the pause of the first that is."""
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
    """Wakes the connect of one client, if one waits: ``set`` for an event, which may be gathered with others, else ``now``.

    The connect looks in a turn of its own: who wakes may be in the midst of something.
    """

    __slots__ = ("_due", "_gathering", "look")

    def __init__(self, gathering: Gathering) -> None:
        self._gathering, self._due = gathering, False
        self.look: Callable[[], None] | None = None
        """What the connect that waits does then."""

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
