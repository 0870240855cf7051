"""Entities: tables whose changes are delivered as change events, each from the topic that a CDC connector fills."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from events.errors import InvalidMetadata, UndecodablePayload, UnknownEvent
from events.model.changes.building import TableEvents
from events.model.changes.envelope import Envelope
from events.model.changes.schemas import ChangeEventSchema, change_event_name
from events.model.definition_errors import DuplicateName
from events.store.catalog import Catalog, TopicStore
from events.store.log import EventLog
from events.store.state import EventState

__all__ = ["ENTITY_KEYS", "ChangeEntities", "ChangeEntity"]

ENTITY_KEYS: Final = "change-entity/"
"""The prefix of entities' keys in the state."""
_NAME: Final = re.compile(r"[A-Za-z](?:_?[A-Za-z0-9]){0,39}(?:__c)?")
_FIELD: Final = re.compile(r"[A-Za-z_]\w{0,79}(?:\.[A-Za-z_]\w{0,79})?", re.ASCII)
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")
_KEYS: Final = ("entity", "topic", "label", "fields", "snapshot", "deletedColumn", "from")


@dataclass(frozen=True, slots=True)
class ChangeEntity:
    """A definition. Changes become events from the offsets ``since`` of the topic's partitions on."""

    name: str
    topic: str
    label: str
    fields: Mapping[str, str | None] = field(default_factory=dict)
    """Field names by column, for columns that need another name; None leaves a column out."""
    snapshot: str = "none"
    """Whether existing rows become nothing, or events of type CREATE."""
    deleted_column: str = ""
    """A column that marks rows as deleted without deleting them."""
    since: tuple[int, ...] = ()

    @property
    def event(self) -> str:
        """The name of its change event, which is also that of its channel and its topic."""
        return change_event_name(self.name)

    @property
    def described(self) -> dict[str, Any]:
        """The definition as it is sent and shown."""
        about: dict[str, Any] = {"entity": self.name, "topic": self.topic, "label": self.label, "fields": self.fields}
        about |= {"snapshot": self.snapshot, "channel": f"/data/{self.event}"}
        return about | ({"deletedColumn": self.deleted_column} if self.deleted_column else {})

    def of_table(self, envelope: Envelope) -> TableEvents:
        """How to make this entity's events from records of one version. Raises InvalidMetadata."""
        return TableEvents(
            self.name,
            envelope,
            names=self.fields,
            snapshot=self.snapshot == "create",
            deleted_column=self.deleted_column,
        )


