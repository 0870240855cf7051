"""Publishing: checks events against their definition and appends the valid ones, in order and exactly once."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from events.access import User
from events.bus.bus import EventBus, Outgoing
from events.bus.outcomes import Outcome, Published, Refused, RolledBack
from events.bus.published_ids import PublishedId, PublishedIds
from events.errors import (
    BadEvent,
    BusUnavailable,
    EventsError,
    EventTooLarge,
    IdempotencyKeyReused,
    UndecodablePayload,
    UnknownEvent,
    UnknownSchema,
)
from events.limits.errors import PublishLimitExceeded
from events.limits.limits import Limits
from events.metrics import EventMetrics
from events.model.payloads import EventSchema
from events.store.catalog import Catalog
from tidegate.kit.errors import TidegateError

__all__ = ["AllOrNoneBlock", "AvroEvent", "JsonEvent", "Publisher"]

_CHECKED_IN_A_TURN: Final = 64
"""Events checked before yielding to the event loop; a refused one takes 90 us."""
_MOST_ID_BYTES: Final = 255
"""The longest event id chosen by a publisher; clients send UUIDs. Each is a key in the index of published ids."""


def _new_uuid() -> str:
    """A random UUID, version 4. It must be unique but not secret, so it avoids the system call of ``uuid.uuid4``."""
    made = f"{random.getrandbits(128):032x}"
    return f"{made[:8]}-{made[8:12]}-4{made[13:16]}-{'89ab'[int(made[16], 16) & 3]}{made[17:20]}-{made[20:]}"


@dataclass(frozen=True, slots=True)
class AvroEvent:
    """An event already encoded by its publisher, with its schema id."""

    uuid: str
    schema_id: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class JsonEvent:
    """An event as a JSON object. ``id`` is chosen by its publisher, so that retries are stored once."""

    name: str
    body: Mapping[str, Any]
    id: str = ""
    is_keyed: bool = False
    """Whether the id comes from an Idempotency-Key, with which no other event may be sent."""

    @property
    def digest(self) -> bytes:
        """A digest of name and body, independent of the order of members; empty if the id may be reused for other
        events.
        """
        if not self.is_keyed:
            return b""
        return hashlib.sha256(json.dumps([self.name.lower(), self.body], sort_keys=True).encode()).digest()[:16]


@dataclass(frozen=True, slots=True)
class _Ready:
    topic: str
    outgoing: Outgoing
    once: bool
    digest: bytes = b""
    body: Mapping[str, Any] | None = None
    """The JSON object of an event with an Idempotency-Key."""

    def is_another(self, digest: bytes) -> bool:
        """Whether a different event is known to have been sent under the id before."""
        return bool(self.digest and digest) and self.digest != digest

    @property
    def key(self) -> tuple[str, str]:
        """Topic and id."""
        return self.topic, self.outgoing.uuid


class _UnderWay(NamedTuple):
    """An event with a publisher's id that is being published."""

    outcome: asyncio.Future[int | TidegateError]
    digest: bytes


