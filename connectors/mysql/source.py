"""The MySQL and MariaDB sources: snapshot, then the binary log; one task, as the log is one stream."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

import pymysql

from connect.api import (
    ConnectError,
    Dataset,
    OffsetChanges,
    Problem,
    RecordBatch,
    RetriableConnectError,
    SourceConnector,
    get_logger,
)
from connectors.debezium.filters import Filters
from connectors.debezium.snapshot_progress import SnapshotProgress, parts_read, tables_read, without_tables
from connectors.debezium.task import CaptureTask, Changes, snapshot_pending
from connectors.mysql.binlog.gtid import MySqlGtids, gtid_set
from connectors.mysql.catalog import Catalog
from connectors.mysql.changes import LogEntry, Origin
from connectors.mysql.chunks import MySqlChunks
from connectors.mysql.config import SYSTEM_DATABASES, MariaDbConfig, MySqlConfig
from connectors.mysql.connections import Binlog, Server, connect, database_errors
from connectors.mysql.decoding import Decoder
from connectors.mysql.history import recover
from connectors.mysql.history_stores import History, history_of
from connectors.mysql.position import Position
from connectors.mysql.schema_changes import SchemaChanges
from connectors.mysql.setup import find_problems, lost_because
from connectors.mysql.snapshot import ByKey, Moment, Readers, Snapshot
from connectors.mysql.structure import Structure, quoted
from connectors.mysql.tables import Shapes, source_schema
from connectors.sql.mysql import abort_mysql

__all__ = ["MariaDbSource", "MariaDbTask", "MySqlSource", "MySqlTask"]

logger = get_logger(__name__)
_BATCH_BYTES: Final = 4 * 1024 * 1024
_ALONE: Final = {"heartbeat.interval.ms": "0", "signal.enabled.channels": "source"}
"""Keys of a preview, which takes no signals from the connector."""
_ENDED_BY_SERVER: Final = frozenset({1236, 1227, 1218})


class MySqlTask(CaptureTask[MySqlConfig]):
    """Reads one server's binary log."""

    connector = "mysql"

    def __init__(self, config: MySqlConfig, context: Any) -> None:
        super().__init__(config, context)
        self._origin = Origin(self.connector, config.prefix, source_schema(self.connector).arrow_type)
        self._history: History = history_of(config, context.kafka)
        self._structure = Structure()
        self._shapes = Shapes(config, Filters(config), self._structure, self.connector)
        self._changed = SchemaChanges(config, self._structure, self._shapes, self._history, self._origin, self._headers)
        self._connection: Any = None
        self._stream: Binlog | None = None
        self._decoder: Decoder | None = None
        self._done: dict[str, Any] = {}
        """The offset after the snapshot."""
        self._recovers = False
        """Whether the structure has to be read from the history after the snapshot: a snapshot that goes on reads
        tables with the structure that they have now, and the stream begins before that.
        """

    def _dataset(self, table: str) -> Dataset:
        return Dataset(f"mysql://{self.config.hostname}:{self.config.port}", table)

    def _errors(self) -> AbstractContextManager[None]:
        return database_errors(self.config, "following")

    def _chunks(self) -> MySqlChunks:
        return MySqlChunks(self.config, self._shapes, self._origin, self._headers, self.context.stopping)

    def _follows(self) -> bool:
        return self._stream is not None

    # beginnings

    def _begin(self) -> Sequence[RecordBatch]:
        self._close_connections()
        self._connection = connect(self.config)
        server = Server(self._connection)
        mode = self.config.snapshot_mode.lower()
        if self._first:
            names = Catalog(server).tables()
            self._tell_missing(self._shapes.filters.missing(".".join(name) for name in names))
            captured = sum(self._shapes.is_captured(name) for name in names)
            self._guard(self.config.too_many(captured), fail=self.config.most_tables_action.lower() == "fail")
        position = self._offset
        known = bool(position) and not snapshot_pending(position)
        looked = known and self.config.check_position
        if looked and (reason := lost_because(server, position, self.config)) is not None:
            if mode != "when_needed":
                raise ConnectError(
                    f"the log after position {position.get('gtids') or position.get('file')} cannot be had any more: {reason}. "
                    "Set snapshot.mode=when_needed to read the tables again, or reset the connector's offsets"
                )
            known = False
        again = mode == "always" and self._first
        self._first = False
        if known and not again:
            return self._go_on(server, mode)
        if mode == "never":
            first = server.rows("SHOW BINARY LOGS")
            self._offset = {"file": str(first[0][0]), "pos": 4}
            self._start_stream(server)
            return []
        return self._take_snapshot(with_rows=mode not in ("no_data", "schema_only", "recovery", "schema_only_recovery"))

    def _go_on(self, server: Server, mode: str) -> Sequence[RecordBatch]:
        """Continue from an offset for which the history has the structure."""
        self._structure.tables.clear()
        self._structure.server_charset = Catalog(server).server_charset()
        if mode in ("recovery", "schema_only_recovery"):
            self._read_structure(server, self._offset, tell=False)
        elif not recover(self._history, self._structure, self.config, self._offset, mariadb=server.mariadb):
            if mode != "when_needed":
                raise ConnectError(
                    "the schema history has nothing of this connector at its position: it is lost or another one. Set "
                    "snapshot.mode=recovery once to read the structure from the server (no table may have been altered since then), "
                    "or when_needed to read the tables again"
                )
            return self._take_snapshot(with_rows=True)
        if mode == "initial_only":
            self._finished = True
        else:
            self._start_stream(server)
        return []

    def _read_structure(
        self, server: Server, position: Mapping[str, Any], *, tell: bool, keep: bool = True
    ) -> list[RecordBatch]:
        """Read the structure from the server; ``keep`` writes it to the history, ``tell`` makes records of it."""
        catalog = Catalog(server)
        names = [name for name in catalog.tables() if self._is_kept(name)]
        source = LogEntry(
            time.time_ns() // 1000, 0, None, str(position.get("file")), int(position.get("pos") or 0), None, None
        )
        databases = {
            n: c
            for n, c in catalog.databases().items()
            if not self.config.ignore_builtin or n.lower() not in SYSTEM_DATABASES
        }
        return self._changed.read_anew(
            databases, catalog.server_charset(), catalog.ddl(names), source, position, tell=tell, keep=keep
        )

    def _is_kept(self, name: tuple[str, str]) -> bool:
        """Whether the history contains a table at all."""
        config = self.config
        if name[0].lower() in SYSTEM_DATABASES or (
            config.history_databases_only and not config.database_is_meant(name[0])
        ):
            return False
        return not config.history_captured_only or self._shapes.is_captured(name)

    def _resumable(self, server: Server) -> bool:
        """Whether an unfinished snapshot can go on: log and history are still there from where its first attempt began."""
        if not snapshot_pending(self._offset) or tables_read(self._offset) is None:
            return False
        reason = lost_because(server, self._offset, self.config)
        if reason is None and not recover(
            self._history, Structure(), self.config, self._offset, mariadb=server.mariadb
        ):
            reason = "the schema history has nothing of it"
        if reason is not None:
            logger.warning("the snapshot begins anew", connector=self.context.connector, reason=reason)
        return reason is None

    def _take_snapshot(self, *, with_rows: bool) -> Sequence[RecordBatch]:
        config = self.config
        resumed = with_rows and self._resumable(Server(self._connection))
        before = (tables_read(self._offset) or frozenset()) if resumed else frozenset()
        if config.snapshot_delay_ms and self.context.stopping.wait(config.snapshot_delay_ms / 1000):
            return []
        catalog = Catalog(Server(self._connection))
        captured = [name for name in catalog.tables() if self._shapes.is_captured(name)]
        readers = Readers(config, config.snapshot_threads if with_rows else 1)
        try:
            moment = readers.open([quoted(name) for name in captured])
            offset = without_tables(self._offset)
            if not resumed:
                offset = self._position_of(moment) | {"snapshot": "INITIAL", "snapshot_completed": False}
            self._recovers = resumed
            told = self._read_structure(Server(self._connection), offset, tell=not resumed, keep=not resumed)
            if config.snapshot_locking.lower() != "extended":
                readers.unlock()
            rows = catalog.row_counts()
            if config.snapshot_order.lower() != "disabled":
                backwards = config.snapshot_order.lower() == "descending"
                captured.sort(key=lambda name: rows.get(name, 0), reverse=backwards)
            read = [n for n in captured if not config.is_signals(".".join(n)) and ".".join(n) not in before]
            shapes = [shape for name in read if (shape := self._shapes.get(name)) is not None]
        except BaseException:
            readers.close()
            raise
        self._done = {name: value for name, value in offset.items() if name not in ("snapshot", "snapshot_completed")}
        shapes = shapes if with_rows else []
        by_key = self._read_by_key(catalog, parts_read(self._offset) if resumed else {})
        self._snapshot = Snapshot(config, shapes, readers, moment, self._headers, self._origin, by_key)
        estimates = {".".join(name): rows.get(name) for name in captured}
        progress = SnapshotProgress(
            {name: estimates[name] for name in self._snapshot.tables}, before & estimates.keys()
        )
        self._offset = offset | progress.members()
        self._snapshot.start()
        pieces = self._snapshot.batches(self.context.stopping, offset, self._done, progress)
        tables = {shape.layout.topic: shape.table.full_name for shape in shapes}
        self._take_tables(pieces, tables, progress, in_order=config.snapshot_threads == 1)
        return [batch.replace(source_partition=self._partition, source_offset=dict(self._offset)) for batch in told]

    def _read_by_key(self, catalog: Catalog, parts: Mapping[str, Any]) -> dict[str, ByKey]:
        """The tables within which an interrupted snapshot can go on, and where. A row that gets another key is in the log as a whole,
        unless the log leaves out columns.
        """
        if not catalog.whole_rows_logged():
            return {}
        tables = {".".join(name): collations for name, collations in catalog.clustered().items()}
        return {name: ByKey(collations, parts.get(name)) for name, collations in tables.items()}

    def _position_of(self, moment: Moment) -> dict[str, Any]:
        made: dict[str, Any] = {"file": moment.file, "pos": moment.position, "ts_sec": moment.micros // 1_000_000}
        return made | ({"gtids": moment.gtids} if moment.gtids else {})

    def _end_snapshot(self) -> None:
        self._offset = self._done
        server = Server(self._connection)
        if self._recovers:
            self._structure.tables.clear()
            recover(self._history, self._structure, self.config, self._done, mariadb=server.mariadb)
        if not self._finished:
            self._start_stream(server)

    def _start_stream(self, server: Server) -> None:
        offset = self._offset
        file, pos = str(offset["file"]), int(offset.get("pos") or 4)
        gtids = None
        if offset.get("gtids"):
            gtids = gtid_set(str(offset["gtids"]), mariadb=server.mariadb)
        gtids_from = gtids
        if isinstance(gtids, MySqlGtids) and self.config.gtid_sources[0] is not None:
            # for excluded servers the log may have been purged: those transactions must not be requested
            gtids_from = gtids.united(server.purged())
        if gtids is None and server.mariadb:  # read by file and position first, and counted from there on
            gtids = gtid_set(str(server.value("SELECT BINLOG_GTID_POS(%s, %s)", file, pos) or ""), mariadb=True)
        start = Position(file, pos, gtids, int(offset.get("event") or 0), int(offset.get("row") or 0))
        self._stream = Binlog(self.config, mariadb=server.mariadb, file=file, position=pos, gtids=gtids_from)
        self._decoder = Decoder(self.config, self._shapes, self._headers, self._origin, start, self._changed.happened)
        self._decoder.checksummed(self._stream.checksummed)

    # changes

    def _current_offset(self) -> dict[str, Any]:
        return self._offset if self._decoder is None else self._decoder.offset

    def _changes(self) -> Changes:
        stream, decoder = self._stream, self._decoder
        assert stream is not None and decoder is not None
        deadline = time.monotonic() + self.config.poll_interval_ms / 1000
        limit, size = self.config.max_queue_size, 0
        most = self.config.batch_bytes(_BATCH_BYTES)
        feed, following = decoder.feed, stream.next
        try:
            while decoder.rows < limit and size < most:
                event = following(0)
                if event is None:
                    left = deadline - time.monotonic()
                    if decoder.rows or left <= 0 or self.context.stopping.is_set():
                        break
                    event = following(min(left, 0.1))
                    if event is None:
                        self._look_after(stream)
                        continue
                feed(event)
                size += len(event)
        except EOFError as error:
            raise RetriableConnectError(f"{self.config.hostname}:{self.config.port}: {error}") from error
        except pymysql.err.Error as error:
            self._explain(error)
            raise
        batches = decoder.take(self._offset)
        current = decoder.offset
        return Changes(batches, current if batches else self._offset, current, decoder.position)

    def _look_after(self, stream: Binlog) -> None:
        """Abandon a connection that has stopped responding."""
        config = self.config
        if config.keep_alive and stream.silent_s * 1000 > config.keep_alive_ms:
            raise RetriableConnectError(
                f"{config.hostname}:{config.port}: nothing came for {stream.silent_s:.0f} s, not even the server's heartbeats"
            )

    def _explain(self, error: pymysql.err.Error) -> None:
        """Add what to do about the errors with which a server ends its stream."""
        code, text = (error.args[0], str(error.args[-1])) if error.args else (0, "")
        if re.match(r"A (?:slave|replica) with the same server_(?:uuid/server_)?id\b", text):
            raise ConnectError(
                f"another reader has taken server id {self.config.reader_id}: give database.server.id a number that no server and no other "
                f"connector has ({text})"
            ) from error
        if code in _ENDED_BY_SERVER:
            raise ConnectError(
                f"the server does not deliver its log from here: {text}. Set snapshot.mode=when_needed to read the tables again"
            ) from error

    def _run(self, statement: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(statement)

    def _close_connections(self) -> None:
        if self._stream is not None:
            self._stream.close()
        if self._connection is not None:
            with suppress(Exception):  # closing fails on a lost connection
                self._connection._force_close()
        self._stream = self._connection = None

    def _abort(self) -> None:
        if self._stream is not None:
            self._stream.abort()
        if self._connection is not None:
            abort_mysql(self._connection)
        if self._snapshot is not None:
            self._snapshot.abort()


class MariaDbTask(MySqlTask):
    """Reads a MariaDB server's log."""

    connector = "mariadb"


class MySqlSource(SourceConnector[MySqlConfig]):
    """Runs ``io.debezium.connector.mysql.MySqlConnector``'s configurations."""

    config_class = MySqlConfig
    task_class = MySqlTask

    @classmethod
    def check(cls, config: MySqlConfig) -> Iterable[Problem]:
        try:
            yield from find_problems(config)
        except (pymysql.err.Error, OSError) as error:
            yield Problem("database.hostname", f"the server could not be looked at: {error}")
        except (ConnectError, RetriableConnectError) as error:
            yield Problem("database.hostname", str(error))

    @classmethod
    def preview_properties(cls, properties: Mapping[str, str]) -> Mapping[str, str]:
        """The rows of the tables; their structure is kept in memory, not in the connector's history."""
        kept = {key: value for key, value in properties.items() if key != "database.history"}
        history = {"schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory"}
        return {**kept, **history, "snapshot.mode": "initial_only", **_ALONE}

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        for partition, offset in offsets:
            if set(partition) != {"server"}:
                raise ConnectError(f'partition {dict(partition)} should be {{"server": "<topic.prefix>"}}')
            if offset is not None and not (isinstance(offset.get("file"), str) and isinstance(offset.get("pos"), int)):
                raise ConnectError(f"offset {dict(offset)} should have file, a name, and pos, a number")
        return True


class MariaDbSource(MySqlSource):
    """Runs ``io.debezium.connector.mariadb.MariaDbConnector``'s configurations."""

    config_class = MariaDbConfig
    task_class = MariaDbTask
