"""The whole content of tables, as of one moment: read into Arrow by ADBC, over several connections on one exported snapshot."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import RecordBatch
from connectors.debezium.events import ContextHeaders, Rows, bounded, constant, event_batch, struct_column
from connectors.debezium.filters import compiled
from connectors.debezium.marks import SnapshotMarks
from connectors.debezium.snapshot_progress import SnapshotProgress
from connectors.debezium.values import zero_of
from connectors.postgres.changes import Transaction, source_column
from connectors.postgres.config import PostgresConfig
from connectors.postgres.connections import ArrowConnection, connect, database_errors, lsn_number
from connectors.postgres.pieces import Part, Pieces, pieces_of
from connectors.postgres.tables import Shape
from connectors.postgres.types import selected

__all__ = ["Moment", "Snapshot", "exported", "read_batch", "select_list"]

_BLOCK_ROWS: Final = 8192
_AHEAD: Final = 3
"""The most blocks per reader that wait for the runtime."""


_Item: TypeAlias = "tuple[Shape, pa.RecordBatch | _Ended] | BaseException | None"
"""The messages of a reader: rows; a shape with the end of a statement after its last row; an error; None at its end."""


class _Ended(NamedTuple):
    """``block`` is the block of the table's file that the statement ended before, if it ended before one."""

    block: int | None


@dataclass(frozen=True, slots=True)
class Moment:
    """The moment of a snapshot: the name under which other connections use it, the log position and the time."""

    snapshot: str
    lsn: int
    xid: int | None
    micros: int


def exported(config: PostgresConfig, lsn: int | None = None) -> tuple[Moment, psycopg.Connection[Any]]:
    """Export a snapshot of the current data.

    Returns also the connection that keeps it until others have adopted it. ``lsn`` replaces the log position.
    """
    exporter = connect(config)
    row = exporter.execute(
        "SELECT txid_current()::int8, extract(epoch FROM now())::float8, pg_current_wal_lsn()::text"
    ).fetchone()
    assert row is not None
    exporter.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    (name,) = exporter.execute("SELECT pg_export_snapshot()").fetchone()  # type: ignore[misc]
    position = lsn_number(row[2]) if lsn is None else lsn
    return Moment(name, position, row[0], int(row[1] * 1_000_000)), exporter


def select_list(shape: Shape) -> str:
    """The select list for a shape, in the order of its forms."""
    columns = [shape.table.columns[at] for at in shape.positions]
    return ", ".join(selected(c.name, c.type, form) for c, form in zip(columns, shape.forms, strict=True))


def read_batch(
    config: PostgresConfig,
    shape: Shape,
    block: pa.RecordBatch,
    moment: Moment,
    marks: pa.Array,
    context: ContextHeaders,
    **position: Any,
) -> RecordBatch:
    """Events for rows selected with ``select_list``. ``marks`` is the source block's field ``snapshot``."""
    length = block.num_rows
    columns = []
    for form, column in zip(shape.forms, block.columns, strict=True):
        made = form.convert(column)
        if not form.schema.optional and made.null_count:
            made = pc.if_else(made.is_null(), pa.scalar(zero_of(form.schema), made.type), made)
        columns.append(made)
    keys = None
    if shape.layout.key is not None:
        keys = struct_column(shape.layout.key, [columns[at] for at in shape.key_positions])
    source = source_column(
        config.prefix,
        config.database,
        (shape.table.schema, shape.table.name),
        np.full(length, moment.lsn),
        [Transaction(moment.xid, moment.micros, None)],
        np.array([length]),
        marks,
    )
    after = struct_column(shape.layout.row, columns)
    rows = Rows(constant("r", pa.string(), length), None, after, keys, source)
    return event_batch(shape.layout, rows, context, **position)


