"""One Bayeux session of the Streaming API: its subscriptions, and its waiting connect."""

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
    """A ``/meta/connect`` without an answer yet."""

    def end(self) -> None:
        """Answer it now, because a newer one has arrived."""

    def time_out(self) -> None:
        """Answer it, because it has waited as long as the client permits."""


class CometdClient:
    """A session. It belongs to the user that sent the handshake."""

    def __init__(self, now: float, user_id: str, gathering: Gathering) -> None:
        self.id = secrets.token_hex(16)
        self.user_id = user_id
        self.subscriptions: dict[str, Subscription] = {}
        self.wake = Wake(gathering)
        self.connected = False
        """Whether a connect was answered: the first one is answered at once, later ones wait for events."""
        self.reader: User | None = None
        """The user when read access to all subscriptions was last checked; another object once the accounts change."""
        self.connect: WaitingConnect | None = None
        """The waiting connect, of which there is at most one."""
        self.patience = Alarm(self._time_out)
        """How long it may wait."""
        self.last_seen = now
        self.answered_at = -1.0
        """The time of the last connect."""
        self.ended = False
        self.reconnect = "none"
        """The advice for a waiting connect when the session has ended."""

    def unsubscribe(self, message: Message) -> Message:
        for channel in channels_of(message):
            subscription = self.subscriptions.pop(channel, None)
            if subscription is None:
                raise Refusal(f"404::The session is not subscribed to {{{channel[:100]}}}")
            subscription.close()
        return {"successful": True}

    def close(self, reconnect: str = "none") -> None:
        self.ended, self.reconnect = True, reconnect
        for subscription in self.subscriptions.values():
            subscription.close()
        self.subscriptions.clear()
        self.patience.end()
        self.wake.now()

    def _time_out(self) -> None:
        if self.connect is not None:
            self.connect.time_out()
