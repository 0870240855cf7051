"""The event definitions: read from the registry, cached briefly, and written to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final, Protocol, TypeVar

from events.errors import BusUnavailable, InvalidDefinition, NotThere, TopicUnfit, UnknownEvent, UnknownSchema
from events.model.changes.schemas import ChangeEventSchema
from events.model.definition_errors import DuplicateEvent
from events.model.definitions import EventDefinition, to_avro_text
from events.model.payloads import EventSchema
from tidegate.kit.logs import get_logger

__all__ = ["Catalog", "SchemaStore", "TopicStore"]

logger = get_logger(__name__)

T = TypeVar("T")
_SUFFIX: Final = "__e-value"
_MOST_FIELDS: Final = 800
"""Salesforce's limit on the custom fields of an object."""
_PATIENCE_S: Final = 0.5
"""How long a caller with a cached, possibly stale value waits for a new one."""


class SchemaStore(Protocol):
    """The registry as the catalog needs it. Blocking; called from several threads at once."""

    def subjects(self) -> list[str]: ...

    def latest(self, subject: str) -> tuple[int, str] | None:
        """Id and text of the newest schema; None if there is no such subject."""
        ...

    def by_id(self, schema_id: int) -> str | None: ...

    def register(self, subject: str, text: str) -> int:
        """Raises DefinitionConflict if the registry considers the schema incompatible."""
        ...

    def register_freely(self, subject: str, text: str) -> int:
        """Register a schema that need not be compatible with the previous version."""
        ...


class TopicStore(Protocol):
    """Topics as the catalog needs them. Every method raises BusUnavailable if the log does not answer."""

    async def partitions(self, topic: str) -> int | None:
        """The number of partitions; None if there is no such topic."""
        ...

    async def create(self, topic: str, retention_ms: int) -> None:
        """Create a topic with one partition; an existing one stays unchanged."""
        ...

    async def keep(self, topic: str, retention_ms: int) -> None:
        """Set the retention of a topic."""
        ...

    async def retention_ms(self, topic: str) -> int | None:
        """The retention of a topic in milliseconds; -1 is forever, None unknown."""
        ...


