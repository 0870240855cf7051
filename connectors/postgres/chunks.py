"""Chunks of incremental snapshots, and blocking snapshots, read over separate connections."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import psycopg
import pyarrow as pa
from psycopg import sql

from connect.api import MAX_BATCH_BYTES, DataError, RecordBatch
from connectors.debezium.events import ContextHeaders, constant
from connectors.debezium.incremental.progress import TablePart, unknown_table
from connectors.debezium.incremental.windows import Chunk
from connectors.debezium.javaobjects import JavaInt
from connectors.debezium.signals.signal import SnapshotRequest
from connectors.debezium.snapshot_progress import SnapshotProgress
from connectors.postgres.config import PostgresConfig
from connectors.postgres.connections import ArrowConnection, connect, database_errors, lsn_number
from connectors.postgres.snapshot import Moment, Snapshot, exported, read_batch, select_list
from connectors.postgres.tables import Catalog, Shape, Shapes, captured

__all__ = ["PostgresChunks"]

_INTEGERS: Final = {"int2": JavaInt, "int4": JavaInt, "int8": int, "oid": int}
"""Keys of these types are stored in an offset as numbers, others as texts."""
_END: Final = (
    "SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_insert_lsn() END)::text, "
    "(extract(epoch FROM now()) * 1000000)::int8"
)


class PostgresChunks:
    """Marks are written to the signal table; with ``read.only`` a chunk ends once the stream reaches the log's end as
    it was after the chunk.
    """

    def __init__(
        self, config: PostgresConfig, shapes: Shapes, headers: ContextHeaders, stopping: threading.Event
    ) -> None:
        self._config, self._shapes, self._headers, self._stopping = config, shapes, headers, stopping
        self._plain: psycopg.Connection[Any] | None = None
        self._arrow: ArrowConnection | None = None
        self._snapshot: Snapshot | None = None

    def _connection(self) -> psycopg.Connection[Any]:
        if self._plain is None:
            self._plain = connect(self._config)
        return self._plain

    def captured(self) -> Sequence[str]:
        return [name for name in self._names() if not self._config.is_signals(name)]

    def _names(self) -> dict[str, int]:
        with database_errors(self._config, "looking for tables of"):
            names = Catalog(self._connection()).names()
        meant = set(captured(names, self._shapes.filters, self._config))
        return {f"{schema}.{name}": oid for oid, schema, name in names if oid in meant}

    def _shape(self, part: TablePart) -> tuple[Shape, list[str]]:
        """The table in its current structure, and the columns that it is read by."""
        oid = self._names().get(part.table)
        tables = Catalog(self._connection()).tables([oid]) if oid is not None else []
        if not tables:
            raise unknown_table(part)
        keys = part.read_by(tables[0].key)
        if missing := [key for key in keys if key not in {column.name for column in tables[0].columns}]:
            raise DataError(f"table {part.table} has no column {missing[0]!r} to be read by")
        return self._shapes.of(tables[0]), keys

    def _key(self, shape: Shape, keys: Sequence[str], texts: Sequence[str | None]) -> tuple[Any, ...]:
        types = {column.name: column.type.name for column in shape.table.columns}
        if None in texts:
            raise DataError(f"table {shape.table.full_name} has nulls in {', '.join(keys)}: it cannot be read by them")
        return tuple(_INTEGERS.get(types[key], str)(text or "") for key, text in zip(keys, texts, strict=True))

    def maximum(self, part: TablePart) -> tuple[Any, ...] | None:
        shape, keys = self._shape(part)
        names = _columns(keys)
        texts = ", ".join(f"{name}::text" for name in names)
        order = ", ".join(f"{name} DESC NULLS LAST" for name in names)
        where = f"WHERE ({part.condition})" if part.condition else ""
        query = f"SELECT {texts} FROM {shape.table.quoted} chunked {where} ORDER BY {order} LIMIT 1"
        with database_errors(self._config, f"reading {part.table} of"):
            row = self._connection().execute(query.encode()).fetchone()
        return None if row is None else self._key(shape, keys, row)

    def read(self, part: TablePart, after: tuple[Any, ...] | None, maximum: tuple[Any, ...], size: int) -> Chunk | None:
        shape, keys = self._shape(part)
        names = ", ".join(_columns(keys))

        def bound(operator: str, key: Sequence[Any]) -> str:
            values = ", ".join(sql.Literal(str(value)).as_string(None) for value in key)
            return f"({names}) {operator} ({values})"

        bounds = [bound("<=", maximum)]
        if after is not None:
            bounds.append(bound(">", after))
        if part.condition:
            bounds.append(f"({part.condition})")
        columns = ", ".join([*filter(None, [select_list(shape)]), *(f"{name}::text" for name in _columns(keys))])
        query = f"SELECT {columns} FROM {shape.table.quoted} chunked WHERE {' AND '.join(bounds)} ORDER BY {names} LIMIT {size}"
        with database_errors(self._config, f"reading a chunk of {part.table} of"):
            block = self._block(query)
            row = self._connection().execute(_END.encode()).fetchone()
        if block is None or row is None:
            return None
        width = len(shape.forms)
        last = self._key(shape, keys, [column[-1].as_py() for column in block.columns[width:]])
        lsn = lsn_number(row[0])
        marks = constant("incremental", pa.string(), block.num_rows)
        moment = Moment("", lsn, None, row[1])
        batch = read_batch(self._config, shape, block.select(list(range(width))), moment, marks, self._headers)
        return Chunk(batch, last, lsn if self._config.read_only else None)

    def _block(self, query: str) -> pa.RecordBatch | None:
        """The result of a query, cut off where it would have too many bytes."""
        if self._arrow is None:
            self._arrow = ArrowConnection(self._config)
        blocks: list[pa.RecordBatch] = []
        for block in self._arrow.select(query):
            blocks.append(block)
            if sum(piece.nbytes for piece in blocks) >= MAX_BATCH_BYTES:
                break
        table = pa.Table.from_batches(blocks).combine_chunks().to_batches() if blocks else []
        return table[0] if table and table[0].num_rows else None

    def retry_position(self, part: TablePart) -> None:
        """Never: tables are read with their current structure, whatever structure the stream knows."""

    def mark(self, mark_id: str, kind: str, data: Mapping[str, Any]) -> None:
        config = self._config
        if config.read_only or config.signal_collection is None:
            if not config.read_only:
                raise DataError("there is no table of signals to mark chunks in: set signal.data.collection")
            return
        table = sql.Identifier(*config.signal_collection.split(".", 1))
        with database_errors(config, f"marking a chunk in {config.signal_collection} of"):
            if kind.endswith("close") and config.watermarking.upper() == "INSERT_DELETE":
                opened = mark_id.removesuffix("-close") + "-open"
                self._connection().execute(sql.SQL("DELETE FROM {} WHERE id = %s").format(table), [opened])
                return
            statement = sql.SQL("INSERT INTO {} VALUES (%s, %s, %s)").format(table)
            self._connection().execute(statement, [mark_id, kind, json.dumps(data)])

    def whole(
        self, tables: Sequence[str], request: SnapshotRequest, offset: Mapping[str, Any]
    ) -> Iterator[list[RecordBatch]]:
        """The current rows; changes from the stream's position on are delivered again after them, and lead to the same
        final state.
        """
        oids = self._names()
        tables_ = Catalog(self._connection()).tables([oids[name] for name in tables if name in oids])
        chosen = {name: text for name in tables if (text := request.condition(name))}
        config = replace(self._config, snapshot_tables=[], snapshot_selects=chosen)
        with database_errors(config, "reading tables of"):
            moment, exporter = exported(config)
            with exporter:
                self._snapshot = Snapshot(config, [self._shapes.of(table) for table in tables_], moment, self._headers)
                self._snapshot.start()
            progress = SnapshotProgress(dict.fromkeys(self._snapshot.tables))
            for batches in self._snapshot.batches(self._stopping, dict(offset), progress):
                yield [batch.replace(source_offset=dict(offset)) for batch in batches]
            self._snapshot.close()
            self._snapshot = None

    def close(self) -> None:
        for part in (self._snapshot, self._plain, self._arrow):
            if part is not None:
                part.close()
        self._snapshot = self._plain = self._arrow = None


def _columns(names: Sequence[str]) -> list[str]:
    """Columns qualified with the table, so that selected expressions with the same names do not hide them."""
    return ['chunked."' + name.replace('"', '""') + '"' for name in names]
