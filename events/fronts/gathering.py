"""In a crowd of CometD clients an event waits a moment, so that one answer brings several."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

__all__ = ["Gathering", "Wake"]

GATHER_FROM: Final = 100
GATHERING_S: Final = 100e-6
MOST_GATHERING_S: Final = 0.1
"""From so many sessions on an event waits a moment for others, by the session and at most: one answer brings them all."""


class Gathering:
    """Holds back who is woken by an event while there are many, and lets all go together."""

    def __init__(self, sessions: Callable[[], int]) -> None:
        self._sessions = sessions
        self._held: dict[Wake, None] = {}

    @property
    def pause_s(self) -> float:
        """How long an event waits for more: a round of connects costs by the client, not by the event."""
        sessions = self._sessions()
        return 0.0 if sessions < GATHER_FROM else min(MOST_GATHERING_S, sessions * GATHERING_S)

    def hold(self, wake: Wake) -> bool:
        """Whether it is held; then it is set after the pause of the first that is."""
        pause_s = self.pause_s
        if not pause_s:
            return False
        if not self._held:
            asyncio.get_running_loop().call_later(pause_s, self._release)
        self._held[wake] = None
        return True

    def _release(self) -> None:
        held, self._held = self._held, {}
        for wake in held:
            wake.now()


class Wake(asyncio.Event):
    """Wakes the connect of one client: ``set`` for an event, which may be gathered with others, ``now`` for anything else."""

    def __init__(self, gathering: Gathering) -> None:
        super().__init__()
        self._gathering = gathering

    def set(self) -> None:
        if not self._gathering.hold(self):
            super().set()

    def now(self) -> None:
        super().set()
