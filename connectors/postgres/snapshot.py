"""The whole content of tables, as of one moment: read by COPY, parsed by Arrow, several connections on one exported snapshot."""

from __future__ import annotations

import io
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import psycopg
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from connect.api import RecordBatch
from connectors.debezium.events import ContextHeaders, Rows, constant, event_batch, struct_column
from connectors.debezium.filters import compiled
from connectors.postgres.changes import Transaction, source_column
from connectors.postgres.config import PostgresConfig
from connectors.postgres.connections import connect, database_errors
from connectors.postgres.decoding import bounded
from connectors.postgres.tables import Shape
from connectors.postgres.types import zero_of

__all__ = ["Moment", "Snapshot"]

_BLOCK_BYTES: Final = 2 * 1024 * 1024
_AHEAD: Final = 3
"""Blocks that wait for the runtime at most, for each reader."""


@dataclass(frozen=True, slots=True)
class Moment:
    """What a snapshot shows: its name for other connections, the position in the log and when it was."""

    snapshot: str
    lsn: int
    xid: int | None
    micros: int


class Snapshot:
    """Reads tables in the background; ``batches`` delivers them in order of the tables. Close it in any case."""

    def __init__(
        self, config: PostgresConfig, shapes: Sequence[Shape], moment: Moment, context: ContextHeaders
    ) -> None:
        self._config, self._moment, self._context = config, moment, context
        wanted = compiled(config.snapshot_tables)
        self._shapes = [s for s in shapes if not wanted or any(p.fullmatch(s.table.full_name) for p in wanted)]
        self._blocks: queue.Queue[tuple[Shape, bytes] | BaseException | None] = queue.Queue(
            _AHEAD * config.snapshot_threads
        )
        self._closing = threading.Event()
        self._connections: list[psycopg.Connection[Any]] = []
        self._work: queue.SimpleQueue[tuple[Shape, str]] = queue.SimpleQueue()
        self._readers: list[threading.Thread] = []

    def start(self) -> None:
        """Connect all readers to the snapshot, then let them read; raises psycopg's errors."""
        for _ in range(self._config.snapshot_threads):
            connection = connect(self._config)
            self._connections.append(connection)
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            connection.execute(f"SET TRANSACTION SNAPSHOT '{self._moment.snapshot}'".encode())
            if self._config.snapshot_locking.lower() == "shared":
                for shape in self._shapes:
                    connection.execute(f"LOCK TABLE {shape.table.quoted} IN ACCESS SHARE MODE".encode())
        for shape in self._shapes:
            for statement in self._statements(shape, self._connections[0]):
                self._work.put((shape, statement))
        for connection in self._connections:
            reader = threading.Thread(target=self._read, args=(connection,), name="snapshot", daemon=True)
            self._readers.append(reader)
            reader.start()

    def _statements(self, shape: Shape, connection: psycopg.Connection[Any]) -> Iterator[str]:
        table = shape.table
        names = [table.columns[at].name for at in shape.positions]
        columns = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
        own = self._config.snapshot_selects.get(table.full_name)
        if own is not None:
            yield f"SELECT {columns} FROM ({own}) chosen"
            return
        select = f"SELECT {columns} FROM {table.quoted}"
        parts = self._config.snapshot_threads
        pages = 0
        if parts > 1 and table.kind == "r":
            row = connection.execute(
                "SELECT pg_relation_size(%s::oid) / current_setting('block_size')::int", [table.oid]
            ).fetchone()
            pages = row[0] if row else 0
        if pages < 8 * parts:
            yield select
            return
        bounds = [pages * i // parts for i in range(parts)]
        for low, high in zip(bounds, [*bounds[1:], None], strict=True):
            yield f"{select} WHERE ctid >= '({low},0)'" + (f" AND ctid < '({high},0)'" if high is not None else "")

    def _read(self, connection: psycopg.Connection[Any]) -> None:
        try:
            while not self._closing.is_set():
                try:
                    shape, statement = self._work.get_nowait()
                except queue.Empty:
                    break
                self._copy(connection, shape, statement)
            self._put(None)
        except Exception as error:  # noqa: BLE001 - it is raised where the blocks are taken
            self._put(error)

    def _copy(self, connection: psycopg.Connection[Any], shape: Shape, statement: str) -> None:
        if not shape.forms:
            return
        parts: list[bytes] = []
        size = 0
        command = f"COPY ({statement}) TO STDOUT (FORMAT csv)"
        with connection.cursor() as cursor, cursor.copy(command.encode()) as copy:
            for piece in copy:  # a row each
                parts.append(bytes(piece))
                size += len(piece)
                if size >= _BLOCK_BYTES:
                    self._put((shape, b"".join(parts)))
                    parts, size = [], 0
                    if self._closing.is_set():
                        return
        if parts:
            self._put((shape, b"".join(parts)))

    def _put(self, item: tuple[Shape, bytes] | BaseException | None) -> None:
        while not self._closing.is_set():
            try:
                self._blocks.put(item, timeout=0.2)
                return
            except queue.Full:
                continue

    def blocks(self, stopping: threading.Event) -> Iterator[tuple[Shape, pa.Table] | None]:
        """Parsed blocks; None from time to time while nothing is at hand."""
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
                shape, raw = item
                yield shape, _parsed(shape, raw)

    def batches(self, stopping: threading.Event, offset: dict[str, Any]) -> Iterator[list[RecordBatch]]:
        """Batches to hand on, block by block; the very last is the snapshot's last and completes ``offset``."""
        marks = _Marks()
        held: tuple[Shape, pa.Table] | None = None
        partition = {"server": self._config.prefix}
        position = {"source_partition": partition, "source_offset": offset}
        for block in self.blocks(stopping):
            if block is None:
                yield []
                continue
            if held is not None:
                yield self._made(held, marks, ends_table=held[0] is not block[0], position=position)
            held = block
        if stopping.is_set():
            return
        done = {**offset, "last_snapshot_record": True, "snapshot_completed": True}
        if held is None:
            yield []
            return
        batches = self._made(held, marks, ends_table=True, ends_all=True, position=position)
        batches[-1] = batches[-1].replace(source_offset=done)
        yield batches

    def _made(
        self, block: tuple[Shape, pa.Table], marks: _Marks, *, position: dict[str, Any], **ends: bool
    ) -> list[RecordBatch]:
        shape, table = block
        length = table.num_rows
        config, moment = self._config, self._moment
        columns = []
        for form, column in zip(shape.forms, table.columns, strict=True):
            text = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
            made = form.convert(text)
            if not form.schema.optional and made.null_count:
                made = pc.if_else(made.is_null(), pa.scalar(zero_of(form.schema), made.type), made)
            columns.append(made)
        after = struct_column(shape.layout.row, columns)
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
            marks.column(shape, length, **ends),
        )
        rows = Rows(constant("r", pa.string(), length), None, after, keys, source)
        return bounded(event_batch(shape.layout, rows, self._context, **position))

    def close(self) -> None:
        self._closing.set()
        for connection in self._connections:
            connection.cancel_safe(timeout=2) if hasattr(connection, "cancel_safe") else connection.cancel()
        for reader in self._readers:
            reader.join(5)
        for connection in self._connections:
            connection.close()


