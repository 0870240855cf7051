"""Gathers changes by table and makes batches of them, column by column."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import Header, RecordBatch
from connectors import VERSION
from connectors.debezium.envelope import TRANSACTION_BLOCK
from connectors.debezium.events import ContextHeaders, Rows, constant, event_batch, struct_column
from connectors.postgres.pgoutput import UNCHANGED, Tuple
from connectors.postgres.tables import SOURCE, Shape
from connectors.postgres.types import zero_of

__all__ = ["TableChanges", "row_columns", "source_column"]

_I64: Final = pa.int64()


class TableChanges:
    """Changes of one table in one shape, in their order. One place a row; see ``add``."""

    __slots__ = ("_after", "_before", "_block", "_extra", "_ops", "_places", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self._ops: list[str | None] = []
        self._before: list[Tuple | None] = []
        self._after: list[Tuple | None] = []
        self._places: list[tuple[int, int | None, int, int | None]] = []
        self._block: list[tuple[str, int, int] | None] = []
        self._extra: dict[int, tuple[Header, ...]] = {}

    def __len__(self) -> int:
        return len(self._ops)

    def add(
        self,
        op: str | None,
        before: Tuple | None,
        after: Tuple | None,
        place: tuple[int, int | None, int, int | None],
        block: tuple[str, int, int] | None,
        header: tuple[str, Tuple] | None = None,
    ) -> None:
        """One event, or with ``op`` None the tombstone of ``before``. ``place`` is (position, transaction, its commit's
        microseconds, the position of the commit before); ``header`` a header's name and the row whose key it holds."""
        if header is not None:
            self._extra[len(self._ops)] = (Header(header[0], self._key_text(header[1])),)
        self._ops.append(op)
        self._before.append(before)
        self._after.append(after)
        self._places.append(place)
        self._block.append(block)

    def _key_text(self, row: Tuple) -> bytes:
        columns = row_columns(self.shape, [row], self.shape.key_positions)
        fields = self.shape.layout.key
        assert fields is not None
        values = {f.name: c.to_pylist()[0] for f, c in zip(fields.fields, columns, strict=True)}
        return json.dumps(values, ensure_ascii=False, separators=(",", ":"), default=str).encode()

    def batch(self, context: ContextHeaders, server: str, database: str, position: Mapping[str, Any]) -> RecordBatch:
        shape = self.shape
        has_before = any(row is not None for row in self._before)
        has_after = any(row is not None for row in self._after)
        # a tombstone keeps its row in ``before`` for its key alone: its envelope is null as a whole
        before = self._rows(self._before) if has_before else None
        after = self._rows(self._after) if has_after else None
        keys = None
        if shape.layout.key is not None:
            keyed: Sequence[Tuple | None] = self._after
            if has_before:
                keyed = [b if a is None else a for a, b in zip(self._after, self._before, strict=True)]
            if not has_before and after is not None and after.null_count == 0:
                columns = [after.field(at) for at in shape.key_positions]
            else:
                columns = row_columns(shape, keyed, shape.key_positions)
            absent = np.array([row is None for row in keyed]) if None in keyed else None
            keys = struct_column(shape.layout.key, columns, absent)
        block = None
        if any(b is not None for b in self._block):
            names = ("id", "total_order", "data_collection_order")
            cells = [None if b is None else dict(zip(names, b, strict=True)) for b in self._block]
            block = pa.array(cells, TRANSACTION_BLOCK.arrow_type)
        table = shape.table
        source = source_column(server, database, table.schema, table.name, self._places)
        extra = [self._extra.get(i, ()) for i in range(len(self._ops))] if self._extra else None
        rows = Rows(self._ops, before, after, keys, source, block, extra)
        return event_batch(shape.layout, rows, context, **position)

    def _rows(self, rows: Sequence[Tuple | None]) -> pa.Array:
        columns = row_columns(self.shape, rows, range(len(self.shape.forms)))
        absent = np.array([row is None for row in rows]) if None in rows else None
        return struct_column(self.shape.layout.row, columns, absent)


def row_columns(shape: Shape, rows: Sequence[Tuple | None], wanted: Sequence[int]) -> list[pa.Array]:
    """The wanted columns (by their place among the captured) of rows of text."""
    width = len(shape.table.columns)
    nothing: Tuple = [None] * width
    turned = list(zip(*(nothing if row is None else row for row in rows), strict=True))
    made = []
    for at in wanted:
        values = turned[shape.positions[at]]
        form = shape.forms[at]
        unchanged = None
        if UNCHANGED in values:
            unchanged = pa.array([value is UNCHANGED or value == UNCHANGED for value in values])
            values = tuple(None if value == UNCHANGED else value for value in values)
        column = form.convert(pa.array(values, pa.string()))
        if unchanged is not None and form.unavailable is not None:
            column = _replaced(column, unchanged, form.unavailable)
        if not form.schema.optional and column.null_count:
            column = _replaced(column, column.is_null(), zero_of(form.schema))
        made.append(column)
    return made


def _replaced(column: pa.Array, mask: pa.Array, value: Any) -> pa.Array:
    if pa.types.is_nested(column.type):
        cells = zip(column.to_pylist(), mask.to_pylist(), strict=True)
        return pa.array([value if hit else cell for cell, hit in cells], column.type)
    return pc.if_else(mask, pa.scalar(value, column.type), column)


def source_column(
    server: str,
    database: str,
    schema: str,
    table: str,
    places: Sequence[tuple[int, int | None, int, int | None]],
    snapshot: pa.Array | None = None,
) -> pa.Array:
    """The source block of events at these places (see ``TableChanges.add``); in a snapshot all have the first one's."""
    length = len(places) if snapshot is None else len(snapshot)
    positions, transactions, times, commits = zip(*places, strict=True)
    lsn, micros = pa.array(positions, _I64), pa.array(times, _I64)
    text = pa.string()
    before = pc.fill_null(pc.binary_join_element_wise('"', pc.cast(pa.array(commits, _I64), text), '"', ""), "null")
    sequence = pc.binary_join_element_wise("[", before, ',"', pc.cast(lsn, text), '"]', "")
    millis = pa.array(np.floor_divide(micros.to_numpy(), 1000), _I64)
    varying = [millis, sequence, micros, pc.multiply(micros, 1000), pa.array(transactions, _I64), lsn]
    if snapshot is not None:
        varying = [pa.repeat(column[0], length) for column in varying]
    millis, sequence, micros, nanos, xids, lsn = varying
    columns = [
        constant(VERSION, text, length),
        constant("postgresql", text, length),
        constant(server, text, length),
        millis,
        constant("false", text, length) if snapshot is None else snapshot,
        constant(database, text, length),
        sequence,
        micros,
        nanos,
        constant(schema, text, length),
        constant(table, text, length),
        xids,
        lsn,
        pa.nulls(length, _I64),
        pa.nulls(length, text),
        pa.nulls(length, _I64),
    ]
    return struct_column(SOURCE, columns)
