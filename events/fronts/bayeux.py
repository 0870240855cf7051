"""Bayeux messages: reading them from a body, and the replies to them. No session is known here."""

from __future__ import annotations

import json
from typing import Any, Final

from events.errors import InvalidReplayId

__all__ = [
    "MAX_MESSAGES",
    "Message",
    "Refusal",
    "channels_of",
    "messages_of",
    "refused",
    "replay_of",
    "reply_to",
    "unauthenticated",
]

MAX_BODY_BYTES: Final = 256 * 1024
MAX_MESSAGES: Final = 100

Message = dict[str, Any]


class Refusal(Exception):
    """Bayeux' ``error`` text, and what the client should do next."""

    def __init__(self, text: str, reconnect: str | None = None, **more: Any) -> None:
        super().__init__(text)
        self.text, self.reconnect, self.more = text, reconnect, more


def messages_of(body: bytes) -> list[Message] | None:
    """The messages of a body, or None where it has none."""
    if len(body) > MAX_BODY_BYTES:
        return None
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    found = [value] if isinstance(value, dict) else value
    if not isinstance(found, list) or not 1 <= len(found) <= MAX_MESSAGES:
        return None
    return found if all(isinstance(message, dict) for message in found) else None


def reply_to(message: Message) -> Message:
    """What every reply repeats of its message."""
    return {name: message[name] for name in ("channel", "id", "clientId", "subscription") if name in message}


def refused(refusal: Refusal) -> Message:
    reply: Message = {"successful": False, "error": refusal.text, **refusal.more}
    if refusal.reconnect is not None:
        reply["advice"] = {"reconnect": refusal.reconnect, "interval": 0}
    return reply


def unauthenticated(message: Message) -> Message:
    reason = "401::Authentication invalid"
    if message.get("channel") == "/meta/handshake":
        return refused(Refusal("403::Handshake denied", "none", ext={"sfdc": {"failureReason": reason}}))
    return refused(Refusal(reason, "none"))


def channels_of(message: Message) -> list[str]:
    """The channels of a subscribe or unsubscribe message, one or a list of them."""
    channels = message.get("subscription")
    asked = [channels] if isinstance(channels, str) else channels
    if not isinstance(asked, list) or not asked or not all(isinstance(channel, str) for channel in asked):
        raise Refusal("400::The message names no channel in 'subscription'")
    return asked


def replay_of(message: Message, channel: str) -> int | None:
    """The replay id asked for on a channel, or None; raises InvalidReplayId for what is no whole number."""
    extension = message.get("ext")
    replay = extension.get("replay") if isinstance(extension, dict) else None
    if not isinstance(replay, dict) or channel not in replay:
        return None
    asked = replay[channel]
    if isinstance(asked, float) and asked.is_integer():
        asked = int(asked)
    if isinstance(asked, bool) or not isinstance(asked, int) or asked.bit_length() > 63:
        raise InvalidReplayId(str(asked)[:50])
    return asked
