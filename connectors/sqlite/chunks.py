"""Chunks of incremental snapshots.

A chunk and the end of the log are read in one transaction, so no marks are needed.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from connect.api import DataError, RecordBatch
from connectors.debezium.incremental.progress import TablePart, unknown_table
from connectors.debezium.incremental.windows import Chunk
from connectors.debezium.signals.signal import SnapshotRequest
from connectors.sqlite.batches import Events
from connectors.sqlite.changelog import ChangeLog
from connectors.sqlite.config import SqliteConfig
from connectors.sqlite.connections import connect, quoted
from connectors.sqlite.reading import pieces, select
from connectors.sqlite.snapshot import Snapshot
from connectors.sqlite.tables import Shape

__all__ = ["SqliteChunks"]


class SqliteChunks:
    """``shapes`` returns the captured tables in their current form."""

    def __init__(self, config: SqliteConfig, events: Events, shapes: Callable[[], Sequence[Shape]]) -> None:
        self._config, self._events, self._shapes = config, events, shapes
        self._opened: sqlite3.Connection | None = None
        self._snapshot: Snapshot | None = None

    def captured(self) -> Sequence[str]:
        return [name for shape in self._shapes() if not self._config.is_signals(name := shape.table.full_name)]

    def _connection(self) -> sqlite3.Connection:
        if self._opened is None:
            self._opened = connect(self._config)
        return self._opened

    def _shape(self, part: TablePart) -> tuple[Shape, list[str]]:
        """The table, and the columns that it is read by."""
        shape = next((shape_ for shape_ in self._shapes() if shape_.table.full_name == part.table), None)
        if shape is None:
            raise unknown_table(part)
        columns = {column.name for column in shape.table.columns}
        keys = part.read_by(shape.table.key)
        if missing := [key for key in keys if key not in columns]:
            raise DataError(f"table {part.table} has no captured column {missing[0]!r} to be read by")
        return shape, keys

    def maximum(self, part: TablePart) -> tuple[Any, ...] | None:
        shape, keys = self._shape(part)
        names = ", ".join(quoted(key) for key in keys)
        where = f"WHERE ({part.condition})" if part.condition else ""
        order = ", ".join(f"{quoted(key)} DESC" for key in keys)
        rows = self._first_rows(f"SELECT {names} FROM {quoted(shape.table.name)} {where} ORDER BY {order} LIMIT 1", [])
        return rows[0] if rows else None

    def read(self, part: TablePart, after: tuple[Any, ...] | None, maximum: tuple[Any, ...], size: int) -> Chunk | None:
        shape, keys = self._shape(part)
        names = ", ".join(quoted(key) for key in keys)
        bounds, values = [f"({names}) <= ({', '.join('?' * len(keys))})"], list(maximum)
        if after is not None:
            bounds.append(f"({names}) > ({', '.join('?' * len(keys))})")
            values += after
        if part.condition:
            bounds.append(f"({part.condition})")
        query = f"{select(shape)} WHERE {' AND '.join(bounds)} ORDER BY {names} LIMIT ?"
        connection = self._connection()
        connection.execute("BEGIN")
        try:
            rows = self._first_rows(query, [*values, size], size)
            last_seq = ChangeLog(connection, self._config.log, self._config.prefix).last()
        finally:
            connection.execute("COMMIT")
        if not rows:
            return None
        if any(isinstance(value, bytes) for value in maximum):
            raise DataError(f"table {part.table} has binary keys: name a column of numbers or texts in surrogate-key")
        indexes = [[column.name for column in shape.table.columns].index(key) for key in keys]
        marks = pa.repeat(pa.scalar("incremental", pa.string()), len(rows))
        batch = self._events.of_rows(shape, rows, marks, time.time_ns() // 1_000_000, {})
        return Chunk(batch, tuple(rows[-1][index] for index in indexes), last_seq)

    def _first_rows(self, query: str, values: Sequence[Any], rows: int = 1) -> list[Any]:
        """The first rows of a result, limited in bytes. An invalid condition is reported as an error of the signal."""
        try:
            cursor = self._connection().execute(query, values)
            first_piece = next(pieces(cursor, rows + 64), [])
            cursor.close()
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_ERROR:
                raise DataError(f"{error} in {query}") from error
            raise
        return first_piece

    def retry_position(self, part: TablePart) -> None:
        """Never: when a table is altered its triggers are recreated as well."""

    def mark(self, mark_id: str, kind: str, data: Mapping[str, Any]) -> None: ...

    def whole(
        self, tables: Sequence[str], request: SnapshotRequest, offset: Mapping[str, Any]
    ) -> Iterator[list[RecordBatch]]:
        """Read in one transaction; changes from the offset on follow, and lead to the tables' current state."""
        shapes = [shape for shape in self._shapes() if shape.table.full_name in tables]
        selects = {name: request.condition(name) for name in tables}
        self._snapshot = Snapshot(self._config, self._events)
        try:
            yield from self._snapshot.batches(shapes, offset, selects=selects, ends=offset)
        finally:
            self._snapshot.close()
            self._snapshot = None

    def close(self) -> None:
        for part in (self._snapshot, self._opened):
            if part is not None:
                part.close()
        self._snapshot = self._opened = None
