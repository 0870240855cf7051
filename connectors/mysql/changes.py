"""Collects rows of the binary log by table and converts them to batches of events, column by column."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import Header, RecordBatch
from connectors import VERSION
from connectors.debezium.envelope import TRANSACTION_BLOCK
from connectors.debezium.events import ContextHeaders, Rows, constant, event_batch, struct_column
from connectors.debezium.values import zero_of
from connectors.mysql.binlog.rows import PADDING, ImageLayout, Physical
from connectors.mysql.config import MySqlConfig
from connectors.mysql.forms import LogColumn
from connectors.mysql.tables import Shape

__all__ = ["Counts", "LogEntry", "Origin", "TableChanges", "filled", "source_column", "truncation"]

_TEXT: Final = pa.string()
_I64: Final = pa.int64()
_NOWHERE: Final = -1


class LogEntry(NamedTuple):
    """The position of an event in the log. ``micros`` since 1970."""

    micros: int
    server_id: int
    gtid: str | None
    file: str
    position: int
    thread: int | None
    query: str | None


@dataclass(frozen=True, slots=True)
class Origin:
    """The fields of the source block that describe the connector."""

    connector: str
    server: str
    source: pa.DataType


@dataclass(slots=True)
class Counts:
    """The number of events in a transaction: in total and per table."""

    transaction: str
    total: int = 0
    tables: dict[str, int] = field(default_factory=dict)


class TableChanges:
    """Rows of one table with one shape, in order."""

    __slots__ = ("_bytes", "_events", "_layouts", "_parts", "_starts", "columns", "rows", "shape")

    def __init__(self, shape: Shape, columns: Sequence[Physical]) -> None:
        self.shape, self.columns = shape, columns
        self._parts: list[bytes] = []
        self._bytes = 0
        self._starts: list[int] = []
        self._layouts: list[tuple[ImageLayout, ...]] = []
        self._events: list[tuple[int, int, int, LogEntry]] = []
        self.rows = 0

    def add(
        self,
        op: int,
        data: bytes,
        starts: Sequence[int],
        layouts: tuple[ImageLayout, ...],
        source: LogEntry,
        first: int,
    ) -> None:
        """Add the row images of an event: one per row for an insert (``op`` 0) and a delete (2), two for an update (1).

        ``first`` is the number of the first row within the event.
        """
        begin = starts[0]
        shift = self._bytes - begin
        self._parts.append(data[begin:])
        self._bytes += len(data) - begin
        self._starts += [start + shift for start in starts] if shift else starts
        self._layouts.append(layouts)
        count = len(starts) // len(layouts)
        self._events.append((op, count, first, source))
        self.rows += count

    def batch(
        self, context: ContextHeaders, origin: Origin, config: MySqlConfig, counts: Counts | None
    ) -> RecordBatch | None:
        """The events for these rows; None where all of them are skipped."""
        shape = self.shape
        columns = _Images(self, config.unavailable_value).columns()
        keys = [columns[at] for at in shape.key_positions]
        out = _Outline(
            self._events, keys, tombstones=config.tombstones and bool(keys), skipped=frozenset(config.skipped)
        )
        if not len(out.op):
            return None
        whole = struct_column(shape.layout.row, columns)
        key = None
        if shape.layout.key is not None:
            key = _taken(struct_column(shape.layout.key, keys), out.key)
        positions = [event[3] for event in self._events]
        absent = out.op == _TOMBSTONE
        rows = Rows(
            pa.array(_OPS[out.op], _TEXT, mask=absent if absent.any() else None),
            _taken(whole, out.before),
            _taken(whole, out.after),
            key,
            source_column(origin, shape.table.name, positions, out.event, out.row),
            None if counts is None else _block(counts, shape.table.full_name, ~absent),
            self._headers(out, key),
        )
        return event_batch(shape.layout, rows, context)

    def _headers(self, out: _Outline, key: pa.Array | None) -> list[tuple[Header, ...]] | None:
        """For changed keys: the delete has a header with the new key, the insert one with the old key."""
        if key is None or not len(out.moved):
            return None
        made: list[tuple[Header, ...]] = [()] * len(out.op)
        texts = {at: _key_text(key[at].as_py()) for pair in out.moved for at in pair}
        for delete, insert in out.moved:
            for at in range(delete, insert):  # the tombstone's too
                made[at] = (Header("__debezium.newkey", texts[insert]),)
            made[insert] = (Header("__debezium.oldkey", texts[delete]),)
        return made


def _key_text(key: Any) -> bytes:
    return json.dumps(key, ensure_ascii=False, separators=(",", ":"), default=str).encode()


_OPS: Final = np.array(["c", "u", "d", None], object)
_TOMBSTONE: Final = 3
_INSERT, _UPDATE, _DELETE = range(3)


class _Outline:
    """The events made from the rows.

    For each: its ``op``; the indices of the images before and after (-1: none) and of the image with its key; the log
    event and the row.
    """

    def __init__(
        self,
        events: Sequence[tuple[int, int, int, LogEntry]],
        keys: Sequence[pa.Array],
        *,
        tombstones: bool,
        skipped: frozenset[str],
    ) -> None:
        ops = np.array([event[0] for event in events], np.int64)
        counts = np.array([event[1] for event in events], np.int64)
        images = counts * np.where(ops == _UPDATE, 2, 1)
        event = np.repeat(np.arange(len(events)), counts)
        within = np.arange(len(event)) - np.repeat(np.cumsum(counts) - counts, counts)
        op = ops[event]
        image = (np.cumsum(images) - images)[event] + within * np.where(op == _UPDATE, 2, 1)
        before = np.where(op == _INSERT, _NOWHERE, image)
        after = np.where(op == _INSERT, image, np.where(op == _UPDATE, image + 1, _NOWHERE))
        row = within + np.array([e[2] for e in events], np.int64)[event]
        moved = self._moved(op, before, after, keys)
        self.moved: list[tuple[int, int]] = []
        if not moved.any() and not (tombstones and (op == _DELETE).any()) and not skipped & {"c", "u", "d"}:
            self.op, self.before, self.after, self.event, self.row = op, before, after, event, row
            self.key = np.where(after >= 0, after, before)
            return
        made: list[tuple[int, int, int, int, int]] = []
        for i in range(len(op)):
            self._add(made, int(op[i]), int(before[i]), int(after[i]), i, bool(moved[i]), tombstones, skipped)
        table = np.array(made, np.int64).reshape(-1, 5)
        self.op, self.before, self.after, self.key = table[:, 0], table[:, 1], table[:, 2], table[:, 3]
        self.event, self.row = event[table[:, 4]], row[table[:, 4]]

    def _add(
        self,
        made: list[tuple[int, int, int, int, int]],
        op: int,
        before: int,
        after: int,
        row: int,
        moved: bool,
        tombstones: bool,
        skipped: frozenset[str],
    ) -> None:
        """An update that changes the key becomes a delete and an insert."""
        if op == _UPDATE and not moved:
            if "u" not in skipped:
                made.append((_UPDATE, before, after, after, row))
            return
        delete = len(made) if op != _INSERT and "d" not in skipped else _NOWHERE
        if delete >= 0:
            made.append((_DELETE, before, _NOWHERE, before, row))
            if tombstones:
                made.append((_TOMBSTONE, _NOWHERE, _NOWHERE, before, row))
        if op != _DELETE and "c" not in skipped:
            if delete >= 0:
                self.moved.append((delete, len(made)))
            made.append((_INSERT, _NOWHERE, after, after, row))

    @staticmethod
    def _moved(
        op: npt.NDArray[np.int64],
        before: npt.NDArray[np.int64],
        after: npt.NDArray[np.int64],
        keys: Sequence[pa.Array],
    ) -> npt.NDArray[np.bool_]:
        """Marks the updates that change the key."""
        made = np.zeros(len(op), np.bool_)
        updates = np.flatnonzero(op == _UPDATE)
        if not len(updates):
            return made
        old, new = pa.array(before[updates]), pa.array(after[updates])
        for column in keys:
            if pa.types.is_nested(column.type):
                pairs = zip(column.take(old).to_pylist(), column.take(new).to_pylist(), strict=True)
                made[updates] |= np.array([a != b for a, b in pairs], np.bool_)
            else:
                differs = pc.fill_null(pc.not_equal(column.take(old), column.take(new)), False)
                made[updates] |= differs.to_numpy(zero_copy_only=False)
        return made


def _taken(whole: pa.Array, positions: npt.NDArray[np.int64]) -> pa.Array | None:
    """The rows at these positions, null for -1; None where all are -1."""
    nowhere = positions < 0
    if nowhere.all():
        return None
    if len(positions) == len(whole) and not nowhere.any() and bool((positions == np.arange(len(whole))).all()):
        return whole
    return whole.take(pa.array(positions, _I64, mask=nowhere if nowhere.any() else None))


class _Images:
    """The captured columns of all images."""

    def __init__(self, changes: TableChanges, unavailable: str) -> None:
        self._shape, self._physical = changes.shape, changes.columns
        self._unavailable = unavailable
        self._data = b"".join([*changes._parts, bytes(PADDING)])
        self._numbers = np.frombuffer(self._data, np.uint8)
        self._starts = np.array(changes._starts, np.int64)
        self._layout_of = changes._layouts
        self._events = changes._events

    def columns(self) -> list[pa.Array]:
        layouts = {id(layout): layout for pair in self._layout_of for layout in pair}
        if len(layouts) == 1:
            return self._decoded(next(iter(layouts.values())), self._starts)
        which = np.concatenate(
            [
                np.tile([id(layout) for layout in pair], event[1])
                for pair, event in zip(self._layout_of, self._events, strict=True)
            ]
        )
        parts, order = [], []
        for number, layout in layouts.items():
            positions = np.flatnonzero(which == number)
            parts.append(self._decoded(layout, self._starts[positions]))
            order.append(positions)
        back = pa.array(np.argsort(np.concatenate(order), kind="stable"))
        return [pa.concat_arrays(list(column)).take(back) for column in zip(*parts, strict=True)]

    def _decoded(self, layout: ImageLayout, starts: npt.NDArray[np.int64]) -> list[pa.Array]:
        cells = dict(zip(layout.present, layout.cells(self._numbers, starts), strict=True))
        made = []
        for at, form in zip(self._shape.positions, self._shape.forms, strict=True):
            cell_column = cells.get(at)
            if cell_column is None:
                made.append(self._absent(form.schema, len(starts)))
                continue
            column = form.of_log(LogColumn(self._data, self._numbers, cell_column, self._physical[at]))
            if column.null_count and not form.schema.optional:
                column = filled(column, zero_of(form.schema))
            made.append(column)
        return made

    def _absent(self, schema: Any, length: int) -> pa.Array:
        """The value for columns that the log omits because they did not change (binlog_row_image)."""
        value: Any = None
        if pa.types.is_string(schema.arrow_type):
            value = self._unavailable
        elif pa.types.is_binary(schema.arrow_type):
            value = self._unavailable.encode()
        elif not schema.optional:
            value = zero_of(schema)
        return constant(value, schema.arrow_type, length)


def filled(column: pa.Array, value: Any) -> pa.Array:
    """The column with nulls replaced."""
    if pa.types.is_nested(column.type):
        return pa.array([value if cell is None else cell for cell in column.to_pylist()], column.type)
    return pc.fill_null(column, pa.scalar(value, column.type))


def truncation(shape: Shape, context: ContextHeaders, origin: Origin, entry: LogEntry) -> RecordBatch:
    """The single event for a table that was truncated."""
    zero = np.zeros(1, np.int64)
    source = source_column(origin, shape.table.name, [entry], zero, zero)
    layout, keys = shape.layout, None
    if layout.key is not None:
        key = layout.key.as_optional()
        layout, keys = replace(layout, key=key), pa.nulls(1, key.arrow_type)
    return event_batch(layout, Rows(pa.array(["t"], _TEXT), None, None, keys, source), context)


def source_column(
    origin: Origin,
    table: tuple[str, str | None],
    sources: Sequence[LogEntry],
    event: npt.NDArray[np.int64],
    row: npt.NDArray[np.int64],
    snapshot: pa.Array | None = None,
) -> pa.Array:
    """The source block of events; ``event`` indexes ``sources``."""
    length = len(event)
    at = pa.array(event, _I64)

    def column(name: str, arrow: pa.DataType) -> pa.Array:
        values = [getattr(source, name) for source in sources]
        if len(sources) == 1 or values.count(values[0]) == len(values):
            return constant(values[0], arrow, length)
        return pa.array(values, arrow).take(at)

    micros = column("micros", _I64)
    database, name = table
    columns = {
        "version": constant(VERSION, _TEXT, length),
        "connector": constant(origin.connector, _TEXT, length),
        "name": constant(origin.server, _TEXT, length),
        "ts_ms": pc.divide(micros, 1000),
        "snapshot": constant("false", _TEXT, length) if snapshot is None else snapshot,
        "db": constant(database, _TEXT, length),
        "sequence": pa.nulls(length, _TEXT),
        "ts_us": micros,
        "ts_ns": pc.multiply(micros, 1000),
        "table": constant(name, _TEXT, length),
        "server_id": column("server_id", _I64),
        "gtid": column("gtid", _TEXT),
        "file": column("file", _TEXT),
        "pos": column("position", _I64),
        "row": pa.array(row, pa.int32()),
        "thread": column("thread", _I64),
        "query": column("query", _TEXT),
    }
    return pa.StructArray.from_arrays(list(columns.values()), fields=list(origin.source))


def _block(counts: Counts, table: str, counted: npt.NDArray[np.bool_]) -> pa.Array:
    """The transaction block of these events; null for tombstones."""
    total = counts.total + np.cumsum(counted)
    of_table = counts.tables.get(table, 0) + np.cumsum(counted)
    counts.total, counts.tables[table] = int(total[-1]), int(of_table[-1])
    length = len(counted)
    arrays = [constant(counts.transaction, _TEXT, length), pa.array(total, _I64), pa.array(of_table, _I64)]
    mask = None if counted.all() else pa.array(~counted)
    return pa.StructArray.from_arrays(arrays, fields=list(TRANSACTION_BLOCK.arrow_type), mask=mask)
