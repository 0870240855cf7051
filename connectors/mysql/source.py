"""The MySQL and MariaDB sources: snapshot, then the binary log; one task, as the log is one stream."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

import pymysql

from connect.api import (
    ConnectError,
    OffsetChanges,
    Problem,
    RecordBatch,
    RetriableConnectError,
    SourceConnector,
    SourceTask,
)
from connectors.debezium.events import ContextHeaders, heartbeat
from connectors.debezium.filters import Filters
from connectors.mysql.binlog.gtid import gtid_set
from connectors.mysql.catalog import Catalog
from connectors.mysql.changes import Origin, Place
from connectors.mysql.config import SYSTEM_DATABASES, MariaDbConfig, MySqlConfig
from connectors.mysql.connections import Binlog, Server, connect, database_errors
from connectors.mysql.decoding import Decoder
from connectors.mysql.history import recover
from connectors.mysql.history_stores import History, history_of
from connectors.mysql.position import Position
from connectors.mysql.schema_changes import SchemaChanges
from connectors.mysql.setup import find_problems, lost_because
from connectors.mysql.snapshot import Moment, Readers, Snapshot
from connectors.mysql.structure import Structure, quoted
from connectors.mysql.tables import Shapes, source_schema
from tidegate.kit.logs import logger

__all__ = ["MariaDbSource", "MariaDbTask", "MySqlSource", "MySqlTask"]

log = logger(__name__)
_BATCH_BYTES: Final = 4 * 1024 * 1024
_STOP_S: Final = 10.0
_ENDED_BY_SERVER: Final = frozenset({1236, 1227, 1218})


def _snapshot_pending(offset: Mapping[str, Any]) -> bool:
    """Whether a position, ours or the original's of any version, was written before its snapshot was complete."""
    return bool(offset.get("snapshot")) and not offset.get("snapshot_completed")


