"""Reads whole tables as of one moment, from the server's stream to Arrow, with several connections that share one view
of the data.
"""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from connect.api import ConnectError, RecordBatch
from connectors.debezium.events import ContextHeaders, Rows, bounded, constant, event_batch, struct_column
from connectors.debezium.filters import compiled
from connectors.debezium.marks import SnapshotMarks
from connectors.debezium.snapshot_progress import SnapshotProgress
from connectors.debezium.values import zero_of
from connectors.mysql.changes import LogEntry, Origin, filled, source_column
from connectors.mysql.config import MySqlConfig
from connectors.mysql.connections import Server, connect, database_errors, message_of
from connectors.mysql.tables import Shape
from connectors.sql.mysql import abort_mysql
from connectors.sql.mysql_rows import StreamedRows

__all__ = ["Moment", "Readers", "Snapshot", "converted", "read_batch", "select_list"]

_BLOCK_BYTES: Final = 2 * 1024 * 1024
_AHEAD: Final = 3
"""The most blocks per reader that wait for the runtime."""


_INTEGERS: Final = frozenset({"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT"})
_BYTES: Final = frozenset({"CHAR", "VARCHAR", "BINARY", "VARBINARY"})


class ByKey(NamedTuple):
    """A table that is stored in the order of its primary key, with the collations of the key's columns. ``part`` is how far earlier
    attempts have read it, a part of ``SnapshotProgress``, or None.
    """

    collations: Mapping[str, str]
    part: Any = None


class _Block(NamedTuple):
    """Rows, and the key of the last one where they are read by key."""

    columns: list[pa.Array]
    last: list[int | str] | None


_Item: TypeAlias = "tuple[Shape, _Block | None] | BaseException | None"
"""The messages of a reader: rows; a shape with None after the last row of its table; an error; None at its end."""


class Moment(NamedTuple):
    """The end of the log at the moment that the readers' view was fixed. ``micros`` is the server's clock."""

    file: str
    position: int
    gtids: str
    micros: int


