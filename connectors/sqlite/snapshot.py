"""The whole content of tables, as of one moment."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from connect.api import RecordBatch
from connectors.debezium.marks import SnapshotMarks
from connectors.debezium.snapshot_progress import SnapshotProgress
from connectors.sqlite.batches import Events
from connectors.sqlite.changelog import ChangeLog
from connectors.sqlite.config import SqliteConfig
from connectors.sqlite.connections import connect, quoted
from connectors.sqlite.reading import pieces, select
from connectors.sqlite.tables import Shape

__all__ = ["Snapshot"]


class Snapshot:
    """Reads tables in one read transaction; ``seq`` is the last change that they contain. Must be closed in every case.

    With journal_mode=WAL it blocks no other connection; otherwise commits wait until it has ended.
    """

    def __init__(self, config: SqliteConfig, events: Events) -> None:
        self._config, self._events = config, events
        self._connection: sqlite3.Connection = connect(config)
        self._connection.execute("BEGIN")
        log = ChangeLog(self._connection, config.log, config.prefix)
        self.seq = log.last() if log.exists else 0

    def batches(
        self,
        shapes: Sequence[Shape],
        offset: Mapping[str, Any],
        *,
        progress: SnapshotProgress | None = None,
        selects: Mapping[str, str] | None = None,
        ends: Mapping[str, Any] | None = None,
    ) -> Iterator[list[RecordBatch]]:
        """Batches, table by table.

        ``offset`` is their offset, with the tables read so far where ``progress`` is given, and ``ends`` the very last
        one's, by default the same marked as complete; ``selects`` maps a table's full name to a SELECT that limits its
        rows.
        """
        marks, millis = SnapshotMarks(), time.time_ns() // 1_000_000
        pending: tuple[Shape, list[Any]] | None = None

        def made(block: tuple[Shape, list[Any]], **ends: bool) -> RecordBatch:
            shape, rows = block
            after = {**offset, **(progress.members() if progress is not None else {})}
            position = {"source_partition": {"server": self._config.prefix}, "source_offset": after}
            return self._events.of_rows(shape, rows, marks.column(shape, len(rows), **ends), millis, position)

        for shape in shapes:
            if shape.forms:
                cursor = self._connection.execute(select(shape, (selects or {}).get(shape.table.full_name, "")))
                for rows in pieces(cursor, self._config.max_queue_size):
                    if pending is not None:
                        yield [made(pending, ends_table=pending[0] is not shape)]
                    pending = (shape, rows)
            if progress is not None:
                progress.ended(shape.table.full_name)
        if pending is not None:
            done = ends if ends is not None else {**offset, "last_snapshot_record": True, "snapshot_completed": True}
            yield [made(pending, ends_table=True, ends_all=True).replace(source_offset=done)]

    def expected_rows(self, shape: Shape) -> int | None:
        """An upper bound from the greatest row number, which costs nothing; None for a table WITHOUT ROWID."""
        identity = shape.table.identity
        if len(identity) != 1 or identity[0] in {column.name for column in shape.table.columns}:
            return None
        row = self._connection.execute(f"SELECT max({identity[0]}) FROM {quoted(shape.table.name)}").fetchone()
        return int(row[0] or 0)

    def interrupt(self) -> None:
        """Called from another thread: makes the running statement end with an error."""
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()