class Snapshot:
    """Reads tables in the background; ``batches`` returns them in the order of the tables.

    Must be closed in every case.
    """

    def __init__(
        self,
        config: PostgresConfig,
        shapes: Sequence[Shape],
        moment: Moment,
        context: ContextHeaders,
        parts: Mapping[str, Part] | None = None,
    ) -> None:
        """``parts`` tells how far earlier attempts have read tables, by their full names. Without it nothing is
        kept of parts.
        """
        self._config, self._moment, self._context = config, moment, context
        tables = compiled(config.snapshot_tables)
        self._shapes = [s for s in shapes if not tables or any(p.fullmatch(s.table.full_name) for p in tables)]
        self._blocks: queue.Queue[_Item] = queue.Queue(_AHEAD * config.snapshot_threads)
        self._closing = threading.Event()
        self._connections: list[ArrowConnection] = []
        self._work: queue.SimpleQueue[tuple[Shape, str, int | None]] = queue.SimpleQueue()
        self._parts, self._keeps_parts = parts or {}, parts is not None
        self._pieces: dict[str, Pieces] = {}
        self._readers: list[threading.Thread] = []
        self._statements_left: Counter[str] = Counter()

    @property
    def tables(self) -> list[str]:
        """The full names of the tables that are read, in their order."""
        return [shape.table.full_name for shape in self._shapes]

    def start(self) -> None:
        """Connect all readers to the snapshot, then let them read. Raises the drivers' errors."""
        for _ in range(self._config.snapshot_threads):
            connection = ArrowConnection(self._config)
            self._connections.append(connection)
            connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.run(f"SET TRANSACTION SNAPSHOT '{self._moment.snapshot}'")
            if self._config.snapshot_locking.lower() == "shared":
                connection.run(f"SET LOCAL lock_timeout = {self._config.snapshot_lock_timeout_ms}")
                for shape in self._shapes:
                    connection.run(f"LOCK TABLE {shape.table.quoted} IN ACCESS SHARE MODE")
        (view,) = self._connections[0].select("SELECT txid_snapshot_xmin(txid_current_snapshot())::int8 AS xmin")
        xmin = int(view.column("xmin")[0].as_py())
        with connect(self._config) as asking:
            for shape in self._shapes:
                for statement, end in self._statements(shape, asking, xmin):
                    self._statements_left[shape.table.full_name] += 1
                    self._work.put((shape, statement, end))
        for connection in self._connections:
            reader = threading.Thread(target=self._read, args=(connection,), name="snapshot", daemon=True)
            self._readers.append(reader)
            reader.start()

    def _statements(
        self, shape: Shape, connection: psycopg.Connection[Any], xmin: int
    ) -> Iterator[tuple[str, int | None]]:
        table, config = shape.table, self._config
        if not shape.forms:
            return
        own_select = config.snapshot_selects.get(table.full_name)
        if own_select is not None:
            yield f"SELECT {select_list(shape)} FROM ({own_select}) chosen", None
            return
        select = f"SELECT {select_list(shape)} FROM {table.quoted}"
        pieces = None
        if table.kind == "r":
            threads, parts = config.snapshot_threads, config.snapshot_threads * config.snapshot_parts
            pieces = pieces_of(connection, table.oid, xmin, threads, parts, self._parts.get(table.full_name))
        if pieces is None:
            yield select, None
            return
        self._pieces[table.full_name] = pieces
        for condition, end in pieces.conditions:
            yield f"{select} WHERE {condition}", end

    def _read(self, connection: ArrowConnection) -> None:
        try:
            while not self._closing.is_set():
                try:
                    shape, statement, end = self._work.get_nowait()
                except queue.Empty:
                    break
                for block in connection.select(statement):
                    for start in range(0, block.num_rows, _BLOCK_ROWS):
                        self._put((shape, block.slice(start, _BLOCK_ROWS)))
                    if self._closing.is_set():
                        return
                self._put((shape, _Ended(end)))
            self._put(None)
        except BaseException as error:  # noqa: BLE001 - it is raised where the blocks are taken
            self._put(error)

    def _put(self, item: _Item) -> None:
        while not self._closing.is_set():
            try:
                self._blocks.put(item, timeout=0.2)
                return
            except queue.Full:
                continue

    def blocks(self, stopping: threading.Event) -> Iterator[tuple[Shape, pa.RecordBatch | _Ended] | None]:
        """Blocks of rows, and a shape with the end of a statement on its table; None now and then while nothing is ready."""
        running = len(self._readers)
        while running and not stopping.is_set():
            try:
                item = self._blocks.get(timeout=0.2)
            except queue.Empty:
                yield None
                continue
            if item is None:
                running -= 1
            elif isinstance(item, BaseException):
                with database_errors(self._config, "reading a snapshot of"):
                    raise item
            else:
                yield item

    def batches(
        self, stopping: threading.Event, offset: dict[str, Any], progress: SnapshotProgress
    ) -> Iterator[list[RecordBatch]]:
        """Batches, block by block, each with ``offset`` and the tables that have been read after it; the very last one
        ends the snapshot and completes ``offset``.
        """
        marks = SnapshotMarks()
        pending: tuple[Shape, pa.RecordBatch] | None = None
        for name in self.tables:
            if not self._statements_left[name]:
                progress.ended(name)
        for name, pieces in self._pieces.items():
            if pieces.resumed is not None:
                progress.reached(name, pieces.resumed)
        before = {**offset, **progress.members()}
        for item in self.blocks(stopping):
            if item is None:
                yield []
                continue
            shape, rows = item
            if isinstance(rows, _Ended):
                self._end_statement(shape.table.full_name, rows, progress)
                continue
            if pending is not None:
                after = {**offset, **progress.members()}
                yield self._batches_of(pending, marks, before, after, ends_table=pending[0] is not shape)
                before = after
            pending = (shape, rows)
        if stopping.is_set():
            return
        done = {**offset, "last_snapshot_record": True, "snapshot_completed": True}
        if pending is None:
            yield []
            return
        yield self._batches_of(pending, marks, before, done, ends_table=True, ends_all=True)

    def _end_statement(self, name: str, ended: _Ended, progress: SnapshotProgress) -> None:
        pieces = self._pieces.get(name)
        part = None if pieces is None else pieces.ended(ended.block)
        if part is not None and self._keeps_parts:
            progress.reached(name, part)
        self._statements_left[name] -= 1
        if not self._statements_left[name]:
            progress.ended(name)

    def _batches_of(
        self,
        block: tuple[Shape, pa.RecordBatch],
        marks: SnapshotMarks,
        before: dict[str, Any],
        after: dict[str, Any],
        **ends: bool,
    ) -> list[RecordBatch]:
        shape, rows = block
        column = marks.column(shape, rows.num_rows, **ends)
        position = {"source_partition": {"server": self._config.prefix}, "source_offset": before}
        batches = bounded(read_batch(self._config, shape, rows, self._moment, column, self._context, **position))
        return [*batches[:-1], batches[-1].replace(source_offset=after)]

    def abort(self) -> None:
        """Called from another thread: makes the readers' statements end with an error."""
        for connection in self._connections:
            connection.cancel()

    def close(self) -> None:
        self._closing.set()
        for connection in self._connections:
            connection.cancel()
        for reader in self._readers:
            reader.join(5)
        for connection in self._connections:
            connection.close()
