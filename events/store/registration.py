"""Event definitions in a real registry and a real log: the stores of the catalog, and ``register`` for the command
line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Final

from broker.client import Admin, BatchProducer, NewTopic, TopicPartition
from broker.client.errors import UnknownTopicOrPartition
from events.errors import BusUnavailable, DefinitionConflict
from events.model.definitions import EventDefinition
from events.model.payloads import EventSchema
from events.store.catalog import Catalog
from registry.client import Incompatible, NotFound, RegistryClient
from tidegate.kit.errors import TidegateError

__all__ = ["RETENTION_MS", "RegistrySchemas", "Topics", "events", "register"]

RETENTION_MS: Final = 72 * 3600 * 1000
"""The default retention of events, which is Salesforce's."""


async def register(
    definition: EventDefinition,
    registry: RegistryClient,
    admin: Admin,
    producer: BatchProducer,
    *,
    retention_ms: int = RETENTION_MS,
) -> EventSchema:
    """Define an event: create its topic if missing, register its schema. Doing the same twice changes nothing.

    Raises DefinitionConflict if the change breaks the subject's compatibility level, TopicUnfit if a topic of the name
    has several partitions, BusUnavailable if log or registry do not answer.
    """
    return await events(registry, admin, producer).define(definition, retention_ms=retention_ms)


def events(registry: RegistryClient, admin: Admin, producer: BatchProducer) -> Catalog:
    """The defined events: ``names()``, ``find(name)``, ``schema(id)``, ``define(definition)``."""
    return Catalog(RegistrySchemas(registry), Topics(admin, producer))


class RegistrySchemas:
    """A SchemaStore over the registry's REST API."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client

    def subjects(self) -> list[str]:
        with _translating():
            return self._client.subjects()

    def latest(self, subject: str) -> tuple[int, str] | None:
        with _translating():
            try:
                version = self._client.version(subject)
            except NotFound:
                return None
            return version.id, version.text

    def by_id(self, schema_id: int) -> str | None:
        with _translating():
            try:
                return self._client.schema(schema_id).canonical
            except NotFound:
                return None

    def register(self, subject: str, text: str) -> int:
        with _translating():
            try:
                return self._client.register(subject, text)
            except Incompatible as error:
                event = subject.removesuffix("-value")
                raise DefinitionConflict(
                    f"The new definition of {event} is not compatible with the one before: {error}"
                ) from error

    def register_freely(self, subject: str, text: str) -> int:
        with _translating():
            try:
                return self._client.register(subject, text)
            except Incompatible:
                self._client.set_compatibility("NONE", subject)
                return self._client.register(subject, text)


class Topics:
    """A TopicStore over a cluster's clients, which the caller starts and stops."""

    def __init__(self, admin: Admin, producer: BatchProducer) -> None:
        self._admin, self._producer = admin, producer

    async def partitions(self, topic: str) -> int | None:
        with _translating():
            try:
                return len((await self._admin.describe_topics([topic]))[topic].partitions)
            except UnknownTopicOrPartition:
                return None

    async def create(self, topic: str, retention_ms: int) -> None:
        configs = {"retention.ms": str(retention_ms), "cleanup.policy": "delete"}
        with _translating():
            await self._admin.create_topics([NewTopic(topic, 1, -1, configs)], exist_ok=True)
            await self._use_up_offset_zero(topic)

    async def create_compacted(self, topic: str) -> None:
        """Create a topic with one partition that keeps the newest value of each key."""
        with _translating():
            await self._admin.create_topics([NewTopic(topic, 1, -1, {"cleanup.policy": "compact"})], exist_ok=True)

    async def keep(self, topic: str, retention_ms: int) -> None:
        with _translating():
            await self._admin.alter_configs(topic, {"retention.ms": str(retention_ms)})

    async def retention_ms(self, topic: str) -> int | None:
        with _translating():
            entry = (await self._admin.describe_configs(topic)).get("retention.ms")
        return int(entry.value) if entry is not None and entry.value is not None else None

    async def _use_up_offset_zero(self, topic: str) -> None:
        """Make replay ids begin with 1: Salesforce never assigns 0, and some clients interpret it as none.

        Only offset 0 is ever deleted, and only if it was just written. If two processes create the topic at the same
        moment, one may write an additional record without a value, which readers skip.
        """
        partition = TopicPartition(topic, 0)
        if (await self._admin.end_offsets([partition]))[partition]:
            return
        marker = await self._producer.send(topic, None, None, partition=0)
        if marker.offset == 0:
            await self._admin.delete_records({partition: 1})


@contextlib.contextmanager
def _translating() -> Iterator[None]:
    """Translates retriable errors of log and registry into BusUnavailable."""
    try:
        yield
    except TidegateError as error:
        if isinstance(error, BusUnavailable) or not error.retriable:
            raise
        raise BusUnavailable(str(error)) from error
