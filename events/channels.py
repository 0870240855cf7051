"""Custom channels: platform events grouped into one stream, each member with a filter (Salesforce's PlatformEventChannel).

A channel is a topic of its own, ``X__chn``, into which ``events.relay`` copies the events that pass. So it has replay ids,
retention and subscribers like any event, and a filter is worked out once, however many subscribers there are.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Final

from events.access import long_id
from events.bus import Stale
from events.catalog import Catalog, TopicStore
from events.errors import InvalidMetadata, NotThere, UnknownEvent
from events.filters import Filter
from events.log import EventLog
from events.payloads import EventSchema
from events.state import EventState

__all__ = ["Channel", "ChannelMember", "Channels", "Subscribable"]

_CHANNEL: Final = "channel/"
_MEMBER: Final = "channel-member/"
_NAME: Final = re.compile(r"[A-Za-z](?:_?[A-Za-z0-9])*__chn")
_MEMBER_NAME: Final = re.compile(r"[A-Za-z](?:_?[A-Za-z0-9])*")


@dataclass(frozen=True, slots=True)
class Channel:
    """A definition. ``stale_replay`` is for subscribers that do not say what a stale replay id leads to."""

    name: str
    label: str
    stale_replay: str = ""

    @property
    def id(self) -> str:
        return _id("0YL", self.name)

    @property
    def metadata(self) -> dict[str, Any]:
        ours = {"staleReplay": self.stale_replay} if self.stale_replay else {}
        return {"channelType": "event", "eventType": "custom", "label": self.label} | ours


@dataclass(frozen=True, slots=True)
class ChannelMember:
    """One event of a channel; ``since`` is the offset in its topic from which on the channel has its events."""

    name: str
    channel: str
    event: str
    filter: str = ""
    since: int = 0

    @property
    def id(self) -> str:
        return _id("0v8", self.name)

    @property
    def metadata(self) -> dict[str, Any]:
        return {
            "enrichedFields": [],
            "eventChannel": self.channel,
            "filterExpression": self.filter or None,
            "selectedEntity": self.event,
        }


@dataclass(frozen=True, slots=True)
class Subscribable:
    """What a channel such as ``/event/X__e`` or ``/event/X__chn`` stands for."""

    topic: str
    schema: EventSchema | None
    """Of an event; None for a custom channel, whose events say theirs."""
    stale_replay: Stale | None = None


class Channels:
    """Channels and their members, in the state that the servers share. Names are read without regard to case."""

    def __init__(
        self, state: EventState, catalog: Catalog, event_log: EventLog, topics: TopicStore, retention_ms: int
    ) -> None:
        self._state, self._catalog, self._log, self._topics = state, catalog, event_log, topics
        self._retention_ms = retention_ms

    async def subscribable(self, path: str) -> Subscribable:
        """What a subscriber names as ``/event/NAME``; raises UnknownEvent."""
        if not path.startswith("/event/"):
            raise UnknownEvent(path)
        name = path.removeprefix("/event/")
        if not name.lower().endswith("__chn"):
            schema = await self._catalog.find(name)
            return Subscribable(schema.definition.name, schema)
        channel = await self.find(name)
        if channel is None:
            raise UnknownEvent(name)
        return Subscribable(channel.name, None, Stale(channel.stale_replay) if channel.stale_replay else None)

    async def all(self) -> list[Channel]:
        return [Channel(**value) for value in (await self._state.under(_CHANNEL)).values()]

    async def find(self, name: str) -> Channel | None:
        held = await self._state.get(_CHANNEL + name.lower()) if len(name) <= 100 else None
        return None if held is None else Channel(**held)

    async def members(self, channel: str = "") -> list[ChannelMember]:
        """All members, or those of one channel."""
        every = [ChannelMember(**value) for value in (await self._state.under(_MEMBER)).values()]
        return [member for member in every if not channel or member.channel.lower() == channel.lower()]

    async def define(self, name: str, metadata: Mapping[str, Any]) -> Channel:
        """Make or change a channel and make its topic where it is missing. Raises InvalidMetadata."""
        made = _parsed_channel(name, metadata)
        held = await self.find(name)
        made = made if held is None else Channel(held.name, made.label, made.stale_replay)
        if await self._topics.partitions(made.name) is None:
            await self._topics.create(made.name, self._retention_ms)
        await self._state.put(_CHANNEL + name.lower(), asdict(made))
        return made

    async def delete(self, name: str) -> None:
        """Forget a channel without members; its topic stays. Raises InvalidMetadata while it has members."""
        if members := await self.members(name):
            raise InvalidMetadata(f"Channel {name} has the member {members[0].name}; delete its members first")
        await self._state.put(_CHANNEL + name.lower(), None)

    async def define_member(self, name: str, metadata: Mapping[str, Any]) -> ChannelMember:
        """Make or change a member. Its events are in the channel from now on. Raises InvalidMetadata."""
        given = _parsed_member(name, metadata)
        channel = await self.find(given.channel)
        if channel is None:
            raise InvalidMetadata(f"eventChannel {given.channel[:100]!r} does not exist", fields=("eventChannel",))
        try:
            schema = await self._catalog.find(given.event)
        except NotThere:
            raise InvalidMetadata(
                f"selectedEntity {given.event[:100]!r} is no platform event", fields=("selectedEntity",)
            ) from None
        if given.filter:
            Filter(given.filter, schema.definition)
        event, members = schema.definition.name, await self.members()
        held = next((one for one in members if one.name.lower() == name.lower()), None)
        if held is not None and (held.channel, held.event) != (channel.name, event):
            raise InvalidMetadata(f"eventChannel and selectedEntity of member {name} cannot be changed")
        if held is None and any(one.channel == channel.name and one.event == event for one in members):
            raise InvalidMetadata(f"Channel {channel.name} has a member for {event} already")
        since = held.since if held is not None else (await self._log.bounds(event)).end
        made = ChannelMember(name, channel.name, event, given.filter, since)
        await self._state.put(_MEMBER + name.lower(), asdict(made))
        return made

    async def delete_member(self, name: str) -> None:
        await self._state.put(_MEMBER + name.lower(), None)

    def listening(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Have ``listener`` told of every change of a channel or a member."""
        return self._state.listening(lambda key: listener() if key.startswith((_CHANNEL, _MEMBER)) else None)


