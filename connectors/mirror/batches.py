"""Turns a record of Mirror's own topics into a batch of one row."""

from __future__ import annotations

from typing import Any, Final, Protocol

from connect.api import RecordBatch, Schema, SchemaType

__all__ = ["batch_of"]

_BYTES: Final = Schema(SchemaType.BYTES)


class _OwnRecord(Protocol):
    @property
    def key(self) -> bytes: ...

    @property
    def value(self) -> bytes: ...

    @property
    def source_partition(self) -> dict[str, Any]: ...


def batch_of(record: _OwnRecord, topic: str, timestamp_ms: int) -> RecordBatch:
    """A batch for partition 0. Its offset is empty, because these connectors always start from the beginning."""
    import pyarrow as pa

    return RecordBatch(
        topic=topic,
        values=pa.array([record.value], pa.binary()),
        value_schema=_BYTES,
        keys=pa.array([record.key], pa.binary()),
        key_schema=_BYTES,
        timestamps_ms=pa.array([timestamp_ms], pa.int64()),
        partitions=pa.array([0], pa.int32()),
        source_partition=record.source_partition,
        source_offset={"offset": 0},
    )