class _Marks:
    """The ``snapshot`` field: which row is the first and the last, of all and of its table."""

    def __init__(self) -> None:
        self._table: Shape | None = None

    def column(self, shape: Shape, length: int, *, ends_table: bool, ends_all: bool = False) -> pa.Array:
        first = last = "true"
        if self._table is not shape:
            first = "first" if self._table is None else "first_in_data_collection"
            self._table = shape
        if ends_all:
            last = "last"
        elif ends_table:
            last = "last_in_data_collection"
        if length == 1:
            marks = [last if ends_all or (ends_table and first != "first") else first]
            return pa.array(marks, pa.string())
        middle = pa.repeat(pa.scalar("true", pa.string()), length - 2)
        return pa.concat_arrays([pa.array([first], pa.string()), middle, pa.array([last], pa.string())])


def _parsed(shape: Shape, raw: bytes) -> pa.Table:
    """A block of CSV as string columns: an unquoted nothing is null, a quoted one the empty text."""
    names = [f"{i}" for i in range(len(shape.forms))]
    return pa_csv.read_csv(
        io.BytesIO(raw),
        read_options=pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=max(len(raw) + 1, 1)),
        parse_options=pa_csv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        convert_options=pa_csv.ConvertOptions(
            column_types={name: pa.string() for name in names},
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
