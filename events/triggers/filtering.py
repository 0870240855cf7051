"""Which events of a fetch pass a trigger's filter, worked out for all of one schema at once."""

from __future__ import annotations

from collections.abc import Sequence

from events.definitions import EventDefinition
from events.filters import Filter
from events.payloads import EventSchema
from events.triggers.api import TriggerEvent

__all__ = ["Passing"]


class Passing:
    """Collects the payloads of events in their order, then says which events pass. Without a filter all do, at no cost."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._found: list[tuple[EventSchema, bytes]] = []

    def add(self, schema: EventSchema, payload: bytes) -> None:
        if self._text:
            self._found.append((schema, payload))

    def of(self, events: Sequence[TriggerEvent], definition: EventDefinition) -> list[TriggerEvent]:
        """``events`` are those whose payloads were added; a field that an older one lacks is one without a value.

        Raises InvalidFilter where the definition has no such field.
        """
        import pyarrow as pa

        mask = Filter(self._text, definition).mask
        passes = [False] * len(events)
        for schema in {schema.id: schema for schema, _ in self._found}.values():
            places = [place for place, (of, _) in enumerate(self._found) if of.id == schema.id]
            rows = pa.array([schema.decode(self._found[place][1]) for place in places])
            for place, passed in zip(places, mask(rows).to_pylist(), strict=True):
                passes[place] = passed
        return [event for event, passed in zip(events, passes, strict=True) if passed]