def _id(prefix: str, name: str) -> str:
    number = int.from_bytes(hashlib.sha256(name.lower().encode()).digest()[:5]) % 10**10
    return long_id(f"{prefix}TG{number:010d}")


def _parsed_channel(name: str, metadata: Mapping[str, Any]) -> Channel:
    if not _NAME.fullmatch(name) or len(name) > 80:
        raise InvalidMetadata(f"FullName {name[:100]!r} must be letters, digits and single _, then __chn")
    _only(metadata, ("channelType", "eventType", "label", "staleReplay"), "PlatformEventChannel")
    if metadata.get("channelType") != "event":
        raise InvalidMetadata(f"channelType {str(metadata.get('channelType'))[:50]!r} is not offered; it must be event")
    label, stale = metadata.get("label"), metadata.get("staleReplay") or ""
    if not isinstance(label, str) or not label:
        raise InvalidMetadata("Required fields are missing: [label]", fields=("label",))
    if stale and stale not in [each.value for each in Stale]:
        raise InvalidMetadata(f"staleReplay {str(stale)[:50]!r} must be error, earliest or latest")
    return Channel(name, label, stale)


def _parsed_member(name: str, metadata: Mapping[str, Any]) -> ChannelMember:
    if not _MEMBER_NAME.fullmatch(name) or len(name) > 80:
        raise InvalidMetadata(
            f"FullName {name[:100]!r} must begin with a letter and have only letters, digits and single _"
        )
    _only(
        metadata, ("eventChannel", "selectedEntity", "filterExpression", "enrichedFields"), "PlatformEventChannelMember"
    )
    for field in ("eventChannel", "selectedEntity"):
        if not isinstance(metadata.get(field), str):
            raise InvalidMetadata(f"Required fields are missing: [{field}]", fields=(field,))
    if metadata.get("enrichedFields"):
        raise InvalidMetadata("enrichedFields are for channels of change events, which are not offered")
    expression = metadata.get("filterExpression") or ""
    if not isinstance(expression, str):
        raise InvalidMetadata("filterExpression is text", fields=("filterExpression",))
    return ChannelMember(name, metadata["eventChannel"], metadata["selectedEntity"], expression)


def _only(metadata: Mapping[str, Any], known: tuple[str, ...], kind: str) -> None:
    if unknown := sorted(set(metadata) - set(known)):
        raise InvalidMetadata(f"{unknown[0][:100]!r} is no field of {kind}; it has {', '.join(known)}")
