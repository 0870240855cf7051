"""Chunks of incremental snapshots, and blocking snapshots, read over separate connections.

A chunk is read with the table structure at the stream's position in the log. If the table has been altered on the
server since then, the chunk is discarded and read again after the stream has passed the alteration.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa

from connect.api import MAX_BATCH_BYTES, DataError, RecordBatch
from connectors.debezium.events import ContextHeaders, constant
from connectors.debezium.incremental.progress import TablePart, unknown_table
from connectors.debezium.incremental.windows import Chunk
from connectors.debezium.javaobjects import JavaInt
from connectors.debezium.signals.signal import SnapshotRequest
from connectors.debezium.snapshot_progress import SnapshotProgress
from connectors.mysql.catalog import Catalog
from connectors.mysql.changes import Origin
from connectors.mysql.config import MySqlConfig
from connectors.mysql.connections import Server, connect, database_errors
from connectors.mysql.ddl import apply
from connectors.mysql.position import place_number
from connectors.mysql.snapshot import Moment, Readers, Snapshot, converted, read_batch, select_list
from connectors.mysql.structure import Column, Structure, TableName, quoted
from connectors.mysql.tables import Shape, Shapes
from connectors.sql.mysql_rows import StreamedRows

__all__ = ["MySqlChunks"]

_SMALL: Final = frozenset({"TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "YEAR"})
_NUMBERS: Final = _SMALL | {"BIGINT", "DECIMAL", "NUMERIC", "DEC", "FIXED"}
_INEXACT: Final = frozenset({"FLOAT", "DOUBLE", "REAL"})
_BY_NUMBER: Final = frozenset({"ENUM", "SET", "BIT"})
"""The server sorts them by their numbers, and compares them with texts by their labels."""


@dataclass(frozen=True, slots=True)
class _Key:
    """A column that a table is read by: the expressions to sort and compare by and to convert its value to text, and
    its kind.
    """

    order: str
    text: str
    kind: str
    signed: bool

    @classmethod
    def of(cls, column: Column) -> _Key:
        """Raises DataError for a column whose values have no exact text form."""
        kind, name = column.type.split()[0].upper(), "`" + column.name.replace("`", "``") + "`"
        if kind in _INEXACT:
            raise DataError(f"column {column.name!r} is a {kind}, which is not exact: name another in surrogate-key")
        order = f"({name} + 0)" if kind in _BY_NUMBER else name
        is_bytes = "BINARY" in kind or "BLOB" in kind or (column.charset or "").lower() == "binary"
        text = f"HEX({name})" if is_bytes else f"CAST({order} AS CHAR)"
        return cls(order, text, "BYTES" if is_bytes else kind, "UNSIGNED" not in column.type.upper())

    def value(self, text: str) -> Any:
        """The form of a value in an offset: integers as numbers of Java's size, others as texts."""
        if self.kind in _SMALL and (self.signed or self.kind not in ("INT", "INTEGER")):
            return JavaInt(text)
        if self.kind in _SMALL or (self.kind == "BIGINT" and self.signed):
            return int(text)
        return text

    def literal(self, connection: Any, value: Any) -> str:
        if self.kind == "BYTES":
            return f"x'{bytes.fromhex(str(value)).hex()}'"
        if self.kind in _NUMBERS | _BY_NUMBER:
            text = str(value)
            if not text.lstrip("-").replace(".", "", 1).isdecimal():
                raise DataError(f"{text[:40]!r} is no number")
            return text
        return str(connection.escape(str(value)))


