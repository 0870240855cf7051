"""Converts columns of records to the Arrow types that a driver accepts; no Python call per row."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["as_text", "millis", "wall_clock"]


def wall_clock(column: pa.Array, timezone: str) -> pa.Array:
    """Instants as local timestamps of that zone, without zone, in microseconds."""
    micros = column.cast(pa.timestamp("us", "UTC"))
    if timezone == "UTC":
        return micros.cast(pa.timestamp("us"))
    return pc.local_timestamp(micros.cast(pa.timestamp("us", timezone)))


def as_text(column: pa.Array) -> pa.Array:
    """Values as readable text: dates and times in ISO 8601, numbers in digits."""
    kind = column.type
    if pa.types.is_timestamp(kind) and kind.tz:
        return pc.strftime(column.cast(pa.timestamp("us", "UTC")), format="%Y-%m-%d %H:%M:%S+00:00")
    return column if pa.types.is_string(kind) else column.cast(pa.string())


def millis(column: pa.Array) -> pa.Array:
    """Dates, times and instants as milliseconds since 1970, as Java's SQLite driver stores them."""
    kind = column.type
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("ms")).cast(pa.int64())
    if pa.types.is_time(kind):
        return column.cast(pa.time32("ms"), safe=False).cast(pa.int32()).cast(pa.int64())
    return column.cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
