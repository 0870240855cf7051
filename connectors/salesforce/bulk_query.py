"""Reads an object's records with query jobs, window after window, resuming at any row."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import TYPE_CHECKING, Any, Final

from connect.api import ConnectError, RecordBatch, RetriableConnectError, Schema, SchemaType, get_logger
from connectors.salesforce.bulk import ENDED, BulkClient
from connectors.salesforce.bulk_csv import from_csv
from connectors.salesforce.following import within_bounds
from connectors.salesforce.schemas import EVENT_TYPE, OBJECT_TYPE, object_schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ObjectQuery", "ObjectReader", "instant", "time_text"]

logger = get_logger(__name__)

_NOT_IN_BULK: Final = frozenset({"address", "location", "base64", "complexvalue"})
"""Types that query jobs reject; the parts of an address are separate fields."""
_KEY: Final = Schema(SchemaType.STRING)


@dataclass(frozen=True, slots=True)
class ObjectQuery:
    """The object and fields that are read, and the topic that they are written to."""

    name: str
    topic: str
    offset_field: str = "SystemModstamp"
    """The timestamp field that increases with every change of a record."""
    since: str = ""
    """Only records created since this date (UTC, ``yyyy-MM-dd``); today when empty."""
    deleted_too: bool = False
    fields: Sequence[str] = ()
    """The fields to read; all when empty."""
    where: str = ""
    as_text: Sequence[str] = ()
    """Whether times stay texts."""
    page_rows: int = 1000
    overlap_ms: int = 60_000
    """How far a window overlaps the previous one: a transaction may commit later than its records' timestamps."""


def instant(text: str) -> datetime:
    """A time as Salesforce writes it; raises ConnectError."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except ValueError as error:
        raise ConnectError(f"{text!r:.50} is no time: {error}") from error


def time_text(at: datetime) -> str:
    """UTC with milliseconds, as in SOQL and in offsets."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


