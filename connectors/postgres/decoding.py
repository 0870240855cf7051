"""From pgoutput's messages to changes by table, with transactions, positions and logical messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from connect.api import DataError, Field, Record, RecordBatch, Schema, SchemaType
from connectors.debezium.envelope import TRANSACTION_KEY, TRANSACTION_VALUE, message_envelope
from connectors.debezium.events import ContextHeaders
from connectors.debezium.filters import compiled
from connectors.postgres import pgoutput
from connectors.postgres.changes import TableChanges, source_column
from connectors.postgres.config import PostgresConfig
from connectors.postgres.pgoutput import UNCHANGED, Relation, Tuple
from connectors.postgres.tables import SOURCE, Catalog, Column, Shape, Shapes, Table

__all__ = ["Decoder"]

_ENTRY: Final = "io.debezium.connector.postgresql.Message"
_MESSAGE_KEY: Final = Schema.struct(
    {"prefix": Schema(SchemaType.STRING, optional=True)}, name=f"{_ENTRY}Key", version=1
)
_MESSAGE_BLOCK: Final = Schema.struct(
    [
        Field("prefix", Schema(SchemaType.STRING, optional=True)),
        Field("content", Schema(SchemaType.BYTES, optional=True)),
    ],
    name=_ENTRY,
    version=1,
)
_MESSAGE_VALUE: Final = message_envelope(_MESSAGE_BLOCK, SOURCE, f"{_ENTRY}Value")


class Decoder:
    """Takes messages in their order (``feed``); ``take`` hands out what they made.

    ``offset`` is the position after the last event, in Debezium's form (what it says of a transaction holds between messages).
    """

    def __init__(
        self,
        config: PostgresConfig,
        shapes: Shapes,
        catalog: Callable[[], Catalog],
        context: ContextHeaders,
        offset: Mapping[str, Any],
    ) -> None:
        self._config, self._shapes, self._catalog, self._context = config, shapes, catalog, context
        self._skipped = frozenset(config.skipped)
        self._relations: dict[int, Shape | None] = {}
        self._pending: dict[int, TableChanges] = {}
        self._ready: list[TableChanges] = []
        self._extras: list[RecordBatch] = []
        self._messages = (compiled(config.message_include), compiled(config.message_exclude))
        self.rows = 0
        self._offset: dict[str, Any] = dict(offset)
        self._marked: tuple[int, str, int | None, int, int | None] | None = None
        self.commit_lsn: int | None = offset.get("lsn_commit")
        self.in_transaction = False
        self._xid: int | None = None
        self._time = 0
        self._counts: dict[str, int] | None = None
        self._total = 0
        self._begin_id: str | None = None
        # where the transaction that was being read when the position was written goes on
        self._resume_xid = offset.get("txId") if offset.get("messageType") not in (None, "COMMIT", "BEGIN") else None
        self._resume_lsn = offset.get("lsn_proc") or 0
        self._skip_to = 0
        self._last_lsn = 0

    @property
    def done_lsn(self) -> int:
        """Up to where whole transactions are read."""
        return self.commit_lsn or self.offset.get("lsn") or 0

    def at_boundary(self, lsn: int) -> bool:
        """Whether a batch may end before a message at ``lsn``: rows of one log record share it, and go together."""
        return lsn != self._last_lsn

    def feed(self, data: bytes, lsn: int) -> None:
        kind = data[0]
        if kind == 73:  # I
            shape = self._relations.get(int.from_bytes(data[1:5]))
            if shape is not None and lsn > self._skip_to and "c" not in self._skipped:
                after, _ = pgoutput.tuple_at(data, 6)
                self._event(shape, "c", None, after, lsn, "INSERT")
        elif kind == 85:  # U
            self._update(data, lsn)
        elif kind == 68:  # D
            self._delete(data, lsn)
        elif kind == 66:  # B
            self._time, xid = pgoutput.begin(data)
            self.begin(xid, self._time, lsn)
        elif kind == 67:  # C
            self.commit(pgoutput.commit(data)[0])
        elif kind == 82:  # R
            self.relation(pgoutput.relation(data))
        elif kind == 84:  # T
            self._truncate(data, lsn)
        elif kind == 77:  # M
            self._message(data, lsn)
        elif kind not in (89, 79):  # types and origins say nothing that is not asked for otherwise
            raise DataError(f"pgoutput sent a message of unknown kind {chr(kind)!r}")

    def begin(self, xid: int, micros: int, lsn: int) -> None:
        self.in_transaction, self._xid, self._time = True, xid, micros
        self._skip_to = self._resume_lsn if self._resume_xid is not None and xid == self._resume_xid else 0
        self._resume_xid = None
        self._last_lsn = 0
        if self._config.transaction_metadata:
            self._counts, self._total, self._begin_id = {}, 0, f"{xid}:{lsn}"
            if self._skip_to:
                prefix = "transaction_data_collection_order_"
                known = {k.removeprefix(prefix): int(v) for k, v in self.offset.items() if k.startswith(prefix)}
                self._counts, self._total, self._begin_id = known, sum(known.values()), None

    def commit(self, end: int) -> None:
        self.in_transaction = False
        if self._counts:
            self._boundary("END", f"{self._xid}:{end}")
        self._counts = None
        self.commit_lsn = end
        self._mark(end, "COMMIT")

    def caught_up(self, lsn: int) -> None:
        """Nothing of interest lies before ``lsn``, between transactions."""
        if lsn > self.done_lsn:
            self.commit_lsn = lsn
            self._mark(lsn, "COMMIT")

    def _mark(self, lsn: int, kind: str) -> None:
        """The position after an event; made a map of only when it is asked for."""
        self._last_lsn = lsn
        self._marked = (lsn, kind, self._xid, self._time, self.commit_lsn)

    @property
    def offset(self) -> dict[str, Any]:
        if self._marked is not None:
            lsn, kind, xid, micros, commit = self._marked
            if commit is None:  # nothing was committed yet: where reading began must not be lost
                commit = self._offset.get("lsn_commit", self._offset.get("lsn"))
            made = {
                "lsn_proc": lsn,
                "messageType": kind,
                "lsn_commit": commit,
                "lsn": lsn,
                "txId": xid,
                "ts_usec": micros,
            }
            if self._counts:
                made["transaction_id"] = f"{xid}:{lsn}"
                for name, count in self._counts.items():
                    made[f"transaction_data_collection_order_{name}"] = count
            self._offset = {name: value for name, value in made.items() if value is not None}
            self._marked = None
        return self._offset

    def relation(self, relation: Relation) -> None:
        """A table's shape from now on. What came in its old shape goes out on its own."""
        old = self._relations.get(relation.oid)
        full_name = f"{relation.schema}.{relation.name}"
        config = self._config
        shape = None
        if config.schema_is_meant(relation.schema) and self._shapes.filters.table(full_name):
            shape = self._shapes.of(self._table(relation))
        if old is not None and shape is not None and old.table == shape.table and old.layout == shape.layout:
            return
        if relation.oid in self._pending:
            self._ready.append(self._pending.pop(relation.oid))
        self._relations[relation.oid] = shape

    def _table(self, relation: Relation) -> Table:
        """As the log says, completed from the catalog, which may be ahead of it."""
        catalog = self._catalog()
        known = next(iter(catalog.tables([relation.oid])), None)
        columns = {column.name: column for column in known.columns} if known else {}
        made = []
        for column in relation.columns:
            kind = catalog.type(column.type_oid, column.modifier)
            now = columns.get(column.name)
            if now is None:
                made.append(Column(column.name, kind, optional=not (column.in_key and relation.identity != "f")))
            else:
                made.append(Column(column.name, kind, now.optional, now.default))
        names = {column.name for column in relation.columns}
        key = known.key if known is not None and set(known.key) <= names else ()
        if not key and relation.identity != "f":
            key = tuple(column.name for column in relation.columns if column.in_key)
        return Table(relation.oid, relation.schema, relation.name, tuple(made), key, relation.identity)

    def _changes(self, shape: Shape) -> TableChanges:
        found = self._pending.get(shape.table.oid)
        if found is None:
            found = self._pending[shape.table.oid] = TableChanges(shape)
        return found

    def _block(self, name: str) -> tuple[str, int, int] | None:
        if self._counts is None:
            return None
        if self._begin_id is not None:
            self._boundary("BEGIN", self._begin_id)
            self._begin_id = None
        self._total += 1
        self._counts[name] = self._counts.get(name, 0) + 1
        return (f"{self._xid}:{self._last_lsn}", self._total, self._counts[name])

    def _event(
        self,
        shape: Shape,
        op: str,
        before: Tuple | None,
        after: Tuple | None,
        lsn: int,
        kind: str,
        header: tuple[str, Tuple] | None = None,
    ) -> None:
        self._last_lsn = lsn
        changes = self._changes(shape)
        place = (lsn, self._xid, self._time, self.commit_lsn)
        changes.add(
            op, before, after, place, self._block(shape.table.full_name) if self._counts is not None else None, header
        )
        self.rows += 1
        if op == "d" and self._config.tombstones and shape.layout.key is not None:
            changes.add(None, before, None, place, None, header)
            self.rows += 1
        self._mark(lsn, kind)

    def _update(self, data: bytes, lsn: int) -> None:
        shape = self._relations.get(int.from_bytes(data[1:5]))
        if shape is None or lsn <= self._skip_to:
            return
        at, before, key_row = 5, None, None
        if data[at] in (75, 79):  # K: only the key's columns; O: the whole old row
            key_row, end = pgoutput.tuple_at(data, at + 1)
            if data[at] == 79:
                before = key_row
            at = end
        after, _ = pgoutput.tuple_at(data, at + 1)
        if before is not None and UNCHANGED in after:
            after = [b if a == UNCHANGED else a for a, b in zip(after, before, strict=True)]
        if key_row is not None and self._key_changed(shape, key_row, after):
            if "d" not in self._skipped:
                self._event(shape, "d", key_row, None, lsn, "UPDATE", ("__debezium.newkey", after))
            if "c" not in self._skipped:
                self._event(shape, "c", None, after, lsn, "UPDATE", ("__debezium.oldkey", key_row))
        elif "u" not in self._skipped:
            self._event(shape, "u", before, after, lsn, "UPDATE")

    @staticmethod
    def _key_changed(shape: Shape, old: Tuple, new: Tuple) -> bool:
        return any(
            old[at] != new[at] and new[at] != UNCHANGED and old[at] is not None
            for at in (shape.positions[position] for position in shape.key_positions)
        )

    def _delete(self, data: bytes, lsn: int) -> None:
        shape = self._relations.get(int.from_bytes(data[1:5]))
        if shape is None or lsn <= self._skip_to or "d" in self._skipped:
            return
        before, _ = pgoutput.tuple_at(data, 6)
        self._event(shape, "d", before, None, lsn, "DELETE")

    def _truncate(self, data: bytes, lsn: int) -> None:
        if "t" in self._skipped or lsn <= self._skip_to:
            return
        for oid in pgoutput.truncate(data):
            shape = self._relations.get(oid)
            if shape is not None:
                self._event(shape, "t", None, None, lsn, "TRUNCATE")

    def _message(self, data: bytes, lsn: int) -> None:
        transactional, prefix, content = pgoutput.message(data)
        include, exclude = self._messages
        if transactional and lsn <= self._skip_to:
            return
        if (include and not any(p.fullmatch(prefix) for p in include)) or any(p.fullmatch(prefix) for p in exclude):
            return
        import time

        if not transactional:
            self._time, self._xid = time.time_ns() // 1000, None
            if not self.in_transaction:
                self.commit_lsn = lsn
        self._last_lsn = lsn
        block = self._block("message") if transactional and self._counts is not None else None
        place = (lsn, self._xid, self._time, self.commit_lsn)
        source = source_column(self._config.prefix, self._config.database, "", "", [place]).to_pylist()[0]
        names = ("id", "total_order", "data_collection_order")
        value = {
            "op": "m",
            "ts_ms": time.time_ns() // 1_000_000,
            "source": source,
            "transaction": None if block is None else dict(zip(names, block, strict=True)),
            "message": {"prefix": prefix, "content": content},
        }
        self._mark(lsn, "MESSAGE")
        self._extras.append(
            RecordBatch.from_records(
                [Record(self._shapes.topic("message"), value, _MESSAGE_VALUE, {"prefix": prefix}, _MESSAGE_KEY)]
            )
        )
        self.rows += 1

    def _boundary(self, status: str, number: str) -> None:
        counts = None
        if status == "END" and self._counts is not None:
            counts = [{"data_collection": name, "event_count": n} for name, n in sorted(self._counts.items())]
        value = {
            "status": status,
            "id": number,
            "event_count": None if counts is None else self._total,
            "data_collections": counts,
            "ts_ms": self._time // 1000,
        }
        topic = self._shapes.topic(self._config.transaction_topic)
        record = Record(topic, value, TRANSACTION_VALUE, {"id": number}, TRANSACTION_KEY)
        self._extras.append(RecordBatch.from_records([record]))
        self.rows += 1

    def take(self, before: Mapping[str, Any]) -> list[RecordBatch]:
        """The batches of what came since the last call; only the last one moves the position on from ``before``."""
        partition = {"server": self._config.prefix}
        still = {"source_partition": partition, "source_offset": dict(before)}
        all_changes = [*self._ready, *self._pending.values()]
        batches = [batch.replace(**still) for batch in self._extras]
        config = self._config
        batches += [c.batch(self._context, config.prefix, config.database, still) for c in all_changes if len(c)]
        self._ready, self._extras, self.rows = [], [], 0
        self._pending.clear()
        batches = [piece for batch in batches for piece in bounded(batch)]
        if batches:
            batches[-1] = batches[-1].replace(source_offset=dict(self.offset))
        return batches


def bounded(batch: RecordBatch) -> list[RecordBatch]:
    """The batch, in pieces of at most what a batch should have in bytes."""
    from connect.api import MAX_BATCH_BYTES

    size = batch.nbytes
    if size <= MAX_BATCH_BYTES or len(batch) < 2:
        return [batch]
    half = len(batch) // 2
    position = {"source_partition": batch.source_partition, "source_offset": batch.source_offset}
    pieces = (batch.slice(0, half), batch.slice(half))
    return [piece for part in pieces for piece in bounded(_compact(part).replace(**position))]


def _compact(batch: RecordBatch) -> RecordBatch:
    """A slice keeps its parent's buffers: copy what it has."""
    names = ("values", "keys", "headers")
    return batch.replace(**{n: pa.concat_arrays([c]) for n in names if (c := getattr(batch, n)) is not None})
