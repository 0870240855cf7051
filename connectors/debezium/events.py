"""Builds batches of change events from columns; used by all CDC sources."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from connect.api import MAX_BATCH_BYTES, Header, RecordBatch, Schema
from connectors.debezium.envelope import HEARTBEAT_KEY, HEARTBEAT_VALUE, TRANSACTION_BLOCK

__all__ = ["ContextHeaders", "Layout", "Rows", "bounded", "constant", "event_batch", "heartbeat", "struct_column"]


@dataclass(frozen=True, slots=True)
class Layout:
    """The topic and the schemas of a table's events. ``row`` is the optional struct inside ``value``."""

    topic: str
    key: Schema | None
    row: Schema
    value: Schema
    source: Schema


@dataclass(slots=True)
class Rows:
    """Columns of several events of one table, all of the same length; ``ops`` is None for a tombstone."""

    ops: pa.Array
    before: pa.Array | None
    """Of the row's type, null where an event has no such row; None: no event has one."""
    after: pa.Array | None
    keys: pa.Array | None
    source: pa.Array
    transaction: pa.Array | None = None
    headers: Sequence[tuple[Header, ...]] | None = None
    """Additional headers of each row, put before those of the context."""


def constant(value: Any, arrow: pa.DataType, length: int) -> pa.Array:
    """A column that repeats one value.

    Columns of texts, which are slow to build, are cached and reused for many batches.
    """
    if value is None:
        return pa.nulls(length, arrow)
    if isinstance(value, str):
        return _repeated(value, arrow, max(_COMMON_ROWS, 1 << (length - 1).bit_length())).slice(0, length)
    return pa.repeat(pa.scalar(value, arrow), length)


_COMMON_ROWS: Final = 1 << 13


@lru_cache(256)
def _repeated(value: str, arrow: pa.DataType, length: int) -> pa.Array:
    return pa.repeat(pa.scalar(value, arrow), length)


def struct_column(schema: Schema, columns: Sequence[pa.Array], absent: np.ndarray | None = None) -> pa.Array:
    """A struct column built from its fields' columns; null where ``absent`` is true.

    Columns beyond those of the schema's fields are ignored: a table's shape keeps columns there that only keys need.
    """
    fields = list(schema.arrow_type)
    mask = None if absent is None or not absent.any() else pa.array(absent)
    return pa.StructArray.from_arrays(list(columns[: len(fields)]), fields=fields, mask=mask)


class ContextHeaders:
    """The headers that say which connector and task wrote a record (``extended.headers.enabled``)."""

    def __init__(self, prefix: str, connector: str, task: int, *, enabled: bool) -> None:
        run = uuid.uuid4()
        texts = {"connectorLogicalName": prefix, "taskId": str(task), "connectorName": connector, "runId": str(run)}
        self.headers = tuple(
            Header(f"__debezium.context.{name}", text.encode()) for name, text in texts.items() if enabled
        )
        self._column: pa.Array | None = None

    def column(self, length: int, more: Sequence[tuple[Header, ...]] | None) -> pa.Array | None:
        """The headers for this many records; where a record has headers in ``more``, those come first."""
        if more is not None and any(more):
            return _header_column([(*headers, *self.headers) for headers in more])
        if not self.headers:
            return None
        if self._column is None or len(self._column) < length:
            self._column = _header_column([self.headers] * max(length, _COMMON_ROWS))
        return self._column.slice(0, length)


def _header_column(rows: Sequence[tuple[Header, ...]]) -> pa.Array:
    """Raw headers: the bytes that the default header converter would write for a string."""
    cell = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
    return pa.array([[{"key": h.key, "value": h.value} for h in headers] for headers in rows], pa.list_(cell))


def event_batch(layout: Layout, rows: Rows, headers: ContextHeaders, **position: Any) -> RecordBatch:
    """The records of some events; ``position`` is the source offset of the whole batch."""
    length = len(rows.ops)
    nanos = time.time_ns()
    row_type, block = layout.row.arrow_type, TRANSACTION_BLOCK.arrow_type
    ops, absent = rows.ops, None
    if ops.null_count:
        absent = ops.is_null().to_numpy(zero_copy_only=False)
        ops = ops.fill_null("")
    columns = [
        pa.nulls(length, row_type) if rows.before is None else rows.before,
        pa.nulls(length, row_type) if rows.after is None else rows.after,
        rows.source,
        pa.nulls(length, block) if rows.transaction is None else rows.transaction,
        ops,
        *(constant(now, pa.int64(), length) for now in (nanos // 1_000_000, nanos // 1000, nanos)),
    ]
    return RecordBatch(
        layout.topic,
        struct_column(layout.value, columns, absent),
        layout.value,
        keys=rows.keys,
        key_schema=layout.key,
        headers=headers.column(length, rows.headers),
        **position,
    )


def heartbeat(topic: str, server: str, partition: Mapping[str, Any], offset: Mapping[str, Any]) -> RecordBatch:
    now = time.time_ns() // 1_000_000
    return RecordBatch(
        topic,
        pa.array([{"ts_ms": now}], HEARTBEAT_VALUE.arrow_type),
        HEARTBEAT_VALUE,
        keys=pa.array([{"serverName": server}], HEARTBEAT_KEY.arrow_type),
        key_schema=HEARTBEAT_KEY,
        source_partition=partition,
        source_offset=offset,
    )


def bounded(batch: RecordBatch) -> list[RecordBatch]:
    """The batch, split so that no piece exceeds the recommended size in bytes."""
    if batch.nbytes <= MAX_BATCH_BYTES or len(batch) < 2:
        return [batch]
    half = len(batch) // 2
    position = {"source_partition": batch.source_partition, "source_offset": batch.source_offset}
    pieces = (batch.slice(0, half), batch.slice(half))
    return [piece for part in pieces for piece in bounded(_compact(part).replace(**position))]


def _compact(batch: RecordBatch) -> RecordBatch:
    """A copy of a slice that holds only its own bytes: a slice keeps its parent's buffers alive."""
    names = ("values", "keys", "headers")
    return batch.replace(**{n: pa.concat_arrays([c]) for n in names if (c := getattr(batch, n)) is not None})
