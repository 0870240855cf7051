"""Keys of the connectors that use the Bulk API 2.0, under the names of Confluent's."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from typing import Final

from connect.api import Problem, at_least, between, config, key, non_empty, one_of
from connectors.salesforce.bulk_query import ObjectQuery
from connectors.salesforce.config import SalesforceConfig, WriteConfig

__all__ = ["POLLING", "STREAMING", "BulkSinkConfig", "BulkSourceConfig", "ObjectSourceConfig", "QueryConfig"]

STREAMING: Final = "Event-Driven Sync (using Pub/Sub API)"
POLLING: Final = "Periodic Polling (using Bulk API 2.0)"


def _only_one(count: int) -> str | None:
    return None if count == 1 else "must be 1: run one connector for each object"


@config
class BulkSinkConfig(WriteConfig):
    """Bulk API 2.0 sink."""

    objects: int = key(
        "salesforce.object.num",
        default=1,
        check=_only_one,
        doc="How many objects are written: one; its keys may be called salesforce.object1.… too.",
        importance="low",
        group="Object",
    )
    skip_relationships: bool = key(
        "skip.relationship.fields",
        default=True,
        aliases=("skip.object1.relationship.fields",),
        check=lambda skip: (
            None if skip else "must be true: records that are found by a field of another are not written here"
        ),
        doc="Leave out structs, such as Account.Key__c.",
        importance="low",
        group="Object",
    )
    batch_rows: int = key(
        "salesforce.batch.size",
        default=10_000,
        check=between(1, 100_000),
        doc="The most records in one job. A job is begun when so many have come, and whenever offsets are committed.",
        group="Object",
    )
    batch_bytes: int = key(
        "salesforce.batch.bytes",
        default=10_000_000,
        check=between(1_000, 100_000_000),
        doc="The most bytes in the file of one job, unless one record is larger; Salesforce takes 100 MB.",
        importance="low",
        group="Object",
    )
    job_timeout_ms: int = key(
        "max.timeout.ms",
        default=200_000,
        check=between(1_000, 280_000),
        doc="For how long a job is waited for at once, in milliseconds; it is waited for again then, nothing is sent twice.",
        group="Object",
    )
    on_error: str = key(
        "behavior.on.api.errors",
        default="fail",
        check=one_of("fail", "log", "ignore"),
        doc="What becomes of a record that Salesforce refuses: errors.* decides (fail), or it is dropped, logged or not.",
        group="Object",
    )

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        if self.object_name.endswith(("__e", "__b")) and self.operation != "insert":
            yield Problem(
                "salesforce.sink.object.operation", f"{self.object_name} takes insert only, not {self.operation}"
            )


def _is_day(text: str) -> str | None:
    try:
        is_iso = date.fromisoformat(text).isoformat() == text if text else True
    except ValueError:
        is_iso = False
    return None if is_iso else "must be a day as yyyy-MM-dd"


@config
class QueryConfig(SalesforceConfig):
    """Keys of the sources that read objects with query jobs."""

    page_rows: int = key(
        "result.max.rows",
        default=1000,
        aliases=("batch.max.rows",),
        check=between(1, 250_000),
        doc="The most records that are fetched at once.",
        group="Query",
    )
    overlap_ms: int = key(
        "gap.resync.buffer.ms",
        default=60_000,
        check=at_least(0),
        doc="How far a query reaches back into the time of the one before, in milliseconds: transactions end later than their "
        "records' times say. What was read already is left out.",
        importance="low",
        group="Query",
    )


@config
class BulkSourceConfig(QueryConfig):
    """Bulk API 2.0 source."""

    topic: str = key(
        "kafka.topic",
        aliases=("salesforce.object1.topic",),
        doc="The topic to write to.",
        importance="high",
        check=non_empty,
        group="Query",
    )
    objects: int = key(
        "salesforce.object.num",
        default=1,
        check=_only_one,
        doc="How many objects are read: one; its keys may be called salesforce.object1.… too.",
        importance="low",
        group="Query",
    )
    object_name: str = key(
        "salesforce.object",
        aliases=("salesforce.object1",),
        doc="The object to read, such as Lead.",
        importance="high",
        check=non_empty,
        group="Query",
    )
    since: str = key(
        "salesforce.since",
        default="",
        aliases=("salesforce.object1.since",),
        check=_is_day,
        doc="Records created from this day on are read, yyyy-MM-dd in UTC; the day of the start when empty.",
        importance="high",
        group="Query",
    )
    poll_interval_ms: int = key(
        "poll.interval.ms",
        default=30_000,
        check=between(8_700, 10_800_000),
        doc="How long to wait between queries, in milliseconds.",
        group="Query",
    )
    offset_field: str = key(
        "salesforce.offset.field.name",
        default="SystemModstamp",
        aliases=("salesforce.object1.offset.field.name",),
        check=non_empty,
        doc="The datetime field that grows with every change of a record.",
        group="Query",
    )
    deleted_too: bool = key(
        "include.deleted.records",
        default=False,
        aliases=("salesforce.object1.include.deleted.records",),
        doc="Read records in the recycle bin too; their _EventType is deleted.",
        group="Query",
    )
    as_text: list[str] = key(
        "skip.epoch.conversion.fields",
        default=[],
        aliases=("salesforce.object1.skip.epoch.conversion.fields",),
        doc="Date and datetime fields that stay texts.",
        importance="low",
        group="Query",
    )
    custom_query: bool = key(
        "salesforce.object1.enable.custom.query",
        default=False,
        doc="Read the fields and records of the two keys that follow.",
        importance="low",
        group="Query",
    )
    custom_fields: list[str] = key(
        "salesforce.object1.custom.query.fields",
        default=[],
        doc="The fields to read, with Id and the offset field among them; all when empty.",
        importance="low",
        group="Query",
    )
    custom_where: str = key(
        "salesforce.object1.custom.query.where",
        default="",
        doc="A SOQL condition that records have to meet, without the word WHERE.",
        importance="low",
        group="Query",
    )

    def query(self) -> ObjectQuery:
        return ObjectQuery(
            self.object_name,
            self.topic,
            offset_field=self.offset_field,
            since=self.since,
            deleted_too=self.deleted_too,
            fields=self.custom_fields if self.custom_query else (),
            where=self.custom_where if self.custom_query else "",
            as_text=self.as_text,
            page_rows=self.page_rows,
            overlap_ms=self.overlap_ms,
        )


@config
class ObjectSourceConfig(QueryConfig):
    """Source that reads whole objects and their changes."""

    names: list[str] = key(
        "sobject.names",
        doc="The objects to read, in their exact spelling, such as Lead,Account.",
        importance="high",
        check=lambda names: None if names else "must name at least one object",
        group="Objects",
    )
    topic_prefix: str = key(
        "topic.prefix",
        doc="Each object has the topic PREFIX.OBJECT.",
        importance="high",
        check=non_empty,
        group="Objects",
    )
    snapshot: bool = key(
        "historical.snapshot",
        default=True,
        doc="Begin with the records that are there.",
        importance="high",
        group="Objects",
    )
    since: str = key(
        "since",
        default="",
        check=_is_day,
        doc="Records created from this day on are in the snapshot, yyyy-MM-dd in UTC; the day of the start when empty.",
        group="Objects",
    )
    mode: str = key(
        "real.time.ingestion.mode",
        default=STREAMING,
        check=one_of(STREAMING, POLLING),
        doc="How changes are followed: as change events, or by queries. Events come over the Streaming API, not the Pub/Sub API.",
        importance="high",
        group="Objects",
    )
    start: str = key(
        "event.sync.start.point",
        default="latest",
        check=one_of("latest", "all"),
        doc="Without a snapshot: begin with new events, or with all that are kept.",
        group="Objects",
    )
    when_gap: str = key(
        "gap.event.recovery",
        default="resync",
        check=one_of("resync", "latest", "fail", ignore_case=True),
        doc="After an event that says that changes are missing, and when the position is not kept any more: read what changed by a "
        "query, go on with new events, or fail.",
        importance="high",
        group="Objects",
    )
    tombstones: bool = key(
        "emit.tombstone.on.delete",
        default=False,
        doc="Write a record without value for a deleted one.",
        group="Objects",
    )
    full_on_update: bool = key(
        "cdc.full.record.on.update",
        default=False,
        check=lambda full: "is not done here: use Periodic Polling, which reads whole records" if full else None,
        doc="Must be false: updates hold the fields that changed.",
        importance="low",
        group="Objects",
    )
    poll_interval_ms: int = key(
        "poll.interval.ms",
        default=30_000,
        check=between(500, 10_800_000),
        doc="How long to wait between queries, in milliseconds.",
        group="Objects",
    )
    deleted_too: bool = key(
        "include.deleted.records",
        default=False,
        doc="Let queries find records in the recycle bin too; their _EventType is deleted.",
        group="Objects",
    )
    as_text: list[str] = key(
        "skip.epoch.conversion.fields",
        default=[],
        doc="Date and datetime fields that stay texts in what queries find.",
        importance="low",
        group="Objects",
    )

    def problems(self) -> Iterable[Problem]:
        yield from super().problems()
        for name in self.names:
            if name.endswith(("__b", "__x", "__e")):
                yield Problem("sobject.names", f"{name} is no object that changes can be followed of")

    @property
    def streams(self) -> bool:
        return self.mode == STREAMING

    def topic_of(self, name: str) -> str:
        return f"{self.topic_prefix}.{name}"

    def query(self, name: str) -> ObjectQuery:
        return ObjectQuery(
            name,
            self.topic_of(name),
            since=self.since,
            deleted_too=self.deleted_too,
            as_text=self.as_text,
            page_rows=self.page_rows,
            overlap_ms=self.overlap_ms,
        )