class ChangeEntities:
    """All entities, in the servers' shared state. Names are case-insensitive."""

    def __init__(
        self, state: EventState, catalog: Catalog, event_log: EventLog, topics: TopicStore, retention_ms: int
    ) -> None:
        self._state, self._catalog, self._log, self._topics = state, catalog, event_log, topics
        self._retention_ms = retention_ms

    async def all(self) -> list[ChangeEntity]:
        return [_entity(value) for value in (await self._state.under(ENTITY_KEYS)).values()]

    async def find(self, name: str) -> ChangeEntity:
        """An entity by its own name or its change event's. Raises UnknownEvent."""
        lower_name = name.lower()
        for entity in await self.all():
            if lower_name in (entity.name.lower(), entity.event.lower()):
                return entity
        raise UnknownEvent(name)

    async def schema(self, entity: ChangeEntity) -> ChangeEventSchema | None:
        """The newest schema of an entity's events; None before its table's first record."""
        return await self._catalog.change_event(entity.event)

    async def define(self, definition: Mapping[str, Any]) -> ChangeEntity:
        """Create or change an entity: its channel's topic, and its schema if the table's is known. Raises
        InvalidMetadata.

        Changes become events from now on, or from the oldest record of the table's topic with ``from: earliest``.
        """
        made, earliest = _parsed(definition)
        others = [entity for entity in await self.all() if entity.name.lower() != made.name.lower()]
        if taken := next((entity for entity in others if entity.topic == made.topic), None):
            raise DuplicateName(
                f"Topic {made.topic} is entity {taken.name}'s; one entity reads a topic", fields=("topic",)
            )
        stored = await self._state.get(ENTITY_KEYS + made.name.lower())
        since = await self._since(made.topic, earliest)
        if stored is not None and stored["topic"] == made.topic:
            since = tuple(stored["since"])
        await self._check_table(made)
        if await self._topics.partitions(made.event) is None:
            await self._topics.create(made.event, self._retention_ms)
        values = asdict(made) | {"since": list(since), "fields": dict(made.fields)}
        await self._state.put(ENTITY_KEYS + made.name.lower(), values)
        return _entity(values)

    async def _check_table(self, made: ChangeEntity) -> None:
        """If the connector has registered the table's schema already, check now whether the definition fits it."""
        text = await self._catalog.newest_text(f"{made.topic}-value")
        if text is None:
            return
        try:
            table = made.of_table(Envelope(text))
        except UndecodablePayload as error:
            raise InvalidMetadata(f"Topic {made.topic}: {error}", fields=("topic",)) from error
        await self._catalog.define_change_event(made.event, table.text)

    async def _since(self, topic: str, earliest: bool) -> tuple[int, ...]:
        count = await self._topics.partitions(topic)
        if earliest or count is None:
            return ()
        return tuple(await self._log.ends(topic, count))

    async def delete(self, name: str) -> None:
        """Delete an entity; the topics stay."""
        await self._state.put(ENTITY_KEYS + name.lower(), None)

    def listening(self, listener: Callable[[], None]) -> AbstractContextManager[None]:
        """Call ``listener`` on every change of an entity."""
        return self._state.listening(lambda key: listener() if key.startswith(ENTITY_KEYS) else None)


def _entity(value: Mapping[str, Any]) -> ChangeEntity:
    return ChangeEntity(**{**value, "since": tuple(value["since"])})


def _parsed(definition: Mapping[str, Any]) -> tuple[ChangeEntity, bool]:
    if unknown := sorted(set(definition) - set(_KEYS)):
        raise InvalidMetadata(f"{unknown[0][:100]!r} is no key of an entity; it has {', '.join(_KEYS)}")
    name, topic = _text(definition, "entity"), _text(definition, "topic")
    if not _NAME.fullmatch(name):
        raise InvalidMetadata(f"entity {name[:100]!r} must be an object's name such as Account or Customer__c")
    if not _TOPIC.fullmatch(topic):
        raise InvalidMetadata(f"topic {topic[:100]!r} is no name of a Kafka topic", fields=("topic",))
    snapshot = definition.get("snapshot", "none")
    if snapshot not in ("none", "create"):
        raise InvalidMetadata(f"snapshot {str(snapshot)[:50]!r} must be none or create", fields=("snapshot",))
    begin = definition.get("from", "latest")
    if begin not in ("latest", "earliest"):
        raise InvalidMetadata(f"from {str(begin)[:50]!r} must be latest or earliest", fields=("from",))
    label = _text(definition, "label") if "label" in definition else name.removesuffix("__c").replace("_", " ")
    deleted = _text(definition, "deletedColumn") if "deletedColumn" in definition else ""
    return ChangeEntity(name, topic, label, _fields(definition), snapshot, deleted), begin == "earliest"


def _text(definition: Mapping[str, Any], key: str) -> str:
    value = definition.get(key)
    if not isinstance(value, str) or not value:
        raise InvalidMetadata(f"Required fields are missing: [{key}]", fields=(key,))
    return value


def _fields(definition: Mapping[str, Any]) -> dict[str, str | None]:
    fields = definition.get("fields", {})
    if not isinstance(fields, dict):
        raise InvalidMetadata(
            "fields is an object: names of fields by column, null to leave a column out", fields=("fields",)
        )
    for column, name in fields.items():
        if name is not None and not (isinstance(name, str) and _FIELD.fullmatch(name)):
            raise InvalidMetadata(
                f"fields: {column[:50]} is to be {str(name)[:50]!r}; a name such as Street__c or Address.Street is needed",
                fields=("fields",),
            )
    return fields
