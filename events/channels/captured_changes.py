"""A captured table's topic as the source of a channel: turns its changes into change events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from broker.client import FetchedBatches, KafkaRecord
from events.channels.channels import ChannelMember
from events.channels.relay_sources import Copy
from events.errors import InvalidMetadata, NotThere, UndecodablePayload
from events.model.changes.building import Made, TableEvents
from events.model.changes.envelope import Change, Envelope, RecordKey
from events.model.changes.schemas import ChangeEventSchema
from events.model.filters import Filter
from events.model.payloads import frame, unframe
from events.store.catalog import Catalog
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    from events.channels.entities import ChangeEntity

__all__ = ["ChangeSource"]

logger = get_logger(__name__)

T = TypeVar("T")

_LARGEST: Final = 1_000_000
"""A larger event is delivered as a gap event."""


class _Counter(NamedTuple):
    """How many changes of a transaction a partition has had so far."""

    transaction: str = ""
    number: int = 0

    def next(self, change: Change) -> _Counter:
        """Uses the connector's numbering of a transaction's changes over all tables, if there is one."""
        name, order = change.transaction_id, (change.transaction or {}).get("total_order")
        number = order if isinstance(order, int) else self.number + 1 if name == self.transaction else 1
        return _Counter(name, number)


class _Version(NamedTuple):
    """One version of the table: how to make events from it, their registered schema, and the member's filter."""

    table: TableEvents
    schema: ChangeEventSchema
    filter: Filter | None
    enriched: frozenset[str]


class ChangeSource:
    """The changes of one entity for one channel; see ``RelaySource``. Other records are skipped with a log message."""

    def __init__(self, member: ChannelMember, entity: ChangeEntity, catalog: Catalog, *, commit_user: str) -> None:
        self._member, self._entity, self._catalog, self._user = member, entity, catalog, commit_user
        self._versions: dict[int, _Version | TidegateError] = {}
        self._keys: dict[int, RecordKey | TidegateError] = {}
        self._counters: dict[int, _Counter] = {}

    @property
    def topic(self) -> str:
        return self._entity.topic

    def since(self, partition: int) -> int:
        offsets = self._member.since_partitions or self._entity.since
        return offsets[partition] if partition < len(offsets) else 0

    def resume(self, partition: int, note: str) -> None:
        try:
            counts = json.loads(note or "{}")
            self._counters[partition] = _Counter(str(counts["transaction"]), int(counts["number"]))
        except (ValueError, KeyError, TypeError):
            self._counters[partition] = _Counter()

    async def copies(self, fetched: FetchedBatches) -> tuple[Sequence[Copy], str]:
        records = [
            record for record in fetched.records() if record.value is not None
        ]  # without the tombstones after deletes
        for record in records:
            await self._learn(record)
        return await asyncio.to_thread(self._copies_of, fetched.partition, records)

    def _copies_of(self, partition: int, records: Sequence[KafkaRecord]) -> tuple[list[Copy], str]:
        counter = self._counters.get(partition, _Counter())
        copies = []
        for record in records:
            try:
                version, change, record_id = self._read(record)
            except UndecodablePayload as error:
                self._say(record, error)
                continue
            counter = counter.next(change)
            made = version.table.make(
                change, record_id, user=self._user, sequence=counter.number, enriched=version.enriched
            )
            if made is not None and self._passes(version, made):
                copies.append(self._copy(version, made, record.timestamp_ms))
        self._counters[partition] = counter
        return copies, json.dumps(counter._asdict())

    def _read(self, record: KafkaRecord) -> tuple[_Version, Change, str | None]:
        schema_id, payload = unframe(record.value or b"")
        version = self._versions[schema_id]
        if isinstance(version, TidegateError):
            raise UndecodablePayload(str(version))
        record_id = None
        if record.key is not None:
            key_id, key = unframe(record.key)
            reader = self._keys[key_id]
            if isinstance(reader, TidegateError):
                raise UndecodablePayload(str(reader))
            record_id = reader.id(key)
        return version, version.table.envelope.change(payload), record_id

    def _copy(self, version: _Version, made: Made, timestamp_ms: int) -> Copy:
        try:
            payload = version.schema.encode(made.values)
        except UndecodablePayload as error:
            logger.warning(
                "a change does not fit its event; it is sent as a gap", entity=self._entity.name, error=str(error)
            )
            payload = b""
        if not payload or len(payload) > _LARGEST:
            payload = version.schema.encode(made.as_gap())
        return Copy(None, frame(version.schema.id, payload), timestamp_ms)

    def _passes(self, version: _Version, made: Made) -> bool:
        """A gap always passes, because its row is unknown."""
        if version.filter is None or not made.row:
            return True
        return bool(version.filter.mask(version.schema.rows([made.row]))[0].as_py())

    async def _learn(self, record: KafkaRecord) -> None:
        """Load the schemas of a record, or the reason why there are none."""
        with contextlib.suppress(UndecodablePayload):
            schema_id, _ = unframe(record.value or b"")
            if schema_id not in self._versions:
                self._versions[schema_id] = await _or_error(self._version(schema_id))
            key_id, _ = unframe(record.key or b"")
            if key_id not in self._keys:
                self._keys[key_id] = await _or_error(self._key(key_id))

    async def _version(self, schema_id: int) -> _Version:
        table = self._entity.of_table(Envelope(await self._catalog.text(schema_id)))
        schema = await self._catalog.define_change_event(self._entity.event, table.text)
        made = Filter(self._member.filter, schema) if self._member.filter else None
        return _Version(table, schema, made, frozenset({*self._member.enriched, *(made.fields if made else ())}))

    async def _key(self, schema_id: int) -> RecordKey:
        return RecordKey(await self._catalog.text(schema_id))

    def _say(self, record: KafkaRecord, error: Exception) -> None:
        logger.warning(
            "a record of a table is no change that can be read; its channel goes without it",
            entity=self._entity.name,
            topic=record.topic,
            offset=record.offset,
            error=str(error),
        )


async def _or_error(making: Awaitable[T]) -> T | TidegateError:
    """The result, or the error if it is permanent; temporary errors are raised."""
    try:
        return await making
    except (UndecodablePayload, NotThere, InvalidMetadata) as error:
        return error