class Catalog:
    """Definitions by event name (case-insensitive, as in Salesforce) and schemas by id."""

    def __init__(
        self,
        schemas: SchemaStore,
        topics: TopicStore,
        *,
        refresh_ms: int = 2000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._schemas, self._topics = schemas, topics
        self._refresh_s, self._clock = refresh_ms / 1000, clock
        self._by_id: dict[int, EventSchema] = {}
        self._changes: dict[int, ChangeEventSchema] = {}
        self._newest_changes: dict[str, tuple[float, ChangeEventSchema | None]] = {}
        self._current: dict[str, tuple[float, EventSchema | None]] = {}
        self._names: tuple[float, tuple[str, ...]] = (float("-inf"), ())
        self._fit: dict[str, float] = {}
        self._refreshing: dict[tuple[str, str], tuple[asyncio.Task[Any], float]] = {}
        """Running refreshes, each with its start (the event loop's time)."""

    async def names(self) -> tuple[str, ...]:
        """The names of all events, sorted."""
        now = self._clock()
        if now - self._names[0] >= self._refresh_s:
            subjects = await asyncio.to_thread(self._schemas.subjects)
            names_ = sorted(s.removesuffix("-value") for s in subjects if s.endswith(_SUFFIX))
            self._names = (now, tuple(names_))
        return self._names[1]

    async def all(self) -> list[EventSchema]:
        """The newest schema of every event, by name.

        Subjects that look like events but are none are skipped with a log message.
        """
        schemas = []
        for name in await self.names():
            try:
                schemas.append(await self.find(name))
            except (NotThere, TopicUnfit) as error:
                logger.warning(
                    "a subject that is named as an event's is not one", subject=f"{name}-value", reason=str(error)
                )
        return schemas

    async def find(self, name: str) -> EventSchema:
        """The newest schema of an event. Raises UnknownEvent, or TopicUnfit if its topic has several partitions."""
        if not name.lower().endswith("__e") or len(name) > 100:
            raise UnknownEvent(name)
        now = self._clock()
        cached = self._current.get(name)
        if cached is not None and now - cached[0] < self._refresh_s:
            schema = cached[1]
        else:
            kept = cached[1] if cached is not None else None
            schema = await self._refreshed(("definition", name), lambda: self._refresh(name, kept), kept)
        if schema is None:
            raise UnknownEvent(name)
        await self._check_topic(schema.definition.name)
        return schema

    async def _refresh(self, name: str, cached: EventSchema | None) -> EventSchema | None:
        now = self._clock()
        schema = await self._load_or_keep(name, cached)
        if len(self._current) > 10_000:
            self._current.clear()
        self._current[name] = (now, schema)
        return schema

    async def _refreshed(self, key: tuple[str, str], ask: Callable[[], Coroutine[Any, Any, T]], known: T | None) -> T:
        """The result of ``ask``, shared by concurrent callers. If it takes long, a known value is returned instead."""
        loop = asyncio.get_running_loop()
        if key not in self._refreshing:
            task = loop.create_task(ask(), name=f"refresh {key[0]} of {key[1]}")
            self._refreshing[key] = (task, loop.time())
            task.add_done_callback(lambda done: self._end_refresh(key, done))
        task, began = self._refreshing[key]
        if known is not None:
            done, _ = await asyncio.wait({task}, timeout=max(0.0, began + _PATIENCE_S - loop.time()))
            if not done:
                return known
        return await asyncio.shield(task)

    def _end_refresh(self, key: tuple[str, str], task: asyncio.Task[Any]) -> None:
        del self._refreshing[key]
        if not task.cancelled():
            task.exception()  # mark as retrieved: there may be no waiting caller left

    async def schema(self, schema_id: int) -> EventSchema:
        """The event schema with this registry id, in any version.

        Raises UnknownSchema, also for a schema that is not an event's.
        """
        known = self._by_id.get(schema_id)
        if known is None:
            text = await asyncio.to_thread(self._schemas.by_id, schema_id) if 0 < schema_id < 1 << 31 else None
            if text is None:
                raise UnknownSchema(str(schema_id))
            known = self._remember(schema_id, text)
        return known

    async def any_schema(self, schema_id: int) -> EventSchema | ChangeEventSchema:
        """The schema of a platform event or of a change event; raises UnknownSchema."""
        return self.known_schema(schema_id) or await self._find_any(schema_id)

    def known_schema(self, schema_id: int) -> EventSchema | ChangeEventSchema | None:
        """Like ``any_schema`` without waiting; None if it was never requested."""
        return self._changes.get(schema_id) or self._by_id.get(schema_id)

    async def _find_any(self, schema_id: int) -> EventSchema | ChangeEventSchema:
        try:
            return await self.schema(schema_id)
        except UnknownSchema:
            return self._remember_change(schema_id, await self.text(schema_id))

    async def text(self, schema_id: int) -> str:
        """The text of any Avro schema; raises UnknownSchema."""
        text_ = await asyncio.to_thread(self._schemas.by_id, schema_id) if 0 < schema_id < 1 << 31 else None
        if text_ is None:
            raise UnknownSchema(str(schema_id))
        return text_

    async def newest_text(self, subject: str) -> str | None:
        """The text of the newest schema of any subject, or None."""
        latest = await asyncio.to_thread(self._schemas.latest, subject)
        return None if latest is None else latest[1]

    async def change_event(self, name: str) -> ChangeEventSchema | None:
        """The newest schema of a change event by its exact name, or None."""
        now, cached = self._clock(), self._newest_changes.get(name)
        if cached is None or now - cached[0] >= self._refresh_s:
            latest = await asyncio.to_thread(self._schemas.latest, f"{name}-value")
            cached = self._newest_changes[name] = (now, None if latest is None else self._remember_change(*latest))
        return cached[1]

    async def define_change_event(self, name: str, text: str) -> ChangeEventSchema:
        """Register the schema of a change event.

        It follows its table, so it need not be compatible with the previous one: every event names its schema.
        """
        schema_id = await asyncio.to_thread(self._schemas.register_freely, f"{name}-value", text)
        self._newest_changes.pop(name, None)
        return self._remember_change(schema_id, text)

    async def define(self, definition: EventDefinition, *, retention_ms: int) -> EventSchema:
        """Create the event's topic if missing, and register the definition.

        ``retention_ms`` applies to a new topic if the definition sets no retention; a retention in the definition also
        applies to an existing topic. Defining the same again changes nothing. A changed definition becomes the next
        version if the registry's compatibility rules allow it. Raises DefinitionConflict, TopicUnfit, InvalidDefinition
        for more fields than Salesforce allows, or DuplicateEvent for a name that differs from another event's only in
        case.
        """
        if len(definition.fields) > _MOST_FIELDS:
            raise InvalidDefinition(
                f"Event {definition.name} has {len(definition.fields)} fields; it may have {_MOST_FIELDS}"
            )
        for known in await self.names():
            if known != definition.name and known.lower() == definition.name.lower():
                raise DuplicateEvent(
                    f"There is an event {known} already, and {definition.name} differs from it by case only: use its name, or another"
                )
        count = await self._topics.partitions(definition.name)
        said = definition.retention_ms
        if count is None:
            await self._topics.create(definition.name, retention_ms if said is None else said)
        elif count != 1:
            raise _unfit(definition.name, count)
        text = to_avro_text(definition)
        schema_id = await asyncio.to_thread(self._schemas.register, definition.subject, text)
        if said is not None and count is not None:
            await self._topics.keep(definition.name, said)
        made = self._remember(schema_id, text)
        self._current.clear()
        if definition.name not in self._names[1]:
            # Not queried again at once: for a zip of thousands of events each would query all names.
            self._names = (self._names[0], tuple(sorted((*self._names[1], definition.name))))
        return made

    async def retention_ms(self, name: str) -> int | None:
        """The retention of the event's topic; -1 is forever, None unknown."""
        return await self._topics.retention_ms(name)

    async def _load_or_keep(self, name: str, cached: EventSchema | None) -> EventSchema | None:
        """The current definition, or the last known one while the registry is unavailable."""
        try:
            return await self._load(name)
        except BusUnavailable as error:
            if cached is None:
                raise
            logger.warning("the registry is away; keeping a definition as it was", event_name=name, reason=str(error))
            return cached

    async def _load(self, name: str) -> EventSchema | None:
        latest = await asyncio.to_thread(self._schemas.latest, f"{name}-value")
        if latest is None:
            exact = next(
                (known for known in await self.names() if known.lower() == name.lower() and known != name), None
            )
            latest = await asyncio.to_thread(self._schemas.latest, f"{exact}-value") if exact else None
        return None if latest is None else self._remember(*latest)

    def _remember(self, schema_id: int, text: str) -> EventSchema:
        known = self._by_id.get(schema_id)
        if known is None or known.text != text:
            try:
                known = EventSchema(schema_id, text)
            except InvalidDefinition as error:
                raise UnknownSchema(str(schema_id)) from error
            self._by_id[schema_id] = known
        return known

    def _remember_change(self, schema_id: int, text: str) -> ChangeEventSchema:
        known = self._changes.get(schema_id)
        if known is None or known.text != text:
            try:
                known = self._changes[schema_id] = ChangeEventSchema(schema_id, text)
            except InvalidDefinition as error:
                raise UnknownSchema(str(schema_id)) from error
        return known

    async def _check_topic(self, name: str) -> None:
        """Raise TopicUnfit unless the topic has one partition. While the log is unavailable the last result counts."""
        checked = self._fit.get(name)
        if checked is None or self._clock() - checked >= self._refresh_s:
            known = None if checked is None else True
            await self._refreshed(("topic", name), lambda: self._refresh_topic(name, checked), known)

    async def _refresh_topic(self, name: str, checked: float | None) -> bool:
        now = self._clock()
        try:
            count = await self._topics.partitions(name)
        except BusUnavailable:
            if checked is None:
                raise
            count = 1
        if count is None:
            raise TopicUnfit(f"Event {name} is defined and its topic is missing: define the event again to make it")
        if count != 1:
            raise _unfit(name, count)
        self._fit[name] = now
        return True


def _unfit(name: str, count: int) -> TopicUnfit:
    return TopicUnfit(
        f"Topic {name} has {count} partitions; an event topic has exactly one, because a replay id is an offset. "
        "Delete the topic, or give the event another name."
    )
