"""Converts pgoutput's messages to batches by table, with transactions, positions and logical messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import pyarrow as pa

from connect.api import DataError, RecordBatch
from connectors.debezium.events import ContextHeaders, Rows, bounded, event_batch
from connectors.debezium.filters import compiled
from connectors.postgres import pgoutput
from connectors.postgres.changes import Events, Gathered, Transaction, source_column
from connectors.postgres.config import PostgresConfig
from connectors.postgres.messages import LogicalMessages
from connectors.postgres.pgoutput import HEAD, Relation, lsn_of
from connectors.postgres.tables import Catalog, Column, Shape, Shapes, Table
from connectors.postgres.transactions import TransactionTopic

__all__ = ["Decoder"]

_NAMES: Final = {73: "INSERT", 85: "UPDATE", 68: "DELETE", 84: "TRUNCATE", 77: "MESSAGE"}
_NOTHING: Final = Transaction(None, 0, None)


class Decoder:
    """Pass messages in order to ``feed``; ``take`` returns the batches made from them.

    Row changes are only collected until ``take`` decodes them table by table. ``offset`` is the offset after the last
    event, in Debezium's form.
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
        self._relations: dict[bytes, Shape | None] = {}
        self._gathering: dict[bytes, Gathered] = {}
        self._ready: list[Gathered] = []
        self._messages = LogicalMessages()
        self._message_filters = (compiled(config.message_include), compiled(config.message_exclude))
        self._topic = TransactionTopic(shapes.topic(config.transaction_topic)) if config.transaction_metadata else None
        self.rows = 0
        """The number of changes fed since the last ``take``."""
        self._offset: dict[str, Any] = dict(offset)
        self._last: tuple[bytes, Transaction] | None = None
        self.commit_lsn: int | None = offset.get("lsn_commit")
        self.xmin: int | None = None
        """The slot's ``catalog_xmin``, for source blocks and offsets, where the configuration asks for it."""
        self.in_transaction = False
        self._transaction = _NOTHING
        # set where reading resumes in the middle of a transaction
        self._resume_xid = offset.get("txId") if offset.get("messageType") not in (None, "COMMIT", "BEGIN") else None
        self._resume_lsn = offset.get("lsn_proc") or 0
        self._skip_to = 0

    @property
    def done_lsn(self) -> int:
        """The position up to which whole transactions have been read."""
        return self.commit_lsn or self.offset.get("lsn") or 0

    def at_boundary(self, message: bytes) -> bool:
        """Whether a batch may end before a message: rows of one log record have the same position, and must stay
        together.
        """
        return self._last is None or lsn_of(self._last[0]) != lsn_of(message)

    def feed(self, message: bytes) -> None:
        """Process a message that begins with replication's header."""
        kind = message[HEAD]
        if kind in (73, 85, 68):  # I, U, D
            self._change(message[HEAD + 1 : HEAD + 5], message)
        elif kind == 66:  # B
            micros, xid = pgoutput.begin(message)
            self._begin(xid, micros, lsn_of(message))
        elif kind == 67:  # C
            self._commit(pgoutput.commit(message))
        elif kind == 82:  # R
            self._relation(pgoutput.relation(message))
        elif kind == 84:  # T
            if "t" not in self._skipped:
                for oid in pgoutput.truncate(message):
                    self._change(oid.to_bytes(4), message)
        elif kind == 77:  # M
            self._message(message)
        elif kind not in (89, 79):  # types and origins contain nothing that is needed
            raise DataError(f"pgoutput sent a message of unknown kind {chr(kind)!r}")

    def _change(self, oid: bytes, message: bytes) -> None:
        gathered = self._gathering.get(oid)
        if gathered is None:
            shape = self._relations.get(oid)
            if shape is None:
                return
            gathered = self._gathering[oid] = Gathered(shape)
        if self._skip_to and lsn_of(message) <= self._skip_to:
            return
        gathered.add(message, self._transaction, None if self._topic is None else self._topic.next())
        self._last = message, self._transaction
        self.rows += 1

    def _begin(self, xid: int, micros: int, lsn: int) -> None:
        self.in_transaction = True
        self._transaction = Transaction(xid, micros, self.commit_lsn, self._transaction.number + 1)
        resumed = self._resume_xid is not None and xid == self._resume_xid
        self._skip_to = self._resume_lsn if resumed else 0
        self._resume_xid = None
        if self._topic is not None:
            self._topic.begin(self._transaction, lsn, self.offset if resumed else None)

    def _commit(self, end: int) -> None:
        self.in_transaction = False
        self._skip_to = 0
        if self._topic is not None:
            self._topic.end(self._transaction, end)
        self.commit_lsn = end
        self._committed(end)

    def caught_up(self, lsn: int) -> None:
        """There are no relevant changes before ``lsn``, and it is between transactions."""
        if lsn > self.done_lsn:
            self.commit_lsn = lsn
            self._committed(lsn)

    def _committed(self, lsn: int) -> None:
        done = self._transaction
        self._last = None
        self._offset = _position(lsn, "COMMIT", done, lsn)

    @property
    def offset(self) -> dict[str, Any]:
        if self._last is not None:
            message, transaction = self._last
            lsn, commit = lsn_of(message), transaction.before
            if commit is None:  # no commit yet: the position where reading began must be kept
                commit = self._offset.get("lsn_commit", self._offset.get("lsn"))
            self._offset = _position(lsn, _NAMES[message[HEAD]], transaction, commit)
            if self._topic is not None:
                self._offset |= self._topic.position(lsn)
        return self._offset if self.xmin is None else {**self._offset, "xmin": self.xmin}

    def _relation(self, relation: Relation) -> None:
        """Set a table's shape from now on. Changes with the earlier shape are delivered separately."""
        key = relation.oid.to_bytes(4)
        old = self._relations.get(key)
        full_name = f"{relation.schema}.{relation.name}"
        config = self._config
        shape = None
        if config.schema_is_meant(relation.schema) and self._shapes.filters.table(full_name):
            shape = self._shapes.of(self._table(relation))
        if old is not None and shape is not None and old.table == shape.table and old.layout == shape.layout:
            return
        if key in self._gathering:
            self._ready.append(self._gathering.pop(key))
        self._relations[key] = shape

    def _table(self, relation: Relation) -> Table:
        """The table according to the log, completed from the catalog, which may be newer."""
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
                made.append(Column(column.name, kind, now.optional, now.default, now.comment))
        names = {column.name for column in relation.columns}
        key = known.key if known is not None and set(known.key) <= names else ()
        if not key and relation.identity != "f":
            key = tuple(column.name for column in relation.columns if column.in_key)
        return Table(relation.oid, relation.schema, relation.name, tuple(made), key, relation.identity)

    def _message(self, message: bytes) -> None:
        transactional, prefix, content = pgoutput.message(message)
        include, exclude = self._message_filters
        lsn, transaction = lsn_of(message), self._transaction
        if transactional and self._skip_to and lsn <= self._skip_to:
            return
        if (include and not any(p.fullmatch(prefix) for p in include)) or any(p.fullmatch(prefix) for p in exclude):
            return
        if not transactional:
            if not self.in_transaction:
                self.commit_lsn = lsn
            transaction = Transaction(None, time.time_ns() // 1000, self.commit_lsn)
        self._messages.add(prefix, content, lsn, transaction, 0 if self._topic is None else self._topic.next())
        self._last = message, transaction
        self.rows += 1

    def take(self, before: Mapping[str, Any]) -> list[RecordBatch]:
        """The batches since the last call; only the last one moves the offset on from ``before``.

        Raises DataError for messages that do not match their tables' structure.
        """
        still = {"source_partition": {"server": self._config.prefix}, "source_offset": dict(before)}
        config = self._config
        tombstones = config.tombstones
        gathered = [table_events for table_events in (*self._ready, *self._gathering.values()) if len(table_events)]
        gathered_batches = [
            (table_events.shape, table_events.events(tombstones=tombstones, skipped=self._skipped))
            for table_events in gathered
        ]
        gathered_batches = [(shape, events) for shape, events in gathered_batches if len(events)]
        blocks: list[pa.Array | None] = [None] * len(gathered_batches)
        message_blocks: list[Any] = [None] * len(self._messages)
        batches: list[RecordBatch] = []
        if self._topic is not None:
            named = [(shape.table.full_name, events) for shape, events in gathered_batches]
            made, batches = self._topic.numbered([*named, ("message", self._messages.events())])
            *blocks, last = made
            message_blocks = last.to_pylist()
        if len(self._messages):
            batches.append(self._messages.batch(config, self._shapes.topic("message"), message_blocks))
        batches = [batch.replace(**still) for batch in batches]
        for (shape, events), block in zip(gathered_batches, blocks, strict=True):
            batches += bounded(self._batch(shape, events, block, still))
        self._ready, self._messages, self.rows = [], LogicalMessages(), 0
        self._gathering.clear()
        if batches:
            batches[-1] = batches[-1].replace(source_offset=dict(self.offset))
        return batches

    def _batch(self, shape: Shape, events: Events, block: pa.Array | None, position: Mapping[str, Any]) -> RecordBatch:
        table, config = (shape.table.schema, shape.table.name), self._config
        source = source_column(
            config.prefix, config.database, table, events.lsns, events.transactions, events.runs, xmin=self.xmin
        )
        rows = Rows(events.ops, events.before, events.after, events.keys, source, block, events.headers)
        return event_batch(shape.layout, rows, self._context, **position)


def _position(lsn: int, kind: str, transaction: Transaction, commit: int | None) -> dict[str, Any]:
    made = {
        "lsn_proc": lsn,
        "messageType": kind,
        "lsn_commit": commit,
        "lsn": lsn,
        "txId": transaction.xid,
        "ts_usec": transaction.micros,
    }
    return {name: value for name, value in made.items() if value is not None}
