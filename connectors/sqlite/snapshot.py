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
        parts: Mapping[str, Any] | None = None,
        selects: Mapping[str, str] | None = None,
        ends: Mapping[str, Any] | None = None,
    ) -> Iterator[list[RecordBatch]]:
        """Batches, table by table.

        ``offset`` is their offset, with the tables read so far where ``progress`` is given, and ``ends`` the very last
        one's, by default the same marked as complete; ``parts`` are how far earlier attempts have read tables; ``selects`` maps a table's full name to a SELECT that limits its
        rows.
        """
        marks, millis = SnapshotMarks(), time.time_ns() // 1_000_000
        pending: tuple[Shape, list[Any]] | None = None
        orders = {shape.table.full_name: self._order(shape) for shape in shapes} if progress is not None else {}

        def made(block: tuple[Shape, list[Any]], **ends: bool) -> RecordBatch:
            shape, rows = block
            if progress is not None and not progress.is_ended(shape.table.full_name):
                _reach(progress, shape, orders[shape.table.full_name], rows[-1])
            after = {**offset, **(progress.members() if progress is not None else {})}
            position = {"source_partition": {"server": self._config.prefix}, "source_offset": after}
            return self._events.of_rows(shape, rows, marks.column(shape, len(rows), **ends), millis, position)

        for shape in shapes:
            if shape.forms:
                name = shape.table.full_name
                statement, values = select(shape, (selects or {}).get(name, "")), list[Any]()
                if order := orders.get(name):
                    behind, values = _behind(order, part := (parts or {}).get(name))
                    statement += f"{behind} ORDER BY {', '.join(map(quoted, order))}"
                    if behind and progress is not None:
                        progress.reached(name, part)
                cursor = self._connection.execute(statement, values)
                for rows in pieces(cursor, self._config.max_queue_size):
                    if pending is not None:
                        yield [made(pending, ends_table=pending[0] is not shape)]
                    pending = (shape, rows)
            if progress is not None:
                progress.ended(shape.table.full_name)
        if pending is not None:
            done = ends if ends is not None else {**offset, "last_snapshot_record": True, "snapshot_completed": True}
            yield [made(pending, ends_table=True, ends_all=True).replace(source_offset=done)]

    def _order(self, shape: Shape) -> dict[str, int]:
        """The columns of the order in which the table is stored, and their indices among the captured ones. Empty where that order may
        change: VACUUM gives rows other numbers unless these are the primary key.
        """
        table = shape.table
        primary = [
            (column, declared)
            for column, declared in self._connection.execute(
                "SELECT name, type FROM pragma_table_xinfo(?) WHERE pk ORDER BY pk", [table.name]
            )
        ]
        names = tuple(column for column, _ in primary)
        if table.identity != names:
            indexed = self._connection.execute(
                "SELECT 1 FROM pragma_index_list(?) WHERE origin = 'pk'", [table.name]
            ).fetchone()
            if len(primary) != 1 or (primary[0][1] or "").upper() != "INTEGER" or indexed:
                return {}
        captured = {column.name: at for at, column in enumerate(table.columns)}
        return {name: captured[name] for name in names} if set(names) <= captured.keys() else {}

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


def _reach(progress: SnapshotProgress, shape: Shape, order: Mapping[str, int], last: Sequence[Any]) -> None:
    values = [last[at] for at in order.values()]
    if values and all(isinstance(value, int | str) for value in values):
        progress.reached(shape.table.full_name, [list(order), values])


def _behind(order: Mapping[str, int], part: Any) -> tuple[str, list[Any]]:
    """The condition of the rows behind those that ``part`` tells of, and its values; empty for all rows.

    SQLite compares and sorts a column by the same collation, so texts are as good as numbers.
    """
    if not isinstance(part, list) or len(part) != 2 or part[0] != list(order) or not isinstance(part[1], list):
        return "", []
    values = part[1]
    if len(values) != len(order) or not all(isinstance(value, int | str) for value in values):
        return "", []
    return f" WHERE ({', '.join(map(quoted, order))}) > ({', '.join('?' * len(order))})", values
