"""The PostgreSQL source: snapshot, then the log; one task, as a slot has one reader."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from typing import Any, Final

import psycopg
from psycopg import pq

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
from connectors.postgres.chunks import PostgresChunks
from connectors.postgres.config import PostgresConfig
from connectors.postgres.connections import ReplicationStream, abort, connect, database_errors
from connectors.postgres.decoding import Decoder
from connectors.postgres.large import WholeTransactions
from connectors.postgres.pieces import part_of
from connectors.postgres.setup import (
    Slot,
    SlotReader,
    drop_slot,
    find_problems,
    find_slot,
    make_publication,
    make_slot,
    set_identities,
)
from connectors.postgres.snapshot import Moment, Snapshot, exported
from connectors.postgres.tables import Catalog, Shapes, Table, captured

__all__ = ["PostgresSource", "PostgresTask"]

logger = get_logger(__name__)
_BATCH_BYTES: Final = 4 * 1024 * 1024
_MANY: Final = 100
_IN_USE: Final = "55006"
"""SQLSTATE of a slot that is in use by another reader."""
_LINGER_S: Final = 0.02
"""How long a batch waits for more changes when so many are available that more are likely."""


class PostgresTask(CaptureTask[PostgresConfig]):
    """Reads one replication slot."""

    connector = "postgresql"

    def __init__(self, config: PostgresConfig, context: Any) -> None:
        super().__init__(config, context)
        self._filters = Filters(config, database=config.database)
        self._shapes = Shapes(config, self._filters)
        self._connection: psycopg.Connection[Any] | None = None
        self._catalog: Catalog | None = None
        self._stream: ReplicationStream | None = None
        self._whole: WholeTransactions | None = None
        self._decoder: Decoder | None = None
        self._flushed: int | None = None
        self._slot_failures = 0
        self._slot_reader = SlotReader(config)
        self._next_xmin = 0.0
        self._ahead: bytes | None = None

    def _dataset(self, table: str) -> Dataset:
        config = self.config
        return Dataset(f"postgres://{config.hostname}:{config.port}", f"{config.database}.{table}")

    def _errors(self) -> AbstractContextManager[None]:
        return database_errors(self.config, "following")

    def _chunks(self) -> PostgresChunks:
        return PostgresChunks(self.config, self._shapes, self._headers, self.context.stopping)

    def _follows(self) -> bool:
        return self._stream is not None

    # beginnings

    def _begin(self) -> Sequence[RecordBatch]:
        config = self.config
        self._close_connections()
        self._connection = connection = connect(config)
        self._catalog = catalog = Catalog(connection)
        names = catalog.names()
        if self._first:
            self._tell_missing(self._filters.missing(f"{schema}.{name}" for _, schema, name in names))
        tables = catalog.tables(captured(names, self._filters, config))
        self._guard(config.too_many(len(tables)), fail=config.most_tables_action.lower() == "fail")
        mode = config.snapshot_mode.lower()
        if mode != "initial_only":  # which reads no changes
            set_identities(connection, config, tables)
            make_publication(connection, config, tables)
        slot = find_slot(connection, config)
        position = self._offset
        lost = bool(position) and not snapshot_pending(position) and self._is_lost(slot)
        if lost and mode != "when_needed":
            raise ConnectError(
                f"the log after position {position.get('lsn')} is not kept any more: replication slot {config.slot!r} "
                + ("is gone" if slot is None else "was made again, moved on or lost it")
                + ". Set snapshot.mode=when_needed to read the tables again, or reset the connector's offsets"
            )
        fresh = not position or snapshot_pending(position) or lost
        snapshots = (mode == "always" and self._first) or (fresh and mode not in ("no_data", "never", "schema_only"))
        self._first = False
        if snapshots:
            self._start_snapshot(slot, tables)
        elif mode == "initial_only":
            self._finished = True
        else:
            self._start_stream(slot)
        return []

    def _is_lost(self, slot: Slot | None) -> bool:
        """Whether the server has dropped log that this offset still needs: the slot is gone, was recreated, or was
        advanced.

        Usually no position beyond this offset was confirmed to the server. Where changes outside the captured tables
        may be confirmed, the slot can be ahead of the offset without any loss.
        """
        if not self.config.check_position:
            return False
        if slot is None or slot.lost:
            return True
        known = max(int(self._offset.get("lsn_commit") or 0), int(self._offset.get("lsn") or 0))
        return self.config.flushing != "connector_and_driver" and slot.restart > known

    def _resumable(self, slot: Slot | None) -> bool:
        """Whether an unfinished snapshot can go on: the slot still has all changes since its first attempt began."""
        if not snapshot_pending(self._offset) or tables_read(self._offset) is None:
            return False
        if self.config.snapshot_mode.lower() == "initial_only":
            return True  # no changes are wanted
        if slot is not None and not slot.lost and slot.confirmed <= int(self._offset.get("lsn") or 0):
            return True
        logger.warning(
            "the snapshot begins anew, as its replication slot is gone or has moved on",
            connector=self.context.connector,
            slot=self.config.slot,
        )
        return False

    def _start_snapshot(self, slot: Slot | None, tables: Sequence[Table]) -> None:
        config = self.config
        assert self._connection is not None
        resumed = self._resumable(slot)
        before = (tables_read(self._offset) or frozenset()) if resumed else frozenset()
        if config.snapshot_delay_ms and self.context.stopping.wait(config.snapshot_delay_ms / 1000):
            return
        holder: pq.abc.PGconn | None = None
        exporter: psycopg.Connection[Any] | None = None
        try:
            if slot is None and config.snapshot_mode.lower() != "initial_only":
                made, holder = make_slot(config, self._connection.info.server_version)
                row = self._connection.execute(
                    "SELECT txid_current()::int8, extract(epoch FROM now())::float8"
                ).fetchone()
                assert row is not None
                moment = Moment(made.snapshot or "", made.confirmed, row[0], int(row[1] * 1_000_000))
            else:
                # the slot is older: changes from its position on are delivered again, and lead to the tables' current
                # state
                moment, exporter = exported(config, slot.confirmed if slot is not None and not resumed else None)
            captured_names = {table.full_name for table in tables}
            tables = [t for t in tables if not config.is_signals(t.full_name) and t.full_name not in before]
            rows = self._look().row_counts([table.oid for table in tables])
            if config.snapshot_order.lower() != "disabled":
                backwards = config.snapshot_order.lower() == "descending"
                tables = sorted(tables, key=lambda table: rows[table.oid], reverse=backwards)
            shapes = [self._shapes.of(table) for table in tables]
            told = parts_read(self._offset) if resumed else {}
            parts = {name: part for name, value in told.items() if (part := part_of(value)) is not None}
            self._snapshot = Snapshot(config, shapes, moment, self._headers, parts)
            self._snapshot.start()
        finally:
            if holder is not None:
                holder.finish()
            if exporter is not None:
                exporter.close()
        offset = without_tables(self._offset)
        if not resumed:
            offset = {
                "snapshot": "INITIAL",
                "snapshot_completed": False,
                "last_snapshot_record": False,
                "lsn": moment.lsn,
                "txId": moment.xid,
                "ts_usec": moment.micros,
            }
        estimates = {t.full_name: int(rows[t.oid]) if rows[t.oid] >= 0 else None for t in tables}
        read = {name: estimates[name] for name in self._snapshot.tables}
        progress = SnapshotProgress(read, before & captured_names)
        self._offset = {**offset, **progress.members()}
        pieces = self._snapshot.batches(self.context.stopping, offset, progress)
        names = {shape.layout.topic: shape.table.full_name for shape in shapes}
        self._take_tables(pieces, names, progress, in_order=config.snapshot_threads == 1)

    def _end_snapshot(self) -> None:
        self._offset = {**without_tables(self._offset), "snapshot_completed": True, "last_snapshot_record": True}

    def _start_stream(self, slot: Slot | None) -> None:
        config = self.config
        assert self._connection is not None
        if slot is None:
            made, holder = make_slot(config, self._connection.info.server_version)
            holder.finish()
            slot = made
        start = self._offset.get("lsn_commit") or self._offset.get("lsn") or slot.confirmed
        version = self._connection.info.server_version
        options = {"proto_version": "1", "publication_names": '"' + config.publication.replace('"', '""') + '"'}
        if version >= 140000:
            options |= {"proto_version": "2", "streaming": "on", "messages": "true"}
        for part in filter(None, (p.strip() for p in (config.slot_params or "").split(";"))):
            name, _, value = part.partition("=")
            options[name.strip()] = value.strip()
        try:
            self._stream = ReplicationStream(config, int(start), options)
        except psycopg.OperationalError as error:
            if error.sqlstate != _IN_USE:
                raise
            self._slot_failures += 1
            if self._slot_failures > config.slot_retries:
                raise ConnectError(
                    f"replication slot {config.slot!r} is taken: {str(error).strip()}. Stop the other reader, or give a slot.name of its own"
                ) from error
            self._slot_reader.end_silent(self._connection)
            self.context.stopping.wait(config.slot_retry_delay_ms / 1000)
            self._slot_reader.end_silent(self._connection)
            raise
        self._slot_failures = 0
        self._ahead = None
        self._whole = WholeTransactions(self._stream)
        self._decoder = Decoder(config, self._shapes, self._look, self._headers, self._offset or {"lsn": int(start)})

    def _look(self) -> Catalog:
        assert self._catalog is not None
        return self._catalog

    # changes

    def _current_offset(self) -> dict[str, Any]:
        return self._offset if self._decoder is None else dict(self._decoder.offset)

    def _changes(self) -> Changes:
        stream, whole, decoder = self._stream, self._whole, self._decoder
        assert stream is not None and whole is not None and decoder is not None
        deadline = time.monotonic() + self.config.poll_interval_ms / 1000
        limit, size = self.config.max_queue_size, 0
        most = self.config.batch_bytes(_BATCH_BYTES)
        lingering = 0.0
        self._refresh_xmin(decoder)
        take_next, feed = whole.next, decoder.feed
        message = self._ahead or take_next()
        self._ahead = None
        while True:
            if message is None:
                stream.tell(self._tellable())
                now = time.monotonic()
                if decoder.rows >= _MANY and not lingering:
                    lingering = min(deadline, now + _LINGER_S)
                left = (lingering if decoder.rows else deadline) - now
                if left <= 0 or self.context.stopping.is_set():
                    break
                stream.wait(min(left, 0.1))
            else:
                if (decoder.rows >= limit or size >= most) and decoder.at_boundary(message):
                    self._ahead = message
                    break
                feed(message)
                size += len(message)
            message = take_next()
        stream.tell(self._tellable())
        if message is None and not decoder.in_transaction and self._ahead is None:
            decoder.caught_up(stream.server_lsn)
        batches = decoder.take(self._offset or {"lsn": decoder.done_lsn})
        current = dict(decoder.offset)
        return Changes(batches, current if batches else self._offset, current, decoder.done_lsn)

    def _refresh_xmin(self, decoder: Decoder) -> None:
        interval = self.config.xmin_interval_ms / 1000
        if not interval or time.monotonic() < self._next_xmin:
            return
        self._next_xmin = time.monotonic() + interval
        assert self._connection is not None
        row = self._connection.execute(
            "SELECT catalog_xmin::text::int8 FROM pg_replication_slots WHERE slot_name = %s", [self.config.slot]
        ).fetchone()
        decoder.xmin = None if row is None else row[0]

    def _run(self, statement: str) -> None:
        if self._connection is not None:
            self._connection.execute(statement.encode())

    def _tellable(self) -> int | None:
        """The position up to which the server may discard its log."""
        mode = self.config.flushing
        if mode == "manual":
            return None
        decoder = self._decoder
        quiet = decoder is not None and not decoder.rows and not decoder.in_transaction
        done = self._flushed is None or self._flushed >= int(self._offset.get("lsn_commit") or 0)
        if decoder is not None and mode == "connector_and_driver" and quiet and done:
            return decoder.done_lsn
        return self._flushed

    def committed(self, offsets: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        super().committed(offsets)
        for _, offset in offsets:
            if not snapshot_pending(offset):
                self._flushed = int(offset.get("lsn_commit") or offset.get("lsn") or 0) or self._flushed

    def _close_connections(self) -> None:
        for part in (self._whole, self._stream, self._connection):
            if part is not None:
                with suppress(Exception):  # closing fails on a lost connection
                    part.close()
        self._whole = self._stream = self._connection = None
        self._ahead = None

    def _abort(self) -> None:
        if self._stream is not None:
            self._stream.abort()
        if self._connection is not None:
            abort(self._connection.pgconn)
        if self._snapshot is not None:
            self._snapshot.abort()

    def _clean_up(self) -> None:
        if not self.config.slot_drop:
            return
        try:
            with connect(self.config) as connection:
                drop_slot(connection, self.config.slot)
        except psycopg.Error as error:
            logger.warning(
                "the replication slot could not be dropped", slot=self.config.slot, problem=str(error).strip()
            )


class PostgresSource(SourceConnector[PostgresConfig]):
    """Runs ``io.debezium.connector.postgresql.PostgresConnector``'s configurations."""

    config_class = PostgresConfig
    task_class = PostgresTask

    @classmethod
    def check(cls, config: PostgresConfig) -> Iterable[Problem]:
        try:
            yield from find_problems(config)
        except psycopg.Error as error:
            yield Problem("database.hostname", f"the server could not be looked at: {str(error).strip()}")
        except (ConnectError, RetriableConnectError) as error:
            yield Problem("database.hostname", str(error))

    @classmethod
    def preview_properties(cls, properties: Mapping[str, str]) -> Mapping[str, str]:
        """The rows of the tables, without a slot or a publication, which would stay; the slot of a connector that runs stays."""
        return {
            **properties,
            "snapshot.mode": "initial_only",
            "slot.drop.on.stop": "false",
            "heartbeat.interval.ms": "0",
            "signal.enabled.channels": "source",
        }

    @classmethod
    def alter_offsets(cls, properties: Mapping[str, str], offsets: OffsetChanges) -> bool:
        for partition, offset in offsets:
            if set(partition) != {"server"}:
                raise ConnectError(f'partition {dict(partition)} should be {{"server": "<topic.prefix>"}}')
            if offset is not None and not isinstance(offset.get("lsn"), int):
                raise ConnectError(f"offset {dict(offset)} should have lsn, a number")
        return False
