"""Platform events, entities, channels and managed subscriptions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from tidegate.configuration.parts import Document, Part

if TYPE_CHECKING:
    from events.client import EventsClient

__all__ = ["Entities", "Events", "ToolingRecords", "event_parts"]


class Events:
    """Definitions of platform events, as Avro schemas; a retention that was asked for is an attribute of them."""

    folder = "events"

    def __init__(self, client: EventsClient) -> None:
        self._client = client

    def read(self) -> dict[str, Document]:
        described = [self._client.describe(event["name"]) for event in self._client.events()]
        return {event["name"]: {"schema": _schema(event["schema"])} for event in described}

    def difference(self, document: Document, existing: Document | None) -> str:
        if existing is None:
            return "define"
        return "" if existing == document else "change"

    def write(self, documents: Mapping[str, tuple[Document, Document | None]]) -> None:
        for document, _ in documents.values():
            self._client.define_avro(json.dumps(document["schema"]))


def _schema(schema: object) -> object:
    return json.loads(schema) if isinstance(schema, str) else schema


class Entities:
    """Captured tables whose changes are change events."""

    folder = "entities"

    def __init__(self, client: EventsClient) -> None:
        self._client = client

    def read(self) -> dict[str, Document]:
        kept = ("entity", "topic", "fields", "label")
        return {
            entity["entity"]: {key: entity[key] for key in kept if key in entity} for entity in self._client.entities()
        }

    def difference(self, document: Document, existing: Document | None) -> str:
        return "define" if existing is None else "" if existing == document else "change"

    def write(self, documents: Mapping[str, tuple[Document, Document | None]]) -> None:
        for document, _ in documents.values():
            self._client.define_entity(document)


class ToolingRecords:
    """Records of one type of the Tooling API."""

    def __init__(self, client: EventsClient, folder: str, type_: str) -> None:
        self._client, self.folder, self._type = client, folder, type_

    def read(self) -> dict[str, Document]:
        records = self._client.tooling_records(self._type)
        return {
            record["FullName"]: {"FullName": record["FullName"], "Metadata": record["Metadata"]} for record in records
        }

    def difference(self, document: Document, existing: Document | None) -> str:
        return "create" if existing is None else "" if existing == document else "change"

    def write(self, documents: Mapping[str, tuple[Document, Document | None]]) -> None:
        for name, (document, _) in documents.items():
            self._client.define_tooling_record(self._type, name, document["Metadata"])


def event_parts(client: EventsClient) -> Iterator[Part]:
    """The parts of the events service, in the order in which they build on one another."""
    yield Events(client)
    yield Entities(client)
    yield ToolingRecords(client, "channels", "PlatformEventChannel")
    yield ToolingRecords(client, "channel-members", "PlatformEventChannelMember")
    yield ToolingRecords(client, "subscriptions", "ManagedEventSubscription")