class Readers:
    """Connections that see the data as of one moment, and the lock that blocks writes while that view is created."""

    def __init__(self, config: MySqlConfig, count: int) -> None:
        self._config = config
        self.connections: list[Any] = []
        self._locker: Any = None
        self._count = count

    def open(self, tables: Sequence[str]) -> Moment:
        """Raises PyMySQL's errors, and ConnectError where locking is not permitted.

        ``tables`` are locked individually where the whole server cannot be.
        """
        config = self._config
        mode = config.snapshot_locking.lower()
        for _ in range(self._count):
            connection = connect(config)
            self.connections.append(connection)
            _run(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        self._locker = connect(config)
        _run(self._locker, f"SET SESSION lock_wait_timeout = {max(1, config.snapshot_lock_timeout_ms // 1000)}")
        if mode != "none":
            self._lock(tables)
        for connection in self.connections:
            _run(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
        server = Server(self._locker)
        micros = int(server.value("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"))
        if mode == "none" and server.mariadb:  # MariaDB reports the position of a snapshot without a lock
            of_snapshot = dict(Server(self.connections[0]).rows("SHOW STATUS LIKE 'binlog_snapshot_%'"))
            file, position = of_snapshot.get("Binlog_snapshot_file"), of_snapshot.get("Binlog_snapshot_position")
            if file and position:
                gtids = server.value("SELECT BINLOG_GTID_POS(%s, %s)", file, int(position))
                return Moment(str(file), int(position), str(gtids or ""), micros)
        return Moment(*server.position(), micros)

    def _lock(self, tables: Sequence[str]) -> None:
        import pymysql

        try:
            _run(self._locker, "FLUSH TABLES WITH READ LOCK")
            return
        except pymysql.err.OperationalError as error:
            if error.args[0] not in (1227, 1044, 1045):
                raise
        try:
            if tables:
                _run(self._locker, "LOCK TABLES " + ", ".join(f"{name} READ" for name in tables))
        except pymysql.err.OperationalError as error:
            raise ConnectError(
                f"user {self._config.user!r} may neither lock the server nor its tables for the snapshot ({message_of(error)}): "
                f"GRANT RELOAD ON *.* or LOCK TABLES on the databases, or set snapshot.locking.mode=none and write nothing meanwhile"
            ) from error

    def unlock(self) -> None:
        locker, self._locker = self._locker, None
        if locker is not None:
            locker.close()

    def close(self) -> None:
        for connection in (*self.connections, self._locker):
            if connection is not None:
                connection._force_close()
        self.connections, self._locker = [], None


def _run(connection: Any, statement: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement)


def rows_of_select(
    connection: Any, shape: Shape, statement: str, key: Mapping[int, bool] | None = None
) -> Iterator[_Block]:
    """The columns of a SELECT of exactly the captured columns, block by block, in the types of the table's schemas.
    ``key`` are the indices of columns, and whether they are numbers, of which the last values are told: numbers, or the bytes of texts in hexadecimal digits.

    Raises PyMySQL's errors.
    """
    rows = StreamedRows(connection, statement, chunk_bytes=_BLOCK_BYTES)
    try:
        while (columns := rows.next()) is not None:
            if len(columns) != len(shape.forms):
                raise ConnectError(
                    f"{statement} delivers {len(columns)} columns, the table has {len(shape.forms)} to capture"
                )
            if len(columns[0]):
                ends = {at: columns[at][-1].as_py() for at in key or ()}
                last = [int(end) if (key or {})[at] else end.hex() for at, end in ends.items()] or None
                yield _Block(converted(shape, columns), last)
    finally:
        rows.close()


def select_list(shape: Shape) -> str:
    """The select list for a shape, in the order of its forms."""
    return ", ".join("`" + shape.table.columns[at].name.replace("`", "``") + "`" for at in shape.positions)


def converted(shape: Shape, columns: Sequence[pa.Array]) -> list[pa.Array]:
    """Columns of texts converted to the types of the table's schemas."""
    made = []
    for form, column in zip(shape.forms, columns, strict=True):
        read = form.of_text(column)
        if read.null_count and not form.schema.optional:
            read = filled(read, zero_of(form.schema))
        made.append(read)
    return made


def read_batch(
    shape: Shape, columns: Sequence[pa.Array], moment: Moment, marks: pa.Array, origin: Origin, context: ContextHeaders
) -> RecordBatch:
    """Events for rows that were read. ``marks`` is the source block's field ``snapshot``."""
    length = len(marks)
    after = struct_column(shape.layout.row, columns)
    keys = None
    if shape.layout.key is not None:
        keys = struct_column(shape.layout.key, [columns[at] for at in shape.key_positions])
    row_source = LogEntry(moment.micros, 0, None, moment.file, moment.position, None, None)
    zeros = np.zeros(length, np.int64)
    source = source_column(origin, shape.table.name, [row_source], zeros, zeros, marks)
    return event_batch(shape.layout, Rows(constant("r", pa.string(), length), None, after, keys, source), context)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _after(part: Any, key: Mapping[str, str | None]) -> str:
    """The condition of the rows behind those that ``part`` tells of; empty for all rows. ``key`` are the key's columns: None for
    numbers, else the collation of texts, empty for bytes.

    The server compares a column with a literal by the column's collation, as it sorts the column.
    """
    if not isinstance(part, list) or part[:1] != [list(key)] or part[2:] != _collations(key):
        return ""
    last = part[1] if isinstance(part[1], list) else []
    if len(last) != len(key):
        return ""
    literals = []
    for value, collation in zip(last, key.values(), strict=True):
        if collation is None and type(value) is int:
            literals.append(str(value))
        elif collation is not None and isinstance(value, str) and _HEXADECIMAL(value):
            literals.append(f"{'_utf8mb4 ' if collation else ''}x'{value}'")
        else:
            return ""
    names, alternatives = list(key), []
    for at, name in enumerate(names):
        same = [f"{_quoted(names[n])} = {literals[n]}" for n in range(at)]
        alternatives.append(" AND ".join([*same, f"{_quoted(name)} > {literals[at]}"]))
    return " WHERE " + " OR ".join(f"({each})" for each in alternatives)


def _collations(key: Mapping[str, str | None]) -> list[list[str | None]]:
    """The collations of a key, as a part has them beside columns and values; none where all columns are numbers."""
    return [list(key.values())] if any(collation is not None for collation in key.values()) else []


_HEXADECIMAL: Final = re.compile(r"(?:[0-9a-f]{2})*").fullmatch


class Snapshot:
    """Reads tables in the background; ``batches`` returns them. Must be closed in every case."""

    def __init__(
        self,
        config: MySqlConfig,
        shapes: Sequence[Shape],
        readers: Readers,
        moment: Moment,
        context: ContextHeaders,
        origin: Origin,
        by_key: Mapping[str, ByKey] | None = None,
    ) -> None:
        """``by_key`` are the tables that are stored in the order of their primary key, by their full names."""
        self._by_key = by_key or {}
        self._config, self._readers, self._moment = config, readers, moment
        self._context, self._origin = context, origin
        tables = compiled(config.snapshot_tables)
        self._shapes = [s for s in shapes if not tables or any(p.fullmatch(s.table.full_name) for p in tables)]
        self._blocks: queue.Queue[_Item] = queue.Queue(_AHEAD * config.snapshot_threads)
        self._closing = threading.Event()
        self._work: queue.SimpleQueue[Shape] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []

    @property
    def tables(self) -> list[str]:
        """The full names of the tables that are read, in their order."""
        return [shape.table.full_name for shape in self._shapes]

    def start(self) -> None:
        for shape in self._shapes:
            if shape.forms:
                self._work.put(shape)
        for connection in self._readers.connections:
            reader = threading.Thread(target=self._read, args=(connection,), name="snapshot", daemon=True)
            self._threads.append(reader)
            reader.start()

    def _key(self, shape: Shape) -> dict[str, tuple[int, str | None]]:
        """The columns that the table is read by: their indices among the captured ones, and None for numbers, else the collation. Empty
        where it is read in whatever order.
        """
        table = shape.table
        by_key = self._by_key.get(table.full_name)
        if by_key is None or table.full_name in self._config.snapshot_selects or not table.key:
            return {}
        captured = {table.columns[at].name: index for index, at in enumerate(shape.positions)}
        kinds = {column.name: column.type.split()[0].partition("(")[0] for column in table.columns}
        if not all(name in captured and kinds[name] in _INTEGERS | _BYTES for name in table.key):
            return {}
        return {
            name: (captured[name], None if kinds[name] in _INTEGERS else by_key.collations.get(name, ""))
            for name in table.key
        }

    def _statement(self, shape: Shape, key: Mapping[str, tuple[int, str | None]]) -> str:
        table, names = shape.table, select_list(shape)
        select = self._config.snapshot_selects.get(table.full_name)
        if select is not None:
            return f"SELECT {names} FROM ({select}) chosen"
        if not key:
            return f"SELECT {names} FROM {table.quoted}"
        after = _after(self._by_key[table.full_name].part, {name: collation for name, (_, collation) in key.items()})
        order = ", ".join(_quoted(name) for name in key)
        return f"SELECT {names} FROM {table.quoted}{after} ORDER BY {order}"

    def _read(self, connection: Any) -> None:
        try:
            while not self._closing.is_set():
                try:
                    shape = self._work.get_nowait()
                except queue.Empty:
                    break
                key = self._key(shape)
                told = {at: collation is None for at, collation in key.values()}
                for block in rows_of_select(connection, shape, self._statement(shape, key), told):
                    self._put((shape, block))
                    if self._closing.is_set():
                        return
                self._put((shape, None))
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

    def _taken(self, stopping: threading.Event) -> Iterator[tuple[Shape, _Block | None] | None]:
        """Blocks, and a shape with None where its table has no more rows; None now and then while nothing is ready."""
        running = len(self._threads)
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
        self, stopping: threading.Event, offset: dict[str, Any], done: dict[str, Any], progress: SnapshotProgress
    ) -> Iterator[list[RecordBatch]]:
        """Batches, block by block, each with ``offset`` and the tables that have been read after it; the very last one
        ends the snapshot and has the offset ``done``.
        """
        marks = SnapshotMarks()
        pending: tuple[Shape, _Block] | None = None
        for shape in self._shapes:
            if not shape.forms:
                progress.ended(shape.table.full_name)
            elif (by_key := self._by_key.get(shape.table.full_name)) is not None and _after(
                by_key.part, {name: collation for name, (_, collation) in self._key(shape).items()}
            ):
                progress.reached(shape.table.full_name, by_key.part)
        before = {**offset, **progress.members()}
        for item in self._taken(stopping):
            if item is None:
                yield []
                continue
            shape, block = item
            if block is None:
                progress.ended(shape.table.full_name)
                continue
            if pending is not None:
                self._reach(pending, progress)
                after = {**offset, **progress.members()}
                yield self._batches_of(pending, marks, before, after, ends_table=pending[0] is not shape)
                before = after
            pending = (shape, block)
        if stopping.is_set() or pending is None:
            yield []
            return
        yield self._batches_of(pending, marks, before, done, ends_table=True, ends_all=True)

    def _reach(self, pending: tuple[Shape, _Block], progress: SnapshotProgress) -> None:
        shape, block = pending
        if block.last is not None and not progress.is_ended(shape.table.full_name):
            key = {name: collation for name, (_, collation) in self._key(shape).items()}
            progress.reached(shape.table.full_name, [list(key), block.last, *_collations(key)])

    def _batches_of(
        self,
        pending: tuple[Shape, _Block],
        marks: SnapshotMarks,
        before: dict[str, Any],
        after: dict[str, Any],
        **ends: bool,
    ) -> list[RecordBatch]:
        shape, (columns, _) = pending
        mark = marks.column(shape, len(columns[0]), **ends)
        batches = bounded(read_batch(shape, columns, self._moment, mark, self._origin, self._context))
        placed = [b.replace(source_partition={"server": self._config.prefix}, source_offset=before) for b in batches]
        return [*placed[:-1], placed[-1].replace(source_offset=after)]

    def abort(self) -> None:
        """Called from another thread: makes the readers' statements end with an error."""
        for connection in self._readers.connections:
            abort_mysql(connection)

    def close(self) -> None:
        self._closing.set()
        self._readers.close()
        for thread in self._threads:
            thread.join(5)
