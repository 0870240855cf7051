"""Publishing: checks events against their definition and appends those that pass, in the order given."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from events.bus import EventBus, Outgoing
from events.catalog import Catalog
from events.errors import EventsError, EventTooLarge, UndecodablePayload, UnknownSchema
from events.metrics import EventMetrics
from tidegate.kit.errors import TidegateError

__all__ = ["MAX_EVENT_BYTES", "AvroEvent", "Published", "Publisher"]

MAX_EVENT_BYTES: Final = 1024 * 1024
"""The size of one event's Avro body, as Salesforce bounds it."""


@dataclass(frozen=True, slots=True)
class Published:
    """An event that the log has acknowledged."""

    uuid: str
    replay_id: int


@dataclass(frozen=True, slots=True)
class AvroEvent:
    """An event that its publisher has encoded already, with the schema it names."""

    uuid: str
    schema_id: str
    payload: bytes


class Publisher:
    """Publishes what the faces take in. Each event is judged by itself: one that is refused does not hold back others."""

    def __init__(self, catalog: Catalog, bus: EventBus, metrics: EventMetrics, clock_ms: Callable[[], int]) -> None:
        self._catalog, self._bus, self._metrics, self._clock_ms = catalog, bus, metrics, clock_ms

    async def publish_json(
        self, records: Sequence[tuple[str, Mapping[str, Any]]], *, user_id: str, all_or_none: bool = False
    ) -> list[Published | TidegateError | None]:
        """Publish (event name, JSON object) pairs; the answers are in their order.

        With ``all_or_none`` nothing is published if one is refused, and None stands for those that were held back.
        """
        now = self._clock_ms()
        answers: list[Published | TidegateError | None] = [None] * len(records)
        ready: dict[str, list[tuple[int, Outgoing]]] = {}
        for index, (name, body) in enumerate(records):
            try:
                schema = await self._catalog.find(name)
                payload = schema.encode_json(body, created_ms=now, created_by=user_id)
                _check_size(payload)
            except EventsError as error:
                answers[index] = error
                self._metrics.refused.labels("rest").inc()
                continue
            outgoing = Outgoing(str(uuid.uuid4()), schema.id, payload)
            ready.setdefault(schema.definition.name, []).append((index, outgoing))
        if all_or_none and any(answers):
            return answers
        for name, group in ready.items():
            done = await self._append(name, [outgoing for _, outgoing in group], "rest")
            for (index, _), answer in zip(group, done, strict=True):
                answers[index] = answer
        return answers

    async def publish_avro(self, name: str, events: Sequence[AvroEvent]) -> list[Published | TidegateError]:
        """Publish finished Avro bodies to one event; the answers are in their order. Raises UnknownEvent."""
        topic = (await self._catalog.find(name)).definition.name
        answers: list[Published | TidegateError | None] = [None] * len(events)
        ready: list[tuple[int, Outgoing]] = []
        for index, event in enumerate(events):
            try:
                ready.append((index, await self._checked(topic, event)))
            except EventsError as error:
                answers[index] = error
                self._metrics.refused.labels("pubsub").inc()
        done = await self._append(topic, [outgoing for _, outgoing in ready], "pubsub")
        for (index, _), answer in zip(ready, done, strict=True):
            answers[index] = answer
        return [answer for answer in answers if answer is not None]

    async def _checked(self, topic: str, event: AvroEvent) -> Outgoing:
        if not event.schema_id.strip():
            raise UndecodablePayload("Schema validation failed. The schema ID can't be blank.")
        if not (event.schema_id.isascii() and event.schema_id.isdigit() and len(event.schema_id) < 11):
            raise UnknownSchema(event.schema_id)
        schema = await self._catalog.schema(int(event.schema_id))
        if schema.definition.name != topic:
            raise UndecodablePayload(
                f"Schema validation failed. Schema {event.schema_id} is of {schema.definition.name}, not of {topic}."
            )
        _check_size(event.payload)
        schema.check(event.payload)
        return Outgoing(event.uuid or str(uuid.uuid4()), schema.id, event.payload)

    async def _append(self, topic: str, outgoing: list[Outgoing], face: str) -> list[Published | TidegateError]:
        if not outgoing:
            return []
        appended = await self._bus.publish(topic, outgoing)
        answers: list[Published | TidegateError] = [
            Published(event.uuid, answer) if isinstance(answer, int) else answer
            for event, answer in zip(outgoing, appended, strict=True)
        ]
        accepted = sum(isinstance(answer, int) for answer in appended)
        self._metrics.published.labels(topic, face).inc(accepted)
        return answers


def _check_size(payload: bytes) -> None:
    if len(payload) > MAX_EVENT_BYTES:
        raise EventTooLarge(f"The event is {len(payload)} bytes; at most {MAX_EVENT_BYTES} are taken")