class ObjectReader:
    """Reads one object.

    An offset has the ``time`` (the org's) up to which records have been read; within a window also ``until``, the job
    and the position in its results: ``jobId``, ``locator`` and ``rows``. For use from one thread.
    """

    def __init__(
        self,
        bulk: BulkClient,
        query: ObjectQuery,
        description: Mapping[str, Any],
        *,
        partition: Mapping[str, str],
        position: Mapping[str, Any] | None,
        stopping: Event,
    ) -> None:
        """Raises ConnectError where the object lacks what the query needs."""
        self._bulk, self._query, self._partition, self._stopping = bulk, query, partition, stopping
        self._names = self._fields(description)
        kept = [field for field in description["fields"] if field["name"] in self._names]
        self.schema = object_schema(
            query.name, [field | {"type": "string"} if field["name"] in query.as_text else field for field in kept]
        )
        self.position: dict[str, Any] = dict(position or {})
        self._seen: dict[str, int] = {}
        """Change times in milliseconds, by id, of the last window's records that this window finds again."""
        self._fresh: dict[str, int] = {}
        """The same for the next window."""

    def window(
        self, offset_of: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    ) -> Iterator[Sequence[RecordBatch]]:
        """Read the changes since ``position``; called again after an interruption it continues after the last row.

        ``offset_of`` converts each position to the offset to commit.
        """
        if "jobId" not in self.position:
            self._open()
        if not (yield from self._complete()):
            return
        while "jobId" in self.position:
            yield from self._page(offset_of)
        self._seen = self._fresh

    def polling(self, interval_ms: int) -> Iterator[Sequence[RecordBatch]]:
        """Window after window, for ever."""
        while not self._stopping.is_set():
            yield from self.window()
            due = time.monotonic() + interval_ms / 1000
            while not self._stopping.wait(min(1.0, max(0.0, due - time.monotonic()))) and time.monotonic() < due:
                yield []

    def soql(self) -> str:
        """The query of the next window."""
        query = self._query
        if begin := self._begin():
            condition = f"{query.offset_field} >= {time_text(begin)}"
        else:
            since = query.since or datetime.now(UTC).date().isoformat()
            first = "CreatedDate" if "CreatedDate" in self._names else query.offset_field
            condition = f"{first} >= {since}T00:00:00Z"
        more = f" AND ({query.where})" if query.where else ""
        return f"SELECT {', '.join(self._names)} FROM {query.name} WHERE {condition}{more}"

    def _begin(self) -> datetime | None:
        """The start of the window; None for the very first window."""
        if "time" not in self.position:
            return None
        return instant(self.position["time"]) - timedelta(milliseconds=self._query.overlap_ms)

    def _open(self) -> None:
        job = self._bulk.open_query(self.soql(), deleted_too=self._query.deleted_too)
        until = time_text(instant(str(job["createdDate"])))
        self._fresh = {}
        self.position |= {"until": until, "jobId": str(job["id"]), "locator": None, "rows": 0}

    def _complete(self) -> Generator[Sequence[RecordBatch], None, bool]:
        """Wait for the job; False when the task is stopping. A job that no longer exists is created again."""
        pause_s = 0.2
        while not self._stopping.is_set():
            try:
                job = self._bulk.job("query", self.position["jobId"])
            except ConnectError as error:
                if "NOT_FOUND" not in error.message:
                    raise
                logger.warning("a query job is gone; its window is read anew", job=self.position["jobId"])
                self._open()
                continue
            if job.get("state") in ENDED:
                if job["state"] == "Aborted":
                    self._open()
                    raise RetriableConnectError(f"query job {job['id']} was aborted; its window is read anew")
                self._bulk.complete("query", job)
                return True
            yield []
            self._stopping.wait(pause_s)
            pause_s = min(pause_s * 1.5, 5.0)
        return False

    def _page(self, offset_of: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Iterator[Sequence[RecordBatch]]:
        position = self.position
        page = self._bulk.page(position["jobId"], position["locator"], self._query.page_rows)
        begun = {name: position[name] for name in ("time",) if name in position}
        within = begun | {name: position[name] for name in ("until", "jobId")}
        columns = from_csv(page.data, self.schema, self._names)
        count = len(columns["Id"])
        if page.next_locator is None:
            end: dict[str, Any] = {"time": position["until"]}
        else:
            end = within | {"locator": page.next_locator, "rows": max(0, position["rows"] - count)}
        offsets = [offset_of(within | {"locator": position["locator"], "rows": n + 1}) for n in range(count)]
        if offsets:
            offsets[-1] = offset_of(end)
        whole = self._batch(columns, offsets)
        done = min(position["rows"], count)
        for batch in within_bounds(whole.slice(done)) if done < count else ():
            kept = self._unseen(batch)
            if len(kept):
                yield [kept]
            done += len(batch)
            self.position = within | {"locator": position["locator"], "rows": done}
        self.position = end

    def _batch(self, columns: Mapping[str, pa.Array], offsets: Sequence[Mapping[str, Any]]) -> RecordBatch:
        import pyarrow as pa
        import pyarrow.compute as pc

        count = len(columns["Id"])
        made = dict(columns)
        made[OBJECT_TYPE] = pa.array([self._query.name] * count, pa.string())
        made[EVENT_TYPE] = self._event_types(columns)
        members = [made[name] for name in self.schema.field_names]
        changed = columns[self._query.offset_field]
        return RecordBatch(
            topic=self._query.topic,
            values=pa.StructArray.from_arrays(members, fields=list(self.schema.arrow_type)),
            value_schema=self.schema,
            keys=columns["Id"],
            key_schema=_KEY,
            timestamps_ms=pc.cast(changed, pa.int64()),
            source_partition=self._partition,
            source_offset=offsets[-1] if offsets else None,
            source_offsets=offsets,
        )

    def _event_types(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        """``created`` for records created in the window, ``deleted`` for deleted ones, else ``updated``."""
        import pyarrow as pa
        import pyarrow.compute as pc

        count, begin = len(columns["Id"]), self._begin()
        kinds = pa.array(["created"] * count, pa.string())
        if begin is not None:
            created = columns.get("CreatedDate")
            is_new = (
                pc.greater_equal(created, pa.scalar(begin, created.type))
                if created is not None and pa.types.is_timestamp(created.type)
                else pa.array([False] * count)
            )
            known = pc.is_in(columns["Id"], pa.array(list(self._seen), pa.string()))
            kinds = pc.if_else(pc.and_not(pc.fill_null(is_new, False), known), "created", "updated")
        if "IsDeleted" in columns:
            kinds = pc.if_else(pc.fill_null(columns["IsDeleted"], False), "deleted", kinds)
        return kinds

    def _unseen(self, batch: RecordBatch) -> RecordBatch:
        """The records that the previous window did not have; notes those that the next one will find again."""
        import pyarrow as pa
        import pyarrow.compute as pc

        ids, times = batch.keys, batch.timestamps_ms
        assert ids is not None
        assert times is not None
        newest_ms = int(instant(self.position["until"]).timestamp() * 1000) - self._query.overlap_ms
        late = pc.fill_null(pc.greater_equal(times, newest_ms), False)
        self._fresh.update(zip(ids.filter(late).to_pylist(), times.filter(late).to_pylist(), strict=True))
        if not self._seen:
            return batch
        mask = [self._seen.get(id_) != at for id_, at in zip(ids.to_pylist(), times.to_pylist(), strict=True)]
        return batch if all(mask) else batch.filter(pa.array(mask))

    def _fields(self, description: Mapping[str, Any]) -> list[str]:
        query = self._query
        there = {field["name"]: field["type"] for field in description["fields"]}
        names = [name for name, kind in there.items() if kind not in _NOT_IN_BULK]
        if description.get("queryable") is False:
            raise ConnectError(f"{query.name} cannot be queried")
        chosen = list(query.fields) or names
        for name in ("Id", query.offset_field, *chosen):
            if name not in names:
                reason = f"is of type {there[name]}, which query jobs do not read" if name in there else "is not there"
                raise ConnectError(f"the field {name} of {query.name} {reason}")
        for name in ("Id", query.offset_field):
            if name not in chosen:
                raise ConnectError(f"the fields that are read of {query.name} have to include {name}")
        if there[query.offset_field] != "datetime" or query.offset_field in query.as_text:
            raise ConnectError(
                f"the field {query.offset_field} of {query.name} is {there[query.offset_field]}; a datetime is needed"
            )
        return chosen