class MySqlChunks:
    """Marks are written to the signal table; with ``read.only`` a chunk ends once the stream reaches the log's end as
    it was after the chunk.
    """

    def __init__(
        self, config: MySqlConfig, shapes: Shapes, origin: Origin, headers: ContextHeaders, stopping: threading.Event
    ) -> None:
        self._config, self._shapes, self._origin = config, shapes, origin
        self._headers, self._stopping = headers, stopping
        self._opened: Any = None
        self._snapshot: Snapshot | None = None
        self._failed: dict[str, Shape | None] = {}
        """Maps a table to the shape with which reading it failed."""

    def _connection(self) -> Any:
        if self._opened is None:
            self._opened = connect(self._config)
        return self._opened

    def captured(self) -> Sequence[str]:
        return [name for parts in self._names() if not self._config.is_signals(name := ".".join(parts))]

    def _names(self) -> list[TableName]:
        with database_errors(self._config, "looking for tables of"):
            return [name for name in Catalog(Server(self._connection())).tables() if self._shapes.is_captured(name)]

    def _known(self, part: TablePart) -> Shape | None:
        database, _, table = part.table.partition(".")
        return self._shapes.get((database, table))

    def _shape(self, part: TablePart) -> tuple[Shape, list[_Key]]:
        """The table at the stream's position, and the columns that it is read by."""
        shape = self._known(part)
        if shape is None:
            raise unknown_table(part)
        table = shape.table
        names = part.read_by(table.key_columns)
        columns = [table.column(name) for name in names]
        if missing := [name for name, column in zip(names, columns, strict=True) if column is None]:
            raise DataError(f"table {part.table} has no column {missing[0]!r} to be read by")
        return shape, [_Key.of(column) for column in columns if column is not None]

    def maximum(self, part: TablePart) -> tuple[Any, ...] | None:
        shape, keys = self._shape(part)
        order = ", ".join(f"{key.order} DESC" for key in keys)
        where = f" WHERE ({part.condition})" if part.condition else ""
        query = f"SELECT {_texts(keys)} FROM {shape.table.quoted}{where} ORDER BY {order} LIMIT 1"
        with database_errors(self._config, f"reading {part.table} of"):
            rows = Server(self._connection()).rows(query)
        return _values(part, keys, rows[0]) if rows else None

    def read(self, part: TablePart, after: tuple[Any, ...] | None, maximum: tuple[Any, ...], size: int) -> Chunk | None:
        shape, keys = self._shape(part)
        bounds = [self._bound(keys, "<", maximum, inclusive=True)]
        if after is not None:
            bounds.append(self._bound(keys, ">", after))
        if part.condition:
            bounds.append(f"({part.condition})")
        selected = ", ".join([*filter(None, [select_list(shape)]), _texts(keys)])
        order = ", ".join(key.order for key in keys)
        query = (
            f"SELECT {selected} FROM {shape.table.quoted} WHERE {' AND '.join(bounds)} ORDER BY {order} LIMIT {size}"
        )
        with database_errors(self._config, f"reading a chunk of {part.table} of"):
            columns = self._block(query)
            server = Server(self._connection())
            file, position, _ = server.position()
            micros = int(server.value("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)"))
        if not len(columns[0]):
            return None
        width = len(shape.forms)
        last = _values(part, keys, [_decoded(column[-1].as_py()) for column in columns[width:]])
        marks = constant("incremental", pa.string(), len(columns[0]))
        moment = Moment(file, position, "", micros)
        batch = read_batch(shape, converted(shape, columns[:width]), moment, marks, self._origin, self._headers)
        return Chunk(batch, last, self._ends_at(file, position), lambda: self._known(part) is shape)

    def _bound(self, keys: Sequence[_Key], operator: str, values: Sequence[Any], *, inclusive: bool = False) -> str:
        """Compares column by column: the server uses an index for that, but not for a comparison of rows."""
        if len(values) != len(keys):
            raise DataError("the table has another key than when its reading began")
        connection = self._connection()
        literals = [key.literal(connection, value) for key, value in zip(keys, values, strict=True)]
        ways = []
        for at, key in enumerate(keys):
            same = [f"{keys[i].order} = {literals[i]}" for i in range(at)]
            last = operator + ("=" if inclusive and at == len(keys) - 1 else "")
            ways.append("(" + " AND ".join([*same, f"{key.order} {last} {literals[at]}"]) + ")")
        return "(" + " OR ".join(ways) + ")"

    def _block(self, query: str) -> list[pa.Array]:
        """The result of a query, cut off where it would have too many bytes."""
        rows = StreamedRows(self._connection(), query, chunk_bytes=MAX_BATCH_BYTES)
        columns: list[pa.Array] = []
        try:
            columns = rows.next() or []
            whole = rows.ended
        finally:
            rows.close()
        if not whole:  # the remaining rows are still in the connection, so it is discarded
            self._opened = None
        return columns

    def _ends_at(self, file: str, position: int) -> int | None:
        return place_number(file, position) if self._config.read_only else None

    def retry_position(self, part: TablePart) -> tuple[int | None] | None:
        shape = self._known(part)
        if part.table in self._failed and self._failed[part.table] is shape:
            del self._failed[part.table]
            return None
        self._failed[part.table] = shape
        with database_errors(self._config, "asking for the log's end of"):
            file, position, _ = Server(self._connection()).position()
        return (self._ends_at(file, position),)

    def mark(self, mark_id: str, kind: str, data: Mapping[str, Any]) -> None:
        config = self._config
        if config.read_only:
            return
        if config.signal_collection is None:
            raise DataError("there is no table of signals to mark chunks in: set signal.data.collection")
        database, _, name = config.signal_collection.partition(".")
        table = quoted((database, name))
        statement, values = f"INSERT INTO {table} VALUES (%s, %s, %s)", [mark_id, kind]
        if kind.endswith("close") and config.watermarking.upper() == "INSERT_DELETE":
            statement, values = f"DELETE FROM {table} WHERE id = %s", [mark_id.removesuffix("-close") + "-open"]
        else:
            values.append(json.dumps(data))
        with database_errors(config, f"marking a chunk in {config.signal_collection} of"):
            Server(self._connection()).rows(statement, *values)

    def whole(
        self, tables: Sequence[str], request: SnapshotRequest, offset: Mapping[str, Any]
    ) -> Iterator[list[RecordBatch]]:
        """The current rows with the current structure; changes from the stream's position on follow, and lead to the
        same final state.
        """
        chosen = {name: text for name in tables if (text := request.condition(name))}
        config = replace(self._config, snapshot_tables=[], snapshot_selects=chosen)
        names = [name for name in self._names() if ".".join(name) in tables]
        with database_errors(config, "reading tables of"):
            readers = Readers(config, config.snapshot_threads)
            try:
                moment = readers.open([quoted(name) for name in names])
                shapes = self._shapes_now(names)
                if config.snapshot_locking.lower() != "extended":
                    readers.unlock()
            except BaseException:
                readers.close()
                raise
            self._snapshot = Snapshot(config, shapes, readers, moment, self._headers, self._origin)
            self._snapshot.start()
            progress = SnapshotProgress(dict.fromkeys(self._snapshot.tables))
            for batches in self._snapshot.batches(self._stopping, dict(offset), dict(offset), progress):
                yield [batch.replace(source_offset=dict(offset)) for batch in batches]
            self._snapshot.close()
            self._snapshot = None

    def _shapes_now(self, names: Sequence[TableName]) -> list[Shape]:
        catalog, structure = Catalog(Server(self._connection())), Structure()
        structure.server_charset = catalog.server_charset()
        structure.charsets.update({name: charset for name, (charset, _) in catalog.databases().items()})
        for table in catalog.ddl(names):
            apply(structure, table.sql, table.name[0])
        shapes = Shapes(self._config, self._shapes.filters, structure, self._origin.connector)
        return [shape for name in names if (shape := shapes.get(name)) is not None]

    def close(self) -> None:
        if self._snapshot is not None:
            self._snapshot.close()
        if self._opened is not None:
            self._opened._force_close()
        self._snapshot = self._opened = None


def _texts(keys: Sequence[_Key]) -> str:
    return ", ".join(key.text for key in keys)


def _values(part: TablePart, keys: Sequence[_Key], texts: Sequence[str | None]) -> tuple[Any, ...]:
    if None in texts:
        raise DataError(f"table {part.table} has nulls in what it is read by: name another column in surrogate-key")
    return tuple(key.value(text or "") for key, text in zip(keys, texts, strict=True))


def _decoded(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode()
