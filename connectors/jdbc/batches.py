"""Turns a driver's chunks into record batches: columns in Connect's form, split to size, each with the offset after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from connect.api import MAX_BATCH_BYTES, DataError, RecordBatch
from connectors.jdbc.offsets import Position
from connectors.jdbc.queries import INCREMENTING, TIMESTAMP, Plan
from connectors.sql.columns import epoch_micros, to_connect

__all__ = ["Chunk", "cut"]

Positions = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A driver's chunk, converted; the positions of its rows as arrays, None for those the mode does not use."""

    values: pa.StructArray
    timestamps_us: Positions | None
    incrementing: Positions | None

    def __len__(self) -> int:
        return len(self.values)

    @classmethod
    def of(cls, plan: Plan, delivered: pa.RecordBatch) -> Chunk:
        """Convert a chunk. Raises DataError that names table and column for a value that does not fit."""
        timezone = plan.dialect.timezone
        columns = []
        for i, column in enumerate(plan.columns):
            granularity = plan.config.time_form if column.timestamp and column.schema.name is None else ""
            try:
                made = to_connect(
                    delivered.column(i), column.schema, name=column.name, timezone=timezone, granularity=granularity
                )
            except DataError as error:
                raise DataError(f"{plan.source}: {error}") from error
            columns.append(made)
        fields = [column.schema.arrow_field(column.name) for column in plan.columns]
        values = pa.StructArray.from_arrays(columns, fields=fields)
        return cls(values, _timestamps(plan, delivered), _incrementing(plan, delivered))


def _timestamps(plan: Plan, delivered: pa.RecordBatch) -> Positions | None:
    if not plan.timestamps:
        return None
    column = delivered.column(delivered.schema.get_field_index(TIMESTAMP))
    if pa.types.is_integer(column.type):  # milliseconds in the time zone of db.timezone
        column = column.cast(pa.timestamp("ms"))
    instants: Positions = epoch_micros(column, plan.dialect.timezone).to_numpy(zero_copy_only=False)
    return instants


def _incrementing(plan: Plan, delivered: pa.RecordBatch) -> Positions | None:
    if plan.incrementing is None:
        return None
    column = delivered.column(delivered.schema.get_field_index(INCREMENTING)).cast(pa.int64())
    numbers: Positions = column.to_numpy(zero_copy_only=False)
    return numbers


def cut(plan: Plan, chunk: Chunk, before: Position, following_us: int | None) -> Iterator[tuple[RecordBatch, Position]]:
    """Batches of at most batch.max.rows rows and 8 MiB, each with the position after its last row.

    ``before`` is the position before the chunk, ``following_us`` the timestamp of the row after it, None for none. With
    timestamps alone a position must not stand among rows of one instant, or a restart would skip the rest of them: there
    the position is that of the instant before.
    """
    start = 0
    while start < len(chunk):
        stop = _end(chunk.values, start, min(start + plan.config.batch_max_rows, len(chunk)))
        after = _position(chunk, stop, before, following_us)
        batch = RecordBatch(
            plan.source.topic,
            chunk.values.slice(start, stop - start),
            plan.schema,
            source_partition=plan.source.partition,
            source_offset=after.to_offset() or None,
        )
        yield batch, after
        before, start = after, stop


def _end(values: pa.Array, start: int, stop: int) -> int:
    """The end of a batch that starts at ``start``: limited in bytes as well, but with at least one row."""
    while stop - start > 1 and values.slice(start, stop - start).nbytes > MAX_BATCH_BYTES:
        stop = start + (stop - start) // 2
    return stop


def _position(chunk: Chunk, stop: int, before: Position, following_us: int | None) -> Position:
    number = int(chunk.incrementing[stop - 1]) if chunk.incrementing is not None else None
    stamps = chunk.timestamps_us
    if stamps is None:
        return Position(None, number)
    last = int(stamps[stop - 1])
    following = int(stamps[stop]) if stop < len(stamps) else following_us
    if chunk.incrementing is not None or following != last:
        return Position(last, number)
    first_of_instant = int(np.searchsorted(stamps[:stop], last, side="left"))
    return Position(int(stamps[first_of_instant - 1]), None) if first_of_instant else before
