"""Turns a driver's chunks into record batches: columns in Connect's form, split to size, each with the offset after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
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


def with_following(plan: Plan, rows: Iterable[pa.RecordBatch]) -> Iterator[tuple[Chunk, int | None]]:
    """Each chunk with the timestamp of the row that follows it, None where the plan has no timestamps.

    A row that can't be converted ends the rows with a DataError that names it, after the rows before it.
    """
    carried: Chunk | None = None
    for delivered in rows:
        refused: DataError | None = None
        try:
            chunk = Chunk.of(plan, delivered)
        except DataError:
            count, refused = _first_refused(plan, delivered)
            chunk = Chunk.of(plan, delivered.slice(0, count))
        following = chunk.timestamps_us if refused is None else _timestamps(plan, delivered)
        if carried is not None:
            yield carried, int(following[0]) if following is not None else None
        carried = chunk
        if refused is not None:
            if len(chunk):
                yield chunk, int(following[len(chunk)]) if following is not None else None
            raise refused
        if following is None:
            yield chunk, None
            carried = None
    if carried is not None:
        yield carried, None


def _first_refused(plan: Plan, delivered: pa.RecordBatch) -> tuple[int, DataError]:
    """The number of rows before the first one that can't be converted, and the error that says which row it is."""
    good, bad = 0, len(delivered)
    refused = DataError(f"{plan.source}: a row can't be converted")
    while good < bad:
        middle = (good + bad) // 2
        try:
            Chunk.of(plan, delivered.slice(good, middle - good + 1))
        except DataError as error:
            bad, refused = middle, error
        else:
            good = middle + 1
    positions = [(plan.timestamps[0].name, TIMESTAMP)] if plan.timestamps else []
    positions += [(plan.incrementing.name, INCREMENTING)] if plan.incrementing is not None else []
    shown = [f"{name} = {delivered.column(alias)[good]}" for name, alias in positions]
    return good, DataError(f"{refused} (the row with {', '.join(shown)})" if shown else str(refused))


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
