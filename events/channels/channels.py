"""Custom channels: events combined into one stream, each member with a filter (Salesforce's PlatformEventChannel).

A channel is a separate topic, ``X__chn``, into which ``events.channels.relay`` copies the events that pass. So it has
replay ids, retention and subscribers like any event, and a filter is evaluated once, however many subscribers there
are. A channel carries platform events (``/event/X__chn``) or change events (``/data/X__chn``); ``/data/ChangeEvents``
always exists.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from events.access import long_id
from events.bus.bus import Stale
from events.channels.entities import ENTITY_KEYS, ChangeEntities, ChangeEntity
from events.errors import InvalidMetadata, NotThere, UnknownEvent
from events.model.changes.schemas import HEADER, STANDARD_CHANNEL, ChangeEventSchema, is_change_event
from events.model.definition_errors import DuplicateName
from events.model.definitions import FieldType
from events.model.filters import Filter, Filterable
from events.model.payloads import EventSchema
from events.store.catalog import Catalog, TopicStore
from events.store.log import EventLog
from events.store.state import EventState

__all__ = ["Channel", "ChannelMember", "Channels", "Subscribable"]

_CHANNEL: Final = "channel/"
_MEMBER: Final = "channel-member/"
_NAME: Final = re.compile(r"[A-Za-z](?:_?[A-Za-z0-9])*__chn")
_MEMBER_NAME: Final = re.compile(r"[A-Za-z](?:_?[A-Za-z0-9])*")


@dataclass(frozen=True, slots=True)
class Channel:
    """A definition. ``stale_replay`` applies to subscribers that do not say how to handle a stale replay id."""

    name: str
    label: str
    stale_replay: str = ""
    type: str = "event"
    """Its content: ``event`` for platform events, ``data`` for change events."""

    @property
    def path(self) -> str:
        """The name that subscribers use."""
        return f"/{self.type}/{self.name}"

    @property
    def id(self) -> str:
        return _id("0YL", self.name)

    @property
    def metadata(self) -> dict[str, Any]:
        properties = {"staleReplay": self.stale_replay} if self.stale_replay else {}
        return {"channelType": self.type, "eventType": "custom", "label": self.label} | properties


@dataclass(frozen=True, slots=True)
class ChannelMember:
    """One event of a channel. The channel has its events from the offset ``since`` of its topic on.

    A change event's table may have a topic of several partitions, each with an offset. ``enriched`` are fields that its
    updates and deletes always contain.
    """

    name: str
    channel: str
    event: str
    filter: str = ""
    since: int = 0
    since_partitions: tuple[int, ...] = ()
    enriched: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        return _id("0v8", self.name)

    @property
    def metadata(self) -> dict[str, Any]:
        return {
            "enrichedFields": [{"name": name} for name in self.enriched],
            "eventChannel": self.channel,
            "filterExpression": self.filter or None,
            "selectedEntity": self.event,
        }


@dataclass(frozen=True, slots=True)
class Subscribable:
    """The topic and schema of a path such as ``/event/X__e``, ``/event/X__chn`` or ``/data/XChangeEvent``."""

    topic: str
    schema: EventSchema | ChangeEventSchema | None
    """The schema of an event; None for a channel, whose events name theirs, and for a table without any record yet."""
    stale_replay: Stale | None = None
    kind: str = "event"

    @property
    def path(self) -> str:
        return f"/{self.kind}/{self.topic}"


class Channels:
    """Channels and their members, in the servers' shared state. Names are case-insensitive."""

    def __init__(
        self, state: EventState, catalog: Catalog, event_log: EventLog, topics: TopicStore, retention_ms: int
    ) -> None:
        self.entities = ChangeEntities(state, catalog, event_log, topics, retention_ms)
        self._state, self._catalog, self._log, self._topics = state, catalog, event_log, topics
        self._retention_ms = retention_ms

    async def subscribable(self, path: str) -> Subscribable:
        """Resolve ``/event/NAME`` or ``/data/NAME``. Raises UnknownEvent."""
        _, kind, name = path.split("/", 2) if path.count("/") == 2 else ("", "", path)
        if kind not in ("event", "data") or len(name) > 100:
            raise UnknownEvent(path)
        channel = await self.find(name)
        if channel is not None and channel.type == kind:
            stale = Stale(channel.stale_replay) if channel.stale_replay else None
            return Subscribable(channel.name, None, stale, kind)
        if kind == "data":
            entity = await self._entity(name)
            return Subscribable(entity.event, await self.entities.schema(entity), None, kind)
        schema = await self._catalog.find(name)
        return Subscribable(schema.definition.name, schema)

    async def _entity(self, event: str) -> ChangeEntity:
        """The entity of a change event; raises UnknownEvent."""
        if not is_change_event(event):
            raise UnknownEvent(event)
        return await self.entities.find(event)

    async def all(self) -> list[Channel]:
        return [Channel(**value) for value in (await self._state.under(_CHANNEL)).values()]

    async def find(self, name: str) -> Channel | None:
        if name.lower() == STANDARD_CHANNEL.lower():
            return (
                Channel(STANDARD_CHANNEL, "Change events", type="data")
                if await self.members(STANDARD_CHANNEL)
                else None
            )
        stored = await self._state.get(_CHANNEL + name.lower()) if name.lower().endswith("__chn") else None
        return None if stored is None else Channel(**stored)

    async def members(self, channel: str = "") -> list[ChannelMember]:
        """All members, or those of one channel."""
        every = [_member(value) for value in (await self._state.under(_MEMBER)).values()]
        return [member for member in every if not channel or member.channel.lower() == channel.lower()]

    async def define(self, name: str, metadata: Mapping[str, Any]) -> Channel:
        """Create or change a channel, and create its topic if missing. Raises InvalidMetadata."""
        made = _parsed_channel(name, metadata)
        existing = await self.find(name)
        if existing is not None and existing.type != made.type:
            raise InvalidMetadata(
                f"channelType of {name} is {existing.type} and cannot be changed", fields=("channelType",)
            )
        made = made if existing is None else replace(made, name=existing.name)
        if await self._topics.partitions(made.name) is None:
            await self._topics.create(made.name, self._retention_ms)
        await self._state.put(_CHANNEL + name.lower(), asdict(made))
        return made

    async def delete(self, name: str) -> None:
        """Delete a channel without members; its topic stays. Raises InvalidMetadata if it has members."""
        if members := await self.members(name):
            raise InvalidMetadata(f"Channel {name} has the member {members[0].name}; delete its members first")
        await self._state.put(_CHANNEL + name.lower(), None)

    async def define_member(self, name: str, metadata: Mapping[str, Any]) -> ChannelMember:
        """Create or change a member. Its events are in the channel from now on. Raises InvalidMetadata."""
        parsed = _parsed_member(name, metadata)
        channel = await self._channel_of(parsed)
        event, columns = await self._selected(parsed, channel)
        if parsed.filter:
            Filter(parsed.filter, columns)
        _check_enriched(parsed, channel, columns)
        members = await self.members()
        existing = next((member for member in members if member.name.lower() == name.lower()), None)
        if existing is not None and (existing.channel, existing.event) != (channel.name, event):
            raise InvalidMetadata(f"eventChannel and selectedEntity of member {name} cannot be changed")
        if existing is None and any(member.channel == channel.name and member.event == event for member in members):
            raise DuplicateName(f"Channel {channel.name} has a member for {event} already")
        made = replace(parsed, channel=channel.name, event=event)
        if existing is not None:
            made = replace(made, since=existing.since, since_partitions=existing.since_partitions)
        else:
            made = await self._from_now_on(made, channel)
        await self._state.put(_MEMBER + name.lower(), asdict(made))
        return made

    async def _channel_of(self, member: ChannelMember) -> Channel:
        if member.channel.lower() == STANDARD_CHANNEL.lower():
            if await self._topics.partitions(STANDARD_CHANNEL) is None:
                await self._topics.create(STANDARD_CHANNEL, self._retention_ms)
            return Channel(STANDARD_CHANNEL, "Change events", type="data")
        channel = await self.find(member.channel)
        if channel is None:
            raise InvalidMetadata(
                f"Unable to find the specified channel: {member.channel[:100]!r}", fields=("eventChannel",)
            )
        return channel

    async def _selected(self, member: ChannelMember, channel: Channel) -> tuple[str, Filterable]:
        """The name of the selected event and the fields a filter may compare.

        Raises InvalidMetadata if the channel can't carry it.
        """
        kind = "platform event" if channel.type == "event" else "change event"
        try:
            if channel.type == "event":
                definition = (await self._catalog.find(member.event)).definition
                return definition.name, definition
            entity = await self._entity(member.event)
        except NotThere:
            raise InvalidMetadata(
                f"selectedEntity {member.event[:100]!r} is no {kind}", fields=("selectedEntity",)
            ) from None
        schema = await self.entities.schema(entity)
        if schema is None and (member.filter or member.enriched):
            raise InvalidMetadata(
                f"The fields of {entity.event} are not known yet: topic {entity.topic} has no schema. Start its connector first",
                fields=("selectedEntity",),
            )
        return entity.event, schema or _Unknown(entity.event)

    async def _from_now_on(self, made: ChannelMember, channel: Channel) -> ChannelMember:
        if channel.type == "event":
            return replace(made, since=(await self._log.bounds(made.event)).readable)
        topic = (await self.entities.find(made.event)).topic
        count = await self._topics.partitions(topic)
        return replace(made, since_partitions=tuple(await self._log.ends(topic, count)) if count else ())

    async def delete_member(self, name: str) -> None:
        await self._state.put(_MEMBER + name.lower(), None)

    def listening(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``listener`` on every change of a channel, a member or an entity."""
        prefixes = (_CHANNEL, _MEMBER, ENTITY_KEYS)
        return self._state.listening(lambda key: listener() if key.startswith(prefixes) else None)


def _id(prefix: str, name: str) -> str:
    number = int.from_bytes(hashlib.sha256(name.lower().encode()).digest()[:5]) % 10**10
    return long_id(f"{prefix}TG{number:010d}")


def _parsed_channel(name: str, metadata: Mapping[str, Any]) -> Channel:
    if not _NAME.fullmatch(name) or len(name) > 80:
        raise InvalidMetadata(f"FullName {name[:100]!r} must be letters, digits and single _, then __chn")
    _only(metadata, ("channelType", "eventType", "label", "staleReplay"), "PlatformEventChannel")
    kind = metadata.get("channelType")
    if kind not in ("event", "data"):
        raise InvalidMetadata(f"channelType {str(kind)[:50]!r} must be event or data", fields=("channelType",))
    label, stale = metadata.get("label"), metadata.get("staleReplay") or ""
    if not isinstance(label, str) or not label:
        raise InvalidMetadata("Required fields are missing: [label]", fields=("label",))
    if stale and stale not in [each.value for each in Stale]:
        raise InvalidMetadata(f"staleReplay {str(stale)[:50]!r} must be error, earliest or latest")
    return Channel(name, label, stale, kind)


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
    expression = metadata.get("filterExpression") or ""
    if not isinstance(expression, str):
        raise InvalidMetadata("filterExpression is text", fields=("filterExpression",))
    enriched = metadata.get("enrichedFields") or []
    if not isinstance(enriched, list) or not all(
        isinstance(each, dict) and isinstance(each.get("name"), str) for each in enriched
    ):
        raise InvalidMetadata('enrichedFields is a list of {"name": "Field__c"}', fields=("enrichedFields",))
    names = tuple(each["name"] for each in enriched)
    return ChannelMember(name, metadata["eventChannel"], metadata["selectedEntity"], expression, enriched=names)


def _member(value: Mapping[str, Any]) -> ChannelMember:
    lists = {name: tuple(value.get(name, ())) for name in ("since_partitions", "enriched")}
    return ChannelMember(**{**value, **lists})


@dataclass(frozen=True, slots=True)
class _Unknown:
    """A change event whose fields are still unknown."""

    name: str

    @property
    def columns(self) -> Mapping[str, FieldType]:
        return {}


def _check_enriched(member: ChannelMember, channel: Channel, event: Filterable) -> None:
    if member.enriched and channel.type == "event":
        raise InvalidMetadata("enrichedFields are for channels of change events", fields=("enrichedFields",))
    known = {name.partition(".")[0] for name in event.columns} - {HEADER}
    if unknown := [name for name in member.enriched if name not in known]:
        raise InvalidMetadata(
            f"enrichedFields: {event.name} has no field {unknown[0][:100]}; it has {', '.join(sorted(known))}",
            fields=("enrichedFields",),
        )


def _only(metadata: Mapping[str, Any], known: tuple[str, ...], kind: str) -> None:
    if unknown := sorted(set(metadata) - set(known)):
        raise InvalidMetadata(f"{unknown[0][:100]!r} is no field of {kind}; it has {', '.join(known)}")
