"""The sources of a relay, and which of their records enter a channel: platform events that pass a member's filter."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker.client import FetchedBatches, KafkaRecord
from events.channels.channels import ChannelMember
from events.errors import InvalidMetadata, NotThere, UndecodablePayload
from events.model.filters import Filter
from events.model.payloads import EventSchema, unframe
from events.store.catalog import Catalog
from registry.client import AvroSchema
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Copy", "EventSource", "RelaySource"]

logger = get_logger(__name__)

Header = tuple[str, bytes | None]


class Copy(NamedTuple):
    """A record to copy into a channel."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: Sequence[Header] = ()


class RelaySource(Protocol):
    """A topic that fills a channel. Its methods are called one at a time."""

    @property
    def topic(self) -> str: ...

    def since(self, partition: int) -> int:
        """The offset from which on the channel has the partition's events."""
        ...

    def resume(self, partition: int, note: str) -> None:
        """Continue with a partition. ``note`` was returned with the last copies; empty if there were none."""
        ...

    async def copies(self, fetched: FetchedBatches) -> tuple[Sequence[Copy], str]:
        """The records of a fetch to copy into the channel, and a note to store with the new position (up to 4,096
        bytes).
        """
        ...


class EventSource:
    """A platform event. Other records are skipped with a log message."""

    def __init__(self, member: ChannelMember, catalog: Catalog) -> None:
        self._member, self._catalog = member, catalog
        self._filters: dict[int, Filter] = {}
        self._avro: dict[int, AvroSchema] = {}

    @property
    def topic(self) -> str:
        return self._member.event

    def since(self, partition: int) -> int:
        return self._member.since

    def resume(self, partition: int, note: str) -> None:
        """Needs no note: each event passes or not, whatever came before."""

    async def copies(self, fetched: FetchedBatches) -> tuple[Sequence[Copy], str]:
        return [
            Copy(record.key, record.value, record.timestamp_ms, record.headers)
            for record in await self._passing(fetched)
        ], ""

    async def _passing(self, fetched: FetchedBatches) -> list[KafkaRecord]:
        passing: list[tuple[KafkaRecord, EventSchema]] = []
        for record in fetched.records():
            try:
                if record.value is None:
                    raise UndecodablePayload("The record has no value")
                schema = await self._catalog.schema(unframe(record.value)[0])
            except (UndecodablePayload, NotThere) as error:
                logger.warning(
                    "a record in an event topic is not an event; its channel goes without it",
                    channel=self._member.channel,
                    topic=record.topic,
                    offset=record.offset,
                    error=str(error),
                )
                continue
            passing.append((record, schema))
        if not passing or not self._member.filter:
            return [record for record, _ in passing]
        return await asyncio.to_thread(self._filtered, passing)

    def _filtered(self, records: Sequence[tuple[KafkaRecord, EventSchema]]) -> list[KafkaRecord]:
        import pyarrow as pa

        from registry.serde import CorruptRecord, decode_columns

        schemas = {schema.id: schema for _, schema in records}
        for schema in schemas.values():
            if schema.id not in self._avro:
                self._avro[schema.id] = AvroSchema.parse(schema.text)
        values = pa.array([record.value for record, _ in records], pa.binary())
        try:
            runs = decode_columns(values, self._avro.__getitem__)
        except CorruptRecord as error:
            if len(records) > 1:  # one by one, so that the others are not lost with it
                return [record for each in records for record in self._filtered([each])]
            logger.warning(
                "an event cannot be decoded; its channel goes without it",
                channel=self._member.channel,
                error=str(error),
            )
            return []
        passing: list[KafkaRecord] = []
        for run in runs:
            assert run.schema_id is not None
            passes = self._mask(schemas, run.schema_id, run.array)
            passing += [records[run.start + index][0] for index, passed in enumerate(passes) if passed]
        return passing

    def _mask(self, schemas: Mapping[int, EventSchema], schema_id: int, rows: pa.StructArray) -> list[bool]:
        made = self._filters.get(schema_id)
        if made is None:
            try:
                made = Filter(self._member.filter, schemas[schema_id].definition)
            except InvalidMetadata as error:
                # The event's definition has lost a field since: the filter can't be evaluated for this version.
                logger.warning(
                    "a filter does not fit its event any more",
                    channel=self._member.channel,
                    topic=self.topic,
                    error=str(error),
                )
                return [False] * len(rows)
            self._filters[schema_id] = made
        passes: list[bool] = made.mask(rows).to_pylist()
        return passes
