"""One Bayeux session of the Streaming API: what it is subscribed to, and whether somebody waits for its events."""

from __future__ import annotations

import secrets
from typing import Protocol

from events.access import User
from events.bus.bus import Subscription
from events.fronts.cometd.bayeux import Message, Refusal, channels_of
from events.fronts.cometd.gathering import Gathering, Wake
from tidegate.kit.alarm import Alarm

__all__ = ["CometdClient"]


class WaitingConnect(Protocol):
    """A ``/meta/connect`` that has no answer yet."""

    def end(self) -> None:
        """Answer it now: a newer one has come."""

    def time_out(self) -> None:
        """Answer it, since it has waited as long as the client allows."""


class CometdClient:
    """It belongs to the user who shook hands."""

    def __init__(self, now: float, user_id: str, gathering: Gathering) -> None:
        self.id = secrets.token_hex(16)
        self.user_id = user_id
        self.subscriptions: dict[str, Subscription] = {}
        self.wake = Wake(gathering)
        self.connected = False
        """Whether a connect was answered: the first one is answered at once, later ones wait for events."""
        self.reader: User | None = None
        """The user, as it was when it might read all that is subscribed to; another object once the accounts change."""
        self.connect: WaitingConnect | None = None
        """The connect that waits; there is one at most."""
        self.patience = Alarm(self._time_out)
        """How long that may wait."""
        self.last_seen = now
        self.answered_at = -1.0
        """When a connect was."""
        self.gone = False
        self.reconnect = "none"
        """What a connect that still waits is advised once the session is gone."""

    def unsubscribe(self, message: Message) -> Message:
        for channel in channels_of(message):
            subscription = self.subscriptions.pop(channel, None)
            if subscription is None:
                raise Refusal(f"404::The session is not subscribed to {{{channel[:100]}}}")
            subscription.close()
        return {"successful": True}

    def close(self, reconnect: str = "none") -> None:
        self.gone, self.reconnect = True, reconnect
        for subscription in self.subscriptions.values():
            subscription.close()
        self.subscriptions.clear()
        self.patience.end()
        self.wake.now()

    def _time_out(self) -> None:
        if self.connect is not None:
            self.connect.time_out()
