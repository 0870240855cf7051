"""The SQLite source: snapshot, then the change log; one task, as a log has one reader."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import Any, Final

from connect.api import ConnectError, Dataset, OffsetChanges, Problem, RecordBatch, SourceConnector, get_logger, parse
from connectors.debezium.filters import Filters, compiled
from connectors.debezium.snapshot_progress import SnapshotProgress, parts_read, tables_read
from connectors.debezium.task import CaptureTask, Changes, snapshot_pending
from connectors.sqlite.batches import Events
from connectors.sqlite.changelog import ChangeLog
from connectors.sqlite.chunks import SqliteChunks
from connectors.sqlite.config import SqliteConfig
from connectors.sqlite.connections import connect, database_errors, is_busy
from connectors.sqlite.reading import changes
from connectors.sqlite.snapshot import Snapshot
from connectors.sqlite.tables import Shape, Shapes, Table, captured
from connectors.sqlite.validation import find_problems

__all__ = ["SqliteSource", "SqliteTask"]

logger = get_logger(__name__)
_LOOK_S: Final = 0.05
_PRUNE_S: Final = 1.0


class SqliteTask(CaptureTask[SqliteConfig]):
    """Reads one change log."""

    connector = "sqlite"

    def __init__(self, config: SqliteConfig, context: Any) -> None:
        super().__init__(config, context)
        self._filters = Filters(config)
        self._maker = Shapes(config, self._filters)
        self._events = Events(config, Path(config.path).stem, self._headers)
        self._connection: sqlite3.Connection | None = None
        self._log: ChangeLog | None = None
        self._log_id = ""
        self._shapes: dict[int, Shape] = {}
        self._schema_version = -1
        self._data_version = -1
        self._seq = 0
        self._done = 0
        self._next_prune = 0.0

    def _dataset(self, table: str) -> Dataset:
        return Dataset(f"sqlite://{self.config.path}", table.removeprefix("main."))

    def _errors(self) -> AbstractContextManager[None]:
        return database_errors(self.config, "following")

    def _chunks(self) -> SqliteChunks:
        return SqliteChunks(self.config, self._events, lambda: [self._maker.of(table) for table in self._tables()])

    def _follows(self) -> bool:
        return self._connection is not None

    # beginnings

    def _begin(self) -> Sequence[RecordBatch]:
        config, position = self.config, self._offset
        self._connection = connection = connect(config)
        self._log = ChangeLog(connection, config.log, config.prefix)
        if not config.log_enabled:
            if not position or snapshot_pending(position):
                self._start_snapshot()
            else:
                self._finished = True
            return []
        fresh = not self._log.exists
        self._log_id = self._log.open()
        lost = bool(position) and not snapshot_pending(position) and self._is_lost(position)
        mode = config.snapshot_mode.lower()
        if lost and mode != "when_needed":
            raise ConnectError(
                f"the changes after {position.get('seq')} are not in change log {config.log!r} of {config.path}: it was removed, "
                "pruned further, or the file was replaced. Set snapshot.mode=when_needed to read the tables again, or reset the "
                "connector's offsets"
            )
        beginning = not position or snapshot_pending(position) or lost
        # a table that was made anew while a snapshot was interrupted may have been read: its rows go into the log
        self._follow_tables(copy=not fresh and (not beginning or self._resumes()))
        snapshots = (mode == "always" and self._first) or (
            beginning and mode not in ("no_data", "never", "schema_only")
        )
        self._first = False
        if snapshots:
            self._start_snapshot()
        elif mode == "initial_only":
            self._finished = True
        else:
            # without an offset, start at the beginning of the log: it was written since the triggers were created
            self._seq = int(position["seq"]) if position and not beginning else self._log.owner()[2]
            self._offset = self._position(self._seq)
        return []

    def _is_lost(self, position: Mapping[str, Any]) -> bool:
        assert self._log is not None
        if not self.config.log_enabled:
            return True
        number, _, pruned = self._log.owner()
        seq = int(position.get("seq", -1))
        return position.get("log") != number or not pruned <= seq <= self._log.last()

    def _position(self, seq: int, **more: Any) -> dict[str, Any]:
        return {"log": self._log_id, "seq": seq, **more}

    def _tables(self) -> list[Table]:
        assert self._connection is not None
        return captured(self._connection, self._filters, self.config.log)

    def _follow_tables(self, *, copy: bool) -> None:
        """Update the triggers to match the tables."""
        assert self._connection is not None and self._log is not None
        version = self._pragma("schema_version")
        while changed := self._log.renew(self._tables, copy=copy):
            logger.info("triggers were made", connector=self.context.connector, tables=changed)
            version = self._pragma("schema_version")
        self._schema_version = version
        self._data_version = -1
        self._shapes = {number: self._maker.of(table) for number, table in self._log.shapes().items()}

    def _pragma(self, name: str) -> int:
        assert self._connection is not None
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    def _start_snapshot(self) -> None:
        config = self.config
        patterns = compiled(config.snapshot_tables)
        tables = [t for t in self._tables() if not config.is_signals(t.full_name)]
        tables = [t for t in tables if not patterns or any(p.fullmatch(t.full_name) for p in patterns)]
        self._snapshot = Snapshot(config, self._events)
        self._seq, before = self._snapshot.seq, frozenset[str]()
        parts: dict[str, Any] = {}
        if self._resumes():
            read = tables_read(self._offset) or frozenset()
            self._seq, before = int(self._offset["seq"]), read & {table.full_name for table in tables}
            parts = parts_read(self._offset)
        offset = self._position(self._seq, snapshot="INITIAL", snapshot_completed=False, last_snapshot_record=False)
        shapes = [self._maker.of(table) for table in tables if table.full_name not in before]
        expected = {shape.table.full_name: self._snapshot.expected_rows(shape) for shape in shapes}
        progress = SnapshotProgress(expected, before)
        self._offset = {**offset, **progress.members()}
        names = {shape.layout.topic: shape.table.full_name for shape in shapes}
        self._take_tables(
            self._snapshot.batches(shapes, offset, progress=progress, parts=parts), names, progress, in_order=True
        )

    def _resumes(self) -> bool:
        """Whether there is a snapshot to go on with: the log still has all changes since it began."""
        position = self._offset
        return snapshot_pending(position) and tables_read(position) is not None and not self._is_lost(position)

    def _end_snapshot(self) -> None:
        self._offset = self._position(self._seq)

    # changes

    def _current_offset(self) -> dict[str, Any]:
        return self._offset

    def _changes(self) -> Changes:
        deadline = time.monotonic() + self.config.poll_interval_ms / 1000
        changes = self._at(self._seq)
        while True:
            self._prune()
            version = self._pragma("data_version")
            if version != self._data_version:
                changes, more = self._read()
                if not more:
                    self._data_version = version
                if changes.batches or more:
                    return changes
            left = deadline - time.monotonic()
            busy = self._signals is not None and self._signals.running
            if busy or left <= 0 or self.context.stopping.wait(min(left, _LOOK_S)):
                return changes

    def _at(self, seq: int, batches: Sequence[RecordBatch] = ()) -> Changes:
        offset = self._offset if seq == self._seq else self._position(seq)
        return Changes(batches, offset, offset, seq)

    def _handed_over(self, changes: Changes) -> None:
        super()._handed_over(changes)
        self._seq = changes.position

    def _read(self) -> tuple[Changes, bool]:
        """The next changes, and whether to read again immediately."""
        assert self._connection is not None and self._log is not None
        connection, config = self._connection, self.config
        connection.execute("BEGIN")
        try:
            schema, last = self._pragma("schema_version"), self._log.last()
            read, until = changes(connection, config.log, self._shapes, self._seq, config.max_queue_size)
        finally:
            connection.execute("COMMIT")
        if schema != self._schema_version:
            self._follow_tables(copy=True)
            return self._at(self._seq), True
        if until == self._seq:  # numbers up to the last one may belong to rows that are not changes
            return self._at(last), False
        still = {"source_partition": self._partition, "source_offset": self._offset}
        batches = [batch for shape, rows in read if (batch := self._events.of_changes(shape, rows, still)) is not None]
        if batches:
            batches[-1] = batches[-1].replace(source_offset=self._position(until))
        return self._at(until, batches), True

    def _run(self, statement: str) -> None:
        assert self._connection is not None
        self._connection.execute(statement)

    def _prune(self) -> None:
        """Delete changes that are already in the topics; later if another process is writing."""
        assert self._log is not None
        if not self._done or time.monotonic() < self._next_prune:
            return
        try:
            if not self._log.prune(self._done):
                self._next_prune = time.monotonic() + _PRUNE_S
                self._done = 0
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            self._next_prune = time.monotonic() + _PRUNE_S

    def committed(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        super().committed(offsets)
        for _, offset in offsets:
            if offset.get("log") == self._log_id and not snapshot_pending(offset):
                self._done = int(offset["seq"])

    def _close_connections(self) -> None:
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = self._log = None

    def _abort(self) -> None:
        for part in (self._connection, self._snapshot):
            if part is not None:
                with suppress(sqlite3.Error):  # the connection may have been closed
                    part.interrupt()

    def _clean_up(self) -> None:
        if self.config.log_drop and self.config.log_enabled:
            _drop_log(self.config)


def _drop_log(config: SqliteConfig) -> None:
    """Remove triggers and log, unless they belong to another connector."""
    with database_errors(config, "removing the change log of"):
        connection = connect(config)
        try:
            log = ChangeLog(connection, config.log, config.prefix)
            if log.exists and log.owner()[1] == config.prefix:
                log.drop()
        finally:
            connection.close()


class SqliteSource(SourceConnector[SqliteConfig]):
    """Captures the changes of a SQLite database."""

    config_class = SqliteConfig
    task_class = SqliteTask

    @classmethod
    def check(cls, config: SqliteConfig) -> Iterable[Problem]:
        yield from find_problems(config)

    @classmethod
    def preview_properties(cls, properties: Mapping[str, str]) -> Mapping[str, str]:
        """The rows of the tables. Nothing is made in the database, and the change log of a connector stays as it is."""
        return {
            **properties,
            "snapshot.mode": "initial_only",
            "heartbeat.interval.ms": "0",
            "signal.enabled.channels": "source",
            "change.log.enabled": "false",
        }

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        """Deleting the offset also removes the triggers and the log: without an offset its contents cannot be used."""
        config = parse(SqliteConfig, properties)
        for partition, offset in offsets:
            if partition != {"server": config.prefix}:
                raise ConnectError(f'partition {dict(partition)} should be {{"server": "{config.prefix}"}}')
            if offset is not None and not (isinstance(offset.get("seq"), int) and isinstance(offset.get("log"), str)):
                raise ConnectError(f"offset {dict(offset)} should have log, the change log's id, and seq, a number")
        if any(offset is None for _, offset in offsets):
            _drop_log(config)
        return True