class Publisher:
    """Publishes events for all protocols. Each event is judged separately: a refused one does not hold back others."""

    def __init__(
        self,
        catalog: Catalog,
        bus: EventBus,
        metrics: EventMetrics,
        clock_ms: Callable[[], int],
        ids: PublishedIds,
        limits: Limits,
        *,
        timeout_s: float = 30,
    ) -> None:
        """Events are acknowledged within ``timeout_s``, or refused with BusUnavailable."""
        self._catalog, self._bus, self._metrics, self._clock_ms, self._ids = catalog, bus, metrics, clock_ms, ids
        self._limits, self._timeout_s = limits, timeout_s
        self._under_way: dict[tuple[str, str], _UnderWay] = {}
        """By topic and id."""

    async def publish_json(
        self, events: Sequence[JsonEvent], *, user: User, all_or_none: bool = False, face: str = "rest"
    ) -> list[Outcome]:
        """Publish JSON objects for a user. The outcomes are in their order.

        With ``all_or_none`` all are published in one transaction, or none, in which case the valid ones are RolledBack.
        Raises BusUnavailable if the transaction failed, and IdempotencyKeyReused.
        """
        outcomes: list[Outcome] = [RolledBack()] * len(events)
        ready: list[tuple[int, _Ready]] = []
        for index, event in enumerate(events):
            try:
                ready.append((index, await self._encoded(event, user)))
            except EventsError as error:
                outcomes[index] = Refused(error)
                self._metrics.refused.labels(face).inc()
        if all_or_none:
            if len(ready) == len(events) and ready:
                async with self.all_or_none(user=user, face=face) as block:
                    return [await block.append(passed) for _, passed in ready]
            return outcomes
        topics: dict[str, list[tuple[int, _Ready]]] = {}
        for index, passed in ready:
            topics.setdefault(passed.topic, []).append((index, passed))
        for topic, group in topics.items():
            done = await self._append(topic, [passed for _, passed in group], face)
            for (index, _), outcome in zip(group, done, strict=True):
                outcomes[index] = outcome
        return outcomes

    async def published_since(self, name: str, ids: Collection[str], since_ms: int) -> dict[str, Published] | None:
        """The events with these ids that are in the log since a time; None if retention has deleted part of that range."""
        topic = (await self._catalog.find(name)).definition.name
        replay_ids = await self._ids.search(topic, ids, since_ms)
        return None if replay_ids is None else {id_: Published(id_, replay_id) for id_, replay_id in replay_ids.items()}

    async def publish_avro(self, name: str, events: Sequence[AvroEvent], *, user: User) -> list[Published | Refused]:
        """Publish finished Avro bodies to one event.

        The outcomes are in their order. Raises UnknownEvent, CannotCreate.
        """
        definition = (await self._catalog.find(name)).definition
        topic = definition.name
        user.require_create(topic, definition.label)
        outcomes: dict[int, Published | Refused] = {}
        ready: list[tuple[int, _Ready]] = []
        schemas: dict[str, EventSchema] = {}
        for index, event in enumerate(events):
            if index % _CHECKED_IN_A_TURN == _CHECKED_IN_A_TURN - 1:
                await asyncio.sleep(0)  # yield to other requests, even if all events are refused
            try:
                schema = schemas.get(event.schema_id)
                if schema is None:
                    schema = schemas[event.schema_id] = await self._schema_of(topic, event.schema_id)
                ready.append((index, self._checked(topic, schema, event)))
            except EventsError as error:
                outcomes[index] = Refused(error)
                self._metrics.refused.labels("pubsub").inc()
        done = await self._append(topic, [event for _, event in ready], "pubsub")
        outcomes.update((index, outcome) for (index, _), outcome in zip(ready, done, strict=True))
        return [outcomes[index] for index in range(len(events))]

    @contextlib.asynccontextmanager
    async def all_or_none(self, *, user: User, face: str = "rest") -> AsyncIterator[AllOrNoneBlock]:
        """A block whose events are all published when it ends, or none if it raises.

        It may last only seconds: see ``EventLog.transaction``. Raises BusUnavailable if the log does not accept the
        events, and PublishLimitExceeded from ``append`` for an event beyond the limit.
        """
        written: list[tuple[_Ready, int]] = []
        under_way: dict[tuple[str, str], _UnderWay] = {}

        async def write(event: _Ready) -> int:
            key = event.key
            if event.once:
                if key in under_way:
                    known: PublishedId | None = next(
                        PublishedId(replay_id, before.digest) for before, replay_id in written if before.key == key
                    )
                    reused = known is not None and event.is_another(known.digest)
                else:
                    found, others = await self._look_up(event.topic, [event], self._deadline())
                    known, reused = found.get(key[1]), bool(others)
                if reused:
                    raise IdempotencyKeyReused
                if known is not None:
                    return known.replay_id
                if key in self._under_way:
                    raise BusUnavailable(f"Event {key[1]} is being published just now; send it again in a moment")
            if self._limits.published.left <= len(written):
                raise PublishLimitExceeded(self._limits.published.most)
            if event.once:
                under_way[key] = self._begin(event)
            (replay_id,) = await transaction(event.topic, [event.outgoing])
            written.append((event, replay_id))
            return replay_id

        async def encoded(event: JsonEvent) -> _Ready:
            return await self._encoded(event, user)

        try:
            async with self._bus.transaction() as transaction:
                yield AllOrNoneBlock(encoded, write)
            self._limits.published.add(len(written))
            for event, replay_id in written:
                self._metrics.published.labels(event.topic, face).inc()
                if event.once:
                    self._ids.put(event.topic, {event.outgoing.uuid: PublishedId(replay_id, event.digest)})
                    under_way[event.key].outcome.set_result(replay_id)
        finally:
            for key in under_way:
                self._end(key)

    async def _encoded(self, event: JsonEvent, user: User) -> _Ready:
        schema = await self._catalog.find(event.name)
        if not user.may_see(schema.definition.name):
            raise UnknownEvent(event.name)
        user.require_create(schema.definition.name, schema.definition.label)
        payload = schema.encode_json(event.body, created_ms=self._clock_ms(), created_by=user.id)
        self._check_size(payload)
        id_ = event.id or _new_uuid()
        outgoing, body = Outgoing(id_, schema.id, payload), event.body if event.is_keyed else None
        return _Ready(schema.definition.name, outgoing, bool(event.id), event.digest, body)

    async def _schema_of(self, topic: str, schema_id: str) -> EventSchema:
        if not schema_id.strip():
            raise UndecodablePayload("Schema validation failed. The schema ID can't be blank.")
        if not (schema_id.isascii() and schema_id.isdigit() and len(schema_id) < 11):
            raise UnknownSchema(schema_id)
        schema = await self._catalog.schema(int(schema_id))
        if schema.definition.name != topic:
            raise UndecodablePayload(
                f"Schema validation failed. Schema {schema_id} is of {schema.definition.name}, not of {topic}."
            )
        return schema

    def _checked(self, topic: str, schema: EventSchema, event: AvroEvent) -> _Ready:
        self._check_size(event.payload)
        if len(event.uuid) > _MOST_ID_BYTES or len(event.uuid.encode()) > _MOST_ID_BYTES:
            raise EventTooLarge(
                f"The id of the event is {len(event.uuid.encode())} bytes; at most {_MOST_ID_BYTES} are taken"
            )
        schema.check(event.payload)
        return _Ready(topic, Outgoing(event.uuid or _new_uuid(), schema.id, event.payload), bool(event.uuid))

    def _check_size(self, payload: bytes) -> None:
        most = self._limits.max_event_bytes
        if len(payload) > most:
            raise EventTooLarge(f"The event is {len(payload)} bytes; at most {most} are taken")

    async def _append(self, topic: str, ready: list[_Ready], face: str) -> list[Published | Refused]:
        """Append the missing events to one topic. An id that is already being published gets the answer of the first
        event with it.

        Events beyond the hourly limit are refused, the last ones first.
        """
        allowance = self._limits.published
        allowed = allowance.take(len(ready))
        try:
            outcomes = await self._append_allowed(topic, ready[:allowed], face)
        except BaseException:
            allowance.give_back(allowed)
            raise
        allowance.give_back(sum(not isinstance(outcome, Published) for outcome in outcomes))
        return outcomes + [Refused(PublishLimitExceeded(allowance.most)) for _ in ready[allowed:]]

    async def _append_allowed(self, topic: str, ready: list[_Ready], face: str) -> list[Published | Refused]:
        if not ready:
            return []
        deadline = self._deadline()
        known, reused = await self._look_up(topic, ready, deadline)
        fresh: list[_Ready] = []
        under_way: dict[tuple[str, str], _UnderWay] = {}
        waiting: dict[str, _UnderWay] = {}
        for event in ready:
            id_ = event.outgoing.uuid
            if not event.once:
                fresh.append(event)
            elif id_ not in known and id_ not in waiting:
                if event.key not in self._under_way:
                    under_way[event.key] = self._begin(event)
                    fresh.append(event)
                waiting[id_] = self._under_way[event.key]
        unnamed = iter(await self._write(topic, fresh, under_way, face, deadline))
        outcomes: list[Published | Refused] = []
        for index, event in enumerate(ready):
            id_ = event.outgoing.uuid
            if not event.once:
                answer: int | TidegateError = next(unnamed)
            elif id_ in known:
                answer = IdempotencyKeyReused() if index in reused else known[id_].replay_id
            elif event.is_another(waiting[id_].digest):
                answer = IdempotencyKeyReused()
            else:
                answer = await asyncio.shield(waiting[id_].outcome)
            outcomes.append(Published(id_, answer) if isinstance(answer, int) else Refused(answer))
        return outcomes

    async def _is_another(self, event: _Ready, known: PublishedId) -> bool:
        """Whether an event that is in the log under the id is a different one.

        If another server published it, or the index of ids was made anew, only the log can tell: the body is encoded as it
        was then, and compared. Raises BusUnavailable.
        """
        if known.digest or event.body is None:
            return event.is_another(known.digest)
        found, _ = await self._bus.read(event.topic, known.replay_id)
        stored = next((each for each in found if each.replay_id == known.replay_id), None)
        if stored is None:  # retention has deleted it
            return False
        schema = await self._catalog.schema(stored.schema_id)
        values = schema.decode(stored.payload)
        try:
            again = schema.encode_json(event.body, created_ms=values["CreatedDate"], created_by=values["CreatedById"])
        except BadEvent:  # its schema of then has no such event
            return True
        return again != stored.payload

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._timeout_s

    async def _look_up(
        self, topic: str, ready: Sequence[_Ready], deadline: float
    ) -> tuple[dict[str, PublishedId], set[int]]:
        """The events with the ids of these that are in the log, and the positions of those that came with an id of a
        different one there. Nothing is written before that is known. Raises BusUnavailable, also at the deadline.
        """
        asked = {event.outgoing.uuid for event in ready if event.once}
        if not asked:
            return {}, set()
        try:
            async with asyncio.timeout_at(deadline):
                known = await self._ids.find(topic, asked)
                reused = {
                    index
                    for index, event in enumerate(ready)
                    if event.once
                    and (first := known.get(event.outgoing.uuid)) is not None
                    and await self._is_another(event, first)
                }
        except TimeoutError:
            raise BusUnavailable(
                f"Whether earlier events of {topic} were published could not be read from the log within "
                f"{self._timeout_s:g} s; send the event again"
            ) from None
        return known, reused

    async def _write(
        self,
        topic: str,
        fresh: list[_Ready],
        under_way: Mapping[tuple[str, str], _UnderWay],
        face: str,
        deadline: float,
    ) -> list[int | TidegateError]:
        """The answers to events without a publisher's id; those with one are in the futures."""
        try:
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            outgoing = [event.outgoing for event in fresh]
            appended = await self._bus.publish(topic, outgoing, timeout_s=left) if fresh else []
            accepted = {
                event.outgoing.uuid: PublishedId(answer, event.digest)
                for event, answer in zip(fresh, appended, strict=True)
                if event.once and isinstance(answer, int)
            }
            if accepted:
                self._ids.put(topic, accepted)
            offsets = [answer for answer in appended if isinstance(answer, int)]
            if offsets and offsets[-1] - offsets[0] == len(offsets) - 1:
                self._ids.appended(topic, offsets[0], offsets[-1] + 1)
            if len(accepted) < len(under_way):
                self._ids.doubt(topic)
            for event, answer in zip(fresh, appended, strict=True):
                if event.once:
                    under_way[event.key].outcome.set_result(answer)
            self._metrics.published.labels(topic, face).inc(sum(isinstance(answer, int) for answer in appended))
            return [answer for event, answer in zip(fresh, appended, strict=True) if not event.once]
        finally:
            for key in under_way:
                self._end(key)

    def _begin(self, event: _Ready) -> _UnderWay:
        made = self._under_way[event.key] = _UnderWay(asyncio.get_running_loop().create_future(), event.digest)
        return made

    def _end(self, key: tuple[str, str]) -> None:
        """An event is no longer being published.

        Waiting callers without an answer are told to retry; the log then has the truth.
        """
        outcome = self._under_way.pop(key).outcome
        if not outcome.done():
            self._ids.doubt(key[0])
            outcome.set_result(BusUnavailable(f"Publishing to {key[0]} was broken off; send the event again"))


class AllOrNoneBlock:
    """Events that are published together when ``Publisher.all_or_none`` ends, or not at all."""

    def __init__(
        self, encoded: Callable[[JsonEvent], Awaitable[_Ready]], write: Callable[[_Ready], Awaitable[int]]
    ) -> None:
        self._encoded, self._write = encoded, write
        self.refused = False

    async def publish(self, event: JsonEvent) -> Published:
        """Write an event that is published with the block. Raises the reason if it is refused."""
        return await self.append(await self._encoded(event))

    async def publish_all(self, events: Sequence[JsonEvent]) -> list[Outcome]:
        """Write all events, or none if one is refused: then ``refused`` is set, and the others are RolledBack."""
        outcomes: list[Outcome] = [RolledBack()] * len(events)
        ready = []
        for index, event in enumerate(events):
            try:
                ready.append(await self._encoded(event))
            except EventsError as error:
                outcomes[index] = Refused(error)
                self.refused = True
        return outcomes if self.refused else [await self.append(event) for event in ready]

    async def append(self, event: _Ready) -> Published:
        return Published(event.outgoing.uuid, await self._write(event))
