"""Bayeux messages: parsing them from a body, and replies. Independent of sessions."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from events.bus.bus import EARLIEST, LATEST, Stale, Start
from events.errors import InvalidReplayId
from events.fronts.requests import instant_ms

__all__ = [
    "MAX_MESSAGES",
    "Message",
    "Refusal",
    "channels_of",
    "messages_of",
    "refused",
    "reply_to",
    "start_of",
    "unauthenticated",
]

MAX_BODY_BYTES: Final = 256 * 1024
MAX_MESSAGES: Final = 100

Message = dict[str, Any]


class Refusal(Exception):
    """Bayeux' ``error`` text, and advice on what the client should do next."""

    def __init__(self, text: str, reconnect: str | None = None, **more: Any) -> None:
        super().__init__(text)
        self.text, self.reconnect, self.more = text, reconnect, more


def messages_of(body: bytes) -> list[Message] | None:
    """The messages of a body; None if it has none."""
    if len(body) > MAX_BODY_BYTES:
        return None
    try:
        value = orjson.loads(body)
    except ValueError:
        try:
            value = json.loads(body)  # which also reads lone surrogates
        except (ValueError, RecursionError):
            return None
    messages = [value] if isinstance(value, dict) else value
    if not isinstance(messages, list) or not 1 <= len(messages) <= MAX_MESSAGES:
        return None
    return messages if all(isinstance(message, dict) for message in messages) else None


def reply_to(message: Message) -> Message:
    """The members that every reply copies from its message."""
    return {name: message[name] for name in ("channel", "id", "clientId", "subscription") if name in message}


def refused(refusal: Refusal) -> Message:
    reply: Message = {"successful": False, "error": refusal.text, **refusal.more}
    if refusal.reconnect is not None:
        reply["advice"] = {"reconnect": refusal.reconnect, "interval": 0}
    return reply


def unauthenticated(message: Message, authorization: str | None) -> Message:
    reason = "401::Authentication invalid" if authorization else "401::Request requires authentication"
    if message.get("channel") == "/meta/handshake":
        return refused(Refusal("403::Handshake denied", "none", ext={"sfdc": {"failureReason": reason}}))
    return refused(Refusal(reason, "none"))


def channels_of(message: Message) -> list[str]:
    """The channels of a subscribe or unsubscribe message, which has one or a list."""
    channels = message.get("subscription")
    asked = [channels] if isinstance(channels, str) else channels
    if not isinstance(asked, list) or not asked or not all(isinstance(channel, str) for channel in asked):
        raise Refusal("400::Channel name not specified")
    return asked


def start_of(message: Message, channel: str, stale: Stale) -> Start | None:
    """The requested start of a subscription to a channel; None if the message has none.

    ``ext.replay`` is Salesforce's. ``ext.tidegate`` is ours: ``replayFrom``, a time by channel, and ``staleReplay``.
    Raises InvalidReplayId for a replay id that is not a whole number, unless stale ids are tolerated.
    """
    extension = message.get("ext")
    extension = extension if isinstance(extension, dict) else {}
    members = extension.get("tidegate")
    members = members if isinstance(members, dict) else {}
    if "staleReplay" in members:
        try:
            stale = Stale(members["staleReplay"])
        except ValueError:
            raise Refusal("400::ext.tidegate.staleReplay must be error, earliest or latest") from None
    times = members.get("replayFrom")
    if isinstance(times, dict) and channel in times:
        return Start(since_ms=instant_ms(times[channel]), stale=stale)
    replay = extension.get("replay")
    if not isinstance(replay, dict) or channel not in replay:
        return None
    try:
        return Start(_replay_id(replay[channel]), stale=stale)
    except InvalidReplayId:
        if stale is Stale.ERROR:
            raise
        return Start(EARLIEST if stale is Stale.EARLIEST else LATEST)


def _replay_id(asked: object) -> int:
    if isinstance(asked, float) and asked.is_integer():
        asked = int(asked)
    if isinstance(asked, bool) or not isinstance(asked, int) or asked.bit_length() > 63:
        raise InvalidReplayId(str(asked)[:50])
    return asked
