"""Evaluates a trigger's filter, for all fetched events of one schema at once."""

from __future__ import annotations

from collections.abc import Sequence

from events.model.changes.schemas import ChangeEventSchema, is_change_event
from events.model.filters import Filter, Filterable
from events.model.payloads import EventSchema
from events.store.catalog import Catalog
from events.triggers.api import TriggerEvent

__all__ = ["Passing", "filterable"]


async def filterable(catalog: Catalog, event: str) -> Filterable | None:
    """The comparable fields of an event; None for a change event whose table has no record yet."""
    if is_change_event(event):
        return await catalog.change_event(event)
    return (await catalog.find(event)).definition


class Passing:
    """Collects the payloads of events in order, then returns the events that pass.

    Without a filter all pass, at no cost.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._filtered_events: list[tuple[EventSchema | ChangeEventSchema, bytes]] = []

    def add(self, schema: EventSchema | ChangeEventSchema, payload: bytes) -> None:
        if self._text:
            self._filtered_events.append((schema, payload))

    def of(self, events: Sequence[TriggerEvent], newest: Filterable | None) -> list[TriggerEvent]:
        """``events`` are those whose payloads were added. A field that an older event lacks has no value.

        Raises InvalidFilter if the newest definition (the newest collected one if ``newest`` is None) has no such
        field.
        """
        import pyarrow as pa

        schemas = {schema.id: schema for schema, _ in self._filtered_events}
        changes = [schema for schema in schemas.values() if isinstance(schema, ChangeEventSchema)]
        mask = Filter(self._text, newest or max(changes, key=lambda schema: schema.id)).mask
        passes = [False] * len(events)
        for schema in schemas.values():
            indexes = [index for index, (of, _) in enumerate(self._filtered_events) if of.id == schema.id]
            payloads = [self._filtered_events[index][1] for index in indexes]
            if isinstance(schema, ChangeEventSchema):
                rows = schema.rows([schema.comparable(payload) for payload in payloads])
            else:
                rows = pa.array([schema.decode(payload) for payload in payloads])
            for index, passed in zip(indexes, mask(rows).to_pylist(), strict=True):
                passes[index] = passed
        return [event for event, passed in zip(events, passes, strict=True) if passed]
