"""Neighbouring batches of one poll made one, so that a source with small batches still fills its requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from connect.api import MAX_BATCH_BYTES, RecordBatch

__all__ = ["merged"]

_COLUMNS: Final = ("values", "keys", "timestamps_ms", "headers", "partitions", "offsets")


def merged(batches: Iterable[RecordBatch], max_bytes: int = MAX_BATCH_BYTES) -> list[RecordBatch]:
    """The same rows in the same order, in fewer batches where neighbours agree in topic, schemas, columns and source
    partition; each at most ``max_bytes`` unless it was larger already. The position is that of the last one."""
    made: list[RecordBatch] = []
    run: list[RecordBatch] = []
    size = 0
    for batch in batches:
        if run and (size + batch.nbytes > max_bytes or not _agree(run[0], batch)):
            made.append(_joined(run))
            run, size = [], 0
        run.append(batch)
        size += batch.nbytes
    if run:
        made.append(_joined(run))
    return made


def _agree(left: RecordBatch, other: RecordBatch) -> bool:
    same = (
        left.topic == other.topic
        and left.source_partition == other.source_partition
        and (left.source_offset is None) == (other.source_offset is None)
        and (left.source_offsets is None) == (other.source_offsets is None)
        and all((getattr(left, name) is None) == (getattr(other, name) is None) for name in _COLUMNS)
    )
    if not same or left.value_schema != other.value_schema or left.key_schema != other.key_schema:
        return False
    return left.headers is None or other.headers is None or left.headers.type == other.headers.type


def _joined(run: list[RecordBatch]) -> RecordBatch:
    import pyarrow as pa

    if len(run) == 1:
        return run[0]
    last = run[-1]
    columns = {
        name: pa.concat_arrays([getattr(batch, name) for batch in run])
        for name in _COLUMNS
        if getattr(last, name) is not None
    }
    offsets = None
    if last.source_offsets is not None:
        offsets = [offset for batch in run for offset in batch.source_offsets or ()]
    return last.replace(**columns, source_offsets=offsets)