class MySqlTask(SourceTask[MySqlConfig]):
    """Reads one server's log."""

    connector: ClassVar[str] = "mysql"

    def __init__(self, config: MySqlConfig, context: Any) -> None:
        super().__init__(config, context)
        self._partition = {"server": config.prefix}
        self._origin = Origin(self.connector, config.prefix, source_schema(self.connector).arrow_type)
        self._headers = ContextHeaders(config.prefix, self.connector, context.task, enabled=config.extended_headers)
        self._history: History = history_of(config, context.kafka)
        self._structure = Structure()
        self._shapes = Shapes(config, Filters(config), self._structure, self.connector)
        self._changes = SchemaChanges(config, self._structure, self._shapes, self._history, self._origin, self._headers)
        self._connection: Any = None
        self._stream: Binlog | None = None
        self._decoder: Decoder | None = None
        self._snapshot: Snapshot | None = None
        self._pieces: Iterator[list[RecordBatch]] | None = None
        self._offset: dict[str, Any] = {}
        self._finished = False
        self._first = True
        self._next_heartbeat = 0.0
        self._busy = threading.Lock()
        """Held while a connection is used: ``stop`` comes from another thread."""

    def start(self) -> None:
        self._offset = dict(self.context.offset(self._partition) or {})
        self._next_heartbeat = time.monotonic() + self.config.heartbeat_interval_ms / 1000

    def poll(self) -> Sequence[RecordBatch]:
        if self._finished:
            self.context.stopping.wait(self.config.poll_interval_ms / 1000)
            return []
        try:
            with self._busy, database_errors(self.config, "following"):
                if self._pieces is not None:
                    return self._next_piece()
                if self._stream is None:
                    return self._begin()
                return self._read()
        except BaseException:
            with self._busy:
                self._disconnect()
            raise

    # beginnings

    def _begin(self) -> Sequence[RecordBatch]:
        self._disconnect()
        self._connection = connect(self.config)
        server = Server(self._connection)
        mode = self.config.snapshot_mode.lower()
        position = self._offset
        known = bool(position) and not _snapshot_pending(position)
        if known and (reason := lost_because(server, position)) is not None:
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
        """From a position whose structure the history has."""
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

    def _read_structure(self, server: Server, position: Mapping[str, Any], *, tell: bool) -> list[RecordBatch]:
        catalog = Catalog(server)
        names = [name for name in catalog.tables() if self._is_kept(name)]
        place = Place(
            time.time_ns() // 1000, 0, None, str(position.get("file")), int(position.get("pos") or 0), None, None
        )
        databases = {
            n: c
            for n, c in catalog.databases().items()
            if not self.config.ignore_builtin or n.lower() not in SYSTEM_DATABASES
        }
        return self._changes.read_anew(
            databases, catalog.server_charset(), catalog.ddl(names), place, position, tell=tell
        )

    def _is_kept(self, name: tuple[str, str]) -> bool:
        """Whether the history has a table at all."""
        config = self.config
        if name[0].lower() in SYSTEM_DATABASES or (
            config.history_databases_only and not config.database_is_meant(name[0])
        ):
            return False
        return not config.history_captured_only or self._shapes.is_captured(name)

    def _take_snapshot(self, *, with_rows: bool) -> Sequence[RecordBatch]:
        config = self.config
        if config.snapshot_delay_ms and self.context.stopping.wait(config.snapshot_delay_ms / 1000):
            return []
        catalog = Catalog(Server(self._connection))
        captured = [name for name in catalog.tables() if self._shapes.is_captured(name)]
        readers = Readers(config, config.snapshot_threads if with_rows else 1)
        try:
            moment = readers.open([quoted(name) for name in captured])
            done = self._position_of(moment)
            self._offset = done | {"snapshot": "INITIAL", "snapshot_completed": False}
            told = self._read_structure(Server(self._connection), self._offset, tell=True)
            if config.snapshot_locking.lower() != "extended":
                readers.unlock()
            shapes = [shape for name in captured if (shape := self._shapes.get(name)) is not None]
        except BaseException:
            readers.close()
            raise
        told = [batch.replace(source_partition=self._partition, source_offset=dict(self._offset)) for batch in told]
        log.info(
            "a snapshot begins",
            connector=self.context.connector,
            tables=len(shapes),
            file=moment.file,
            pos=moment.position,
        )
        self._snapshot = Snapshot(config, shapes if with_rows else [], readers, moment, self._headers, self._origin)
        self._snapshot.start()
        self._pieces = self._snapshot.batches(self.context.stopping, dict(self._offset), done)
        return told

    def _position_of(self, moment: Moment) -> dict[str, Any]:
        made: dict[str, Any] = {"file": moment.file, "pos": moment.position, "ts_sec": moment.micros // 1_000_000}
        return made | ({"gtids": moment.gtids} if moment.gtids else {})

    def _next_piece(self) -> Sequence[RecordBatch]:
        assert self._pieces is not None and self._snapshot is not None
        batches = next(self._pieces, None)
        if batches is not None:
            return batches
        self._pieces = None
        self._snapshot.close()
        self._snapshot = None
        if self.context.stopping.is_set():
            return []
        self._offset = {n: v for n, v in self._offset.items() if n not in ("snapshot", "snapshot_completed")}
        log.info("the snapshot is complete", connector=self.context.connector)
        if self.config.snapshot_mode.lower() == "initial_only":
            self._finished = True
        else:
            self._start_stream(Server(self._connection))
        return []

    def _start_stream(self, server: Server) -> None:
        offset = self._offset
        file, pos = str(offset["file"]), int(offset.get("pos") or 4)
        gtids = None
        if offset.get("gtids"):
            gtids = gtid_set(str(offset["gtids"]), mariadb=server.mariadb)
        wanted = gtids
        if gtids is None and server.mariadb:  # read by file and position, and counted from there on
            gtids = gtid_set(str(server.value("SELECT BINLOG_GTID_POS(%s, %s)", file, pos) or ""), mariadb=True)
        start = Position(file, pos, gtids, int(offset.get("event") or 0), int(offset.get("row") or 0))
        self._stream = Binlog(self.config, mariadb=server.mariadb, file=file, position=pos, gtids=wanted)
        self._decoder = Decoder(self.config, self._shapes, self._headers, self._origin, start, self._changes.happened)
        self._decoder.checksummed(self._stream.checksummed)

    # changes

    def _read(self) -> Sequence[RecordBatch]:
        stream, decoder = self._stream, self._decoder
        assert stream is not None and decoder is not None
        deadline = time.monotonic() + self.config.poll_interval_ms / 1000
        limit, size = self.config.max_queue_size, 0
        feed, following = decoder.feed, stream.next
        try:
            while decoder.rows < limit and size < _BATCH_BYTES:
                event = following(0)
                if event is None:
                    left = deadline - time.monotonic()
                    if decoder.rows or left <= 0 or self.context.stopping.is_set():
                        break
                    event = following(min(left, 0.1))
                    if event is None:
                        continue
                feed(event)
                size += len(event)
        except EOFError as error:
            raise RetriableConnectError(f"{self.config.hostname}:{self.config.port}: {error}") from error
        except pymysql.err.Error as error:
            self._explain(error)
            raise
        batches = decoder.take(self._offset)
        if batches:
            self._offset = decoder.offset
        return [*batches, *self._heartbeat(decoder)]

    def _explain(self, error: pymysql.err.Error) -> None:
        """Say what to do about the errors with which a server ends its stream."""
        code, text = (error.args[0], str(error.args[-1])) if error.args else (0, "")
        if "same server_uuid/server_id" in text or "same server_id" in text:
            raise ConnectError(
                f"another reader has taken server id {self.config.reader_id}: give database.server.id a number that no server and no other "
                f"connector has ({text})"
            ) from error
        if code in _ENDED_BY_SERVER:
            raise ConnectError(
                f"the server does not deliver its log from here: {text}. Set snapshot.mode=when_needed to read the tables again"
            ) from error

    def _heartbeat(self, decoder: Decoder) -> list[RecordBatch]:
        interval = self.config.heartbeat_interval_ms / 1000
        if not interval or time.monotonic() < self._next_heartbeat:
            return []
        self._next_heartbeat = time.monotonic() + interval
        if self.config.heartbeat_query and self._connection is not None:
            with self._connection.cursor() as cursor:
                cursor.execute(self.config.heartbeat_query)
        self._offset = decoder.offset
        topic = f"{self.config.heartbeat_prefix}{self.config.delimiter}{self.config.prefix}"
        return [heartbeat(topic, self.config.prefix, self._partition, self._offset)]

    def _disconnect(self) -> None:
        for part in (self._stream, self._snapshot):
            if part is not None:
                part.close()
        if self._connection is not None:
            with suppress(Exception):  # one that was lost cannot say goodbye
                self._connection._force_close()
        self._stream = self._snapshot = self._connection = self._pieces = None

    def stop(self) -> None:
        """The poll that may run ends by itself: it looks at ``stopping`` ten times a second."""
        if not self._busy.acquire(timeout=_STOP_S):
            log.warning("a statement did not end in time", connector=self.context.connector)
            return
        try:
            self._disconnect()
        finally:
            self._busy.release()


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
