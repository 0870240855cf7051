"""Converts the binary log's events to changes by table, with transactions, positions and DDL."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from connect.api import ConnectError, RecordBatch, get_logger
from connectors.debezium.events import ContextHeaders, bounded
from connectors.mysql.binlog import events
from connectors.mysql.binlog.events import HEADER_BYTES, EventType, Header, TableMap
from connectors.mysql.binlog.gtid import MariaDbGtids, MySqlGtids
from connectors.mysql.binlog.rows import ImageLayout, Physical, image_starts, physical_columns
from connectors.mysql.changes import Counts, LogEntry, Origin, TableChanges, truncation
from connectors.mysql.config import MySqlConfig
from connectors.mysql.position import Position, place_number
from connectors.mysql.structure import TableName
from connectors.mysql.tables import Shape, Shapes
from connectors.mysql.transactions import Transaction, boundary

__all__ = ["Decoder"]

logger = get_logger(__name__)
_WRITE, _UPDATE, _DELETE = range(3)
_ROWS: Final[dict[int, tuple[int, bool, bool]]] = {
    EventType.WRITE_ROWS_V1: (_WRITE, False, False),
    EventType.UPDATE_ROWS_V1: (_UPDATE, False, False),
    EventType.DELETE_ROWS_V1: (_DELETE, False, False),
    EventType.WRITE_ROWS: (_WRITE, True, False),
    EventType.UPDATE_ROWS: (_UPDATE, True, False),
    EventType.DELETE_ROWS: (_DELETE, True, False),
    EventType.WRITE_ROWS_COMPRESSED: (_WRITE, False, True),
    EventType.UPDATE_ROWS_COMPRESSED: (_UPDATE, False, True),
    EventType.DELETE_ROWS_COMPRESSED: (_DELETE, False, True),
}
"""For each event type: its operation, whether it has additional data, whether its rows are compressed."""
_ARTIFICIAL: Final = 0x20


class _Mapped(NamedTuple):
    """A table as an event of the log announced it; ``shape`` is None where it is not captured."""

    raw: bytes
    table: TableMap
    columns: tuple[Physical, ...]
    shape: Shape | None
    layouts: dict[bytes, ImageLayout]


class Decoder:
    """Pass events in order to ``feed``; ``take`` returns the batches made from them.

    ``ddl`` is called with a statement, its database and the position after it, after earlier rows have been set aside.
    It returns the records to deliver next, and the tables whose structure has changed.
    """

    def __init__(
        self,
        config: MySqlConfig,
        shapes: Shapes,
        context: ContextHeaders,
        origin: Origin,
        start: Position,
        ddl: Callable[[str, str, LogEntry, dict[str, Any]], tuple[list[RecordBatch], set[TableName], list[TableName]]],
    ) -> None:
        self._config, self._shapes, self._context, self._origin, self._ddl = config, shapes, context, origin, ddl
        self._skipped = frozenset(config.skipped)
        self._position = start
        self._file = start.file
        self._end = (start.file, start.pos)
        self._seen: MariaDbGtids | MySqlGtids | None = start.gtids
        self._skip_events, self._skip_rows = start.events, start.rows
        self._skipping = False
        self._maps: dict[int, _Mapped] = {}
        self._pending: dict[TableName, TableChanges] = {}
        self._ready: list[TableChanges | RecordBatch] = []
        self._transaction = Transaction()
        self._checksum = 4
        self.rows = 0

    def checksummed(self, yes: bool) -> None:
        self._checksum = 4 if yes else 0

    @property
    def offset(self) -> dict[str, Any]:
        """The offset after the last event, in Debezium's form."""
        made = self._position.offset()
        counts = self._transaction.counts
        if counts is not None and counts.total and self._transaction.open:
            made["transaction_id"] = counts.transaction
            for name, number in counts.tables.items():
                made[f"transaction_data_collection_order_{name}"] = number
        return made

    @property
    def position(self) -> int:
        """The position up to which the log was read, even within a transaction; the server's heartbeats count too."""
        return place_number(*self._end)

    @property
    def in_transaction(self) -> bool:
        return self._transaction.open

    def feed(self, data: bytes) -> None:
        """Raises ConnectError or DataError for an event that cannot be decoded."""
        if len(data) < HEADER_BYTES + self._checksum:
            raise ConnectError(f"the server sent an event of {len(data)} bytes, which are too few")
        head = events.header(data)
        body = data[: len(data) - self._checksum] if self._checksum else data
        try:
            self._one(head, body)
        except (IndexError, struct.error, UnicodeDecodeError) as error:
            raise ConnectError(
                f"an event of type {head.type} that ends at {head.position} of {self._file} cannot be read: {error}"
            ) from error

    def _one(self, head: Header, body: bytes) -> None:
        kind = head.type
        if kind == EventType.ROTATE:
            self._rotate(head, body)
            return
        if kind == EventType.HEARTBEAT:
            self._end = (body[HEADER_BYTES:].rstrip(b"\0").decode(), head.position)
            return
        if kind in (EventType.HEARTBEAT_V2, EventType.FORMAT_DESCRIPTION) or head.flags & _ARTIFICIAL:
            return
        if head.position:
            self._end = (self._file, head.position)
            self._position.server_id, self._position.seconds = head.server_id, head.timestamp
            if not self._transaction.open and not self._skip_events:
                self._position.pos, self._position.events, self._position.rows = head.position, 0, 0
        if kind in _ROWS:
            self._rows(head, body)
        elif kind == EventType.TABLE_MAP:
            self._map(body)
        elif kind == EventType.XID:
            self._commit(head)
        elif kind in (EventType.QUERY, EventType.QUERY_COMPRESSED):
            self._query(head, body, compressed=kind == EventType.QUERY_COMPRESSED)
        elif kind == EventType.MARIADB_GTID:
            gtid, _ = events.mariadb_gtid(body, HEADER_BYTES, head.server_id)
            self._start_gtid(gtid)
            self._begin(head, None)
        elif kind in (EventType.GTID, EventType.GTID_TAGGED):
            self._start_gtid(events.mysql_gtid(body, HEADER_BYTES))
        elif kind in (EventType.ROWS_QUERY, EventType.ANNOTATE_ROWS):
            if self._config.include_query:
                start = HEADER_BYTES + (1 if kind == EventType.ROWS_QUERY else 0)
                self._transaction.query = body[start:].decode("utf-8", "replace")
        elif kind == EventType.TRANSACTION_PAYLOAD:
            for inner in events.payload_events(body, HEADER_BYTES):
                self._one(events.header(inner)._replace(position=head.position), inner)
        elif kind == EventType.PARTIAL_UPDATE_ROWS:
            raise ConnectError(
                "the log holds updates of parts of JSON values: set binlog_row_value_options='' on the server, and take a new snapshot"
            )
        elif kind == EventType.START_ENCRYPTION:
            raise ConnectError("the server sent its log encrypted")
        elif kind == EventType.INCIDENT:
            logger.warning("the server reports an incident in its log: changes may be missing", file=self._file)
        self._position.events += self._transaction.open
        if self._skipping:
            self._skip_events -= 1
            self._skipping = self._skip_events > 0

    def _rotate(self, head: Header, body: bytes) -> None:
        position, file = events.rotate(body, HEADER_BYTES)
        if file != self._file or not head.flags & _ARTIFICIAL:
            self._maps.clear()
        self._file = file
        self._end = (file, position)
        if not self._transaction.open and not (self._skip_events or self._skip_rows):
            self._position.file, self._position.pos = file, position

    # transactions

    def _start_gtid(self, gtid: str) -> None:
        transaction = self._transaction
        transaction.gtid = gtid
        pattern, excluded = self._config.gtid_sources
        source = gtid.rpartition("-")[0] if "-" in gtid and ":" not in gtid else gtid.rpartition(":")[0]
        counts = pattern is None or bool(pattern.fullmatch(source)) is not excluded
        transaction.ignored = self._config.gtid_filter_rows and not counts

    def _begin(self, head: Header, thread: int | None) -> None:
        transaction, position = self._transaction, self._position
        transaction.open, transaction.thread = True, thread
        position.file, position.pos = self._file, head.position - head.size
        position.events = position.rows = 0
        if self._config.transaction_metadata:
            name = transaction.gtid or f"file={position.file},pos={position.pos}"
            transaction.counts, transaction.begun = Counts(name), False
        if self._skip_events:
            self._skipping = True

    def _commit(self, head: Header) -> None:
        transaction, position = self._transaction, self._position
        if transaction.begun and transaction.counts is not None:
            self._boundary("END", head.timestamp)
        if transaction.gtid is not None and self._seen is not None:
            self._seen.add(transaction.gtid)
        position.file, position.pos, position.gtids = self._file, head.position, self._seen
        position.events = position.rows = 0
        self._transaction = Transaction()
        self._skipping, self._skip_events, self._skip_rows = False, 0, 0

    def _boundary(self, status: str, seconds: int) -> None:
        counts = self._transaction.counts
        assert counts is not None
        self._set_aside()
        topic = self._shapes.topic(self._config.transaction_topic)
        self._ready.append(boundary(counts, status, seconds, topic))
        self.rows += 1

    def _log_entry(self, head: Header) -> LogEntry:
        transaction = self._transaction
        return LogEntry(
            head.timestamp * 1_000_000,
            head.server_id,
            transaction.gtid,
            self._file,
            head.position - head.size,
            transaction.thread,
            transaction.query,
        )

    # statements

    def _query(self, head: Header, body: bytes, *, compressed: bool) -> None:
        query = events.query(body, HEADER_BYTES, compressed=compressed)
        sql = query.sql.strip()
        word = sql[:8].upper()
        if word == "BEGIN":
            if self._transaction.open:
                self._transaction.thread = query.thread
            else:
                self._begin(head, query.thread)
        elif word == "COMMIT":
            self._commit(head)
        elif word.startswith(("XA ", "SAVEPOIN", "ROLLBACK", "INSERT ", "UPDATE ", "DELETE ", "REPLACE ")):
            if word == "ROLLBACK":
                self._commit(head)  # rows of non-transactional tables are not rolled back
            elif not word.startswith(("XA ", "SAVEPOIN", "ROLLBACK")):
                logger.warning("the log holds a statement instead of its rows", statement=sql[:200])
        else:
            self._statement(head, sql, query.database)

    def _statement(self, head: Header, sql: str, database: str) -> None:
        source = self._log_entry(head)
        self._commit(head)
        self._set_aside()
        made, changed, truncated = self._ddl(sql, database, source, self._position.offset())
        self._ready += made
        self.rows += len(made)
        if changed:
            self._maps.clear()
        if "t" not in self._skipped:
            for name in truncated:
                self._truncate(name, source)

    def _truncate(self, name: TableName, source: LogEntry) -> None:
        shape = self._shapes.get(name) if self._shapes.is_captured(name) else None
        if shape is not None:
            self._ready.append(truncation(shape, self._context, self._origin, source))
            self.rows += 1

    # rows

    def _map(self, body: bytes) -> None:
        number = int.from_bytes(body[HEADER_BYTES : HEADER_BYTES + 6], "little")
        raw = body[HEADER_BYTES + 8 :]
        known = self._maps.get(number)
        if known is not None and known.raw == raw:
            return
        table = events.table_map(body, HEADER_BYTES)
        name = (table.database, table.table)
        shape = self._known_shape(table) if self._shapes.is_captured(name) else None
        if name in self._pending:
            self._ready.append(self._pending.pop(name))
        if len(self._maps) > 10_000:
            self._maps.clear()
        columns = physical_columns(table) if shape is not None else ()
        self._maps[number] = _Mapped(raw, table, columns, shape, {})

    def _known_shape(self, table: TableMap) -> Shape | None:
        shape = self._shapes.get((table.database, table.table))
        if shape is not None and len(shape.table.columns) == len(table.types):
            return shape
        name = f"{table.database}.{table.table}"
        known_shape = (
            "its structure is not in the history"
            if shape is None
            else f"it has {len(table.types)} columns in the log and {len(shape.table.columns)} in the history"
        )
        message = (
            f"changes of table {name} cannot be read: {known_shape}. Set snapshot.mode=recovery once, so that the structure is read from the "
            "server again, or leave the table out"
        )
        match self._config.inconsistent_schema.lower():
            case "fail":
                raise ConnectError(message)
            case "warn":
                logger.warning(message)
        return None

    def _rows(self, head: Header, body: bytes) -> None:
        if self._skipping or self._transaction.ignored:
            return
        op, extra, compressed = _ROWS[head.type]
        rows = events.rows(body, HEADER_BYTES, extra=extra, images=2 if op == _UPDATE else 1)
        mapped = self._maps.get(rows.table_id)
        if mapped is None:
            if rows.table_id == 0xFFFFFF:  # an empty event that only marks the end of a statement
                return
            raise ConnectError(f"the log holds rows of a table (number {rows.table_id}) that it did not announce")
        first, self._skip_rows = self._skip_rows, 0
        if mapped.shape is None or (op != _UPDATE and "cud"[op] in self._skipped):
            return
        data, start = body, rows.start
        if compressed:
            data, start = events.uncompressed(body[rows.start :]), 0
        layouts = tuple(self._layout(mapped, bitmap) for bitmap in rows.present)
        starts = image_starts(data, start, len(data), layouts)
        if first:
            starts = starts[first * len(layouts) :]
        if not starts:
            return
        self._add(mapped, op, data, starts, layouts, head, first)

    @staticmethod
    def _layout(mapped: _Mapped, bitmap: bytes) -> ImageLayout:
        layout = mapped.layouts.get(bitmap)
        if layout is None:
            layout = mapped.layouts[bitmap] = ImageLayout(mapped.columns, bitmap)
        return layout

    def _add(
        self,
        mapped: _Mapped,
        op: int,
        data: bytes,
        starts: list[int],
        layouts: tuple[ImageLayout, ...],
        head: Header,
        first: int,
    ) -> None:
        shape = mapped.shape
        assert shape is not None
        counts = self._transaction.counts
        if counts is not None and not self._transaction.begun:
            self._transaction.begun = True
            self._boundary("BEGIN", head.timestamp)
        name = shape.table.name
        changes = self._pending.get(name)
        if changes is None or changes.columns != mapped.columns:
            if changes is not None:
                self._ready.append(changes)
            changes = self._pending[name] = TableChanges(shape, mapped.columns)
        changes.add(op, data, starts, layouts, self._log_entry(head), first)
        self.rows += len(starts) // len(layouts)
        if counts is not None:  # events are numbered in order across all tables
            batch = self._pending.pop(name).batch(self._context, self._origin, self._config, counts)
            if batch is not None:
                self._ready.append(batch)

    def _set_aside(self) -> None:
        """Keep what was collected so far separate from what follows."""
        self._ready += self._pending.values()
        self._pending.clear()

    def take(self, before: Mapping[str, Any]) -> list[RecordBatch]:
        """The batches since the last call; only the last one moves the offset on from ``before``."""
        self._set_aside()
        still = {"source_partition": {"server": self._config.prefix}, "source_offset": dict(before)}
        batches: list[RecordBatch] = []
        for item in self._ready:
            made = (
                item if isinstance(item, RecordBatch) else item.batch(self._context, self._origin, self._config, None)
            )
            if made is not None:
                batches += bounded(made.replace(**still))
        self._ready, self.rows = [], 0
        if batches:
            batches[-1] = batches[-1].replace(source_offset=self.offset)
        return batches
