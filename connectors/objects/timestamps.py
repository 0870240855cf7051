"""The time of a record that counts for folders and rotation (``timestamp.extractor``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import TIMESTAMP, DataError, RecordBatch, Schema

__all__ = ["EXTRACTORS", "Millis", "field_column", "timestamps_of"]

Millis = npt.NDArray[np.int64]

EXTRACTORS: Final = ("Wallclock", "Record", "RecordField")


def timestamps_of(extractor: str, field: str, batch: RecordBatch, now_ms: Callable[[], int]) -> Millis:
    """Milliseconds since the epoch for each row; where a tombstone has no field, those of the record.

    Raises DataError where a row has no time.
    """
    if extractor == "Wallclock":
        return np.full(len(batch), now_ms(), np.int64)
    record_times = batch.timestamps_ms if batch.timestamps_ms is not None else pa.nulls(len(batch), pa.int64())
    if extractor == "Record" or batch.values.null_count == len(batch):
        column = record_times
    else:
        column = _field_millis(batch, field)
        if batch.values.null_count:
            column = pc.if_else(batch.values.is_null(), record_times, column)
    if column.null_count:
        row = int(pc.index(column.is_null(), True).as_py())
        what = f"field {field!r}" if extractor == "RecordField" else "a timestamp"
        raise DataError(f"record {row} of a batch of {batch.topic!r} has no {what} to take its time from", rows=[row])
    millis: Millis = column.to_numpy(zero_copy_only=False)
    return millis


def _field_millis(batch: RecordBatch, field: str) -> pa.Array:
    column, schema = field_column(batch, field)
    if schema.name == TIMESTAMP:
        return column.cast(pa.int64())
    if pa.types.is_integer(column.type):
        return column.cast(pa.int64())
    if pa.types.is_string(column.type):
        return _parsed(column, batch, field)
    raise DataError(f"field {field!r} of {batch.topic!r} is {schema.type.value}, which is no time: "
                    "a number of milliseconds, a Timestamp or an ISO 8601 text is")  # fmt: skip


def _parsed(column: pa.Array, batch: RecordBatch, field: str) -> pa.Array:
    """ISO 8601 texts; one without a zone is UTC."""
    zoned = pc.match_substring_regex(column, r"[0-9](Z|[+-][0-9]{2}:?[0-9]{2})$")
    null = pa.scalar(None, pa.string())
    try:
        with_zone = pc.if_else(zoned, column, null).cast(pa.timestamp("ms", "UTC")).cast(pa.int64())
        without = pc.if_else(zoned, null, column).cast(pa.timestamp("ms")).cast(pa.int64())
    except pa.ArrowInvalid as error:
        raise DataError(f"field {field!r} of {batch.topic!r} holds no ISO 8601 time: {error}") from error
    return pc.coalesce(with_zone, without)


def field_column(batch: RecordBatch, path: str) -> tuple[Any, Schema]:
    """The column and schema of a field; nested fields are separated by dots (``address.city``).

    Raises DataError where there is none.
    """
    if batch.value_schema is None:
        raise DataError(
            f"records of {batch.topic!r} have no schema, so no field {path!r}: use a converter with schemas"
        )
    column, schema = batch.values, batch.value_schema
    for name in path.split("."):
        schema = schema.field(name).schema
        column = pc.struct_field(column, name)
    return column, schema
