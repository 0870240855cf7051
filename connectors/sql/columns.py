"""Converts columns from a driver to the Arrow form of their Connect schema: no Python call per row."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DATE, DECIMAL, TIME, TIMESTAMP, DataError, Schema, SchemaType

__all__ = ["epoch_micros", "to_connect"]

_EXACT_IN_DOUBLE: Final = float(1 << 53)
_NOISE_ULPS: Final = 8
"""The least significant bits that sums of doubles get wrong: 0.1 + 0.2 is the decimal number 0.30."""
_DAYS: Final = (-719_162, 2_932_896)
_MICROS: Final = (-719_162 * 86_400_000_000, 2_932_897 * 86_400_000_000 - 1)


def to_connect(
    column: pa.Array, schema: Schema, *, name: str, timezone: str = "UTC", granularity: str = ""
) -> pa.Array:
    """The column in ``schema.arrow_type``. Timestamps without a zone have the zone ``timezone``. ``granularity`` is the
    JDBC source's, for a timestamp whose schema is a plain number or text.

    Raises DataError, with the column's name, for a value that the schema cannot represent exactly.
    """
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    try:
        if schema.name == TIMESTAMP or granularity:
            return _timestamps(column, schema, timezone, granularity)
        if schema.name == DATE:
            return _dates(column)
        if column.type == schema.arrow_type:
            return column
        if schema.name == DECIMAL:
            return _decimals(column, schema)
        if schema.name == TIME:
            return _times(column)
        if schema.type is SchemaType.ARRAY and pa.types.is_list(column.type):
            return _lists(column, schema, name, timezone)
        if schema.type is SchemaType.BOOLEAN and pa.types.is_integer(column.type):
            return pc.not_equal(column, 0)
        return column.cast(schema.arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        kind = schema.name.rpartition(".")[2] if schema.name else schema.type.value
        reason = str(error).splitlines()[0]
        raise DataError(f"column {name!r} holds a value that does not fit its type, {kind}: {reason}") from error


def _lists(column: pa.Array, schema: Schema, name: str, timezone: str) -> pa.Array:
    """Items are converted like columns."""
    assert schema.value_schema is not None
    items = to_connect(column.flatten(), schema.value_schema, name=name, timezone=timezone)
    lengths = pc.fill_null(pc.list_value_length(column), 0).to_numpy(zero_copy_only=False)
    offsets = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32())
    return pa.ListArray.from_arrays(offsets, items, type=schema.arrow_type, mask=column.is_null())


def _decimals(column: pa.Array, schema: Schema) -> pa.Array:
    """Texts are cast exactly. A double is the decimal number that is nearest to it, and refused where that has more
    digits after the point than the scale, or where a double has too few digits to tell.
    """
    if pa.types.is_floating(column.type):
        extremes = pc.min_max(column).as_py()
        if any(abs(value or 0) >= _EXACT_IN_DOUBLE for value in extremes.values()):
            raise ValueError("a number beyond 2^53 that the database stores as a double")
        rounded = column.cast(schema.arrow_type)
        doubles = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
        lost = np.abs(doubles - pc.fill_null(rounded.cast(column.type), 0).to_numpy(zero_copy_only=False))
        if (lost > _NOISE_ULPS * np.spacing(np.abs(doubles))).any():
            value = float(doubles[int(np.argmax(lost))])
            raise ValueError(
                f"{value!r} has more than {schema.scale} digits after the point; numeric.mapping=best_fit reads doubles"
            )
        return rounded
    if pa.types.is_integer(column.type) and schema.arrow_type.precision < 19:
        return column.cast(pa.decimal128(19, 0)).cast(pa.decimal128(38, schema.scale)).cast(schema.arrow_type)
    return column.cast(schema.arrow_type)


def _dates(column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type):
        column = pc.cast(_from_text(column, pa.timestamp("us")), pa.date32(), safe=False)
    _refuse_outside(column.cast(pa.int32()), *_DAYS)
    return column


def _refuse_outside(numbers: pa.Array, low: int, high: int) -> None:
    """PostgreSQL's infinity, for example, arrives as a number outside the range of dates."""
    extremes = pc.min_max(numbers).as_py()
    if extremes["min"] is not None and not low <= extremes["min"] <= extremes["max"] <= high:
        raise ValueError("a date outside of the years 1 to 9999, or infinity")


def _times(column: pa.Array) -> pa.Array:
    """Texts are ISO times or milliseconds since midnight, as SQLite's users store them."""
    if pa.types.is_string(column.type):
        numbers = pc.match_substring_regex(column, r"^[0-9]+$")
        text = pc.if_else(numbers, pa.scalar(None, pa.string()), column)
        times = pc.binary_join_element_wise("1970-01-01", text, " ").cast(pa.timestamp("us")).cast(pa.time64("us"))
        millis = pc.if_else(numbers, column, pa.scalar(None, pa.string())).cast(pa.int64())
        column = pc.coalesce(times, pc.multiply(millis, 1000).cast(pa.time64("us")))
    return column.cast(pa.time32("ms"), safe=False)


def _timestamps(column: pa.Array, schema: Schema, timezone: str, granularity: str) -> pa.Array:
    micros = epoch_micros(column, timezone)
    _refuse_outside(micros, *_MICROS)
    if not granularity:
        floored = pc.floor_temporal(micros.cast(pa.timestamp("us")), unit="millisecond")
        return floored.cast(pa.timestamp("ms")).cast(schema.arrow_type)
    if granularity.endswith("_long"):
        return pc.multiply(micros, 1000) if granularity.startswith("nanos") else micros
    if granularity.endswith("iso_datetime_string"):
        return _iso(micros, 9 if granularity.startswith("nanos") else 6)
    return (pc.multiply(micros, 1000) if granularity.startswith("nanos") else micros).cast(pa.string())


def _iso(micros: pa.Array, digits: int) -> pa.Array:
    text = pc.strftime(micros.cast(pa.timestamp("us")), format="%Y-%m-%dT%H:%M:%S")
    return text if digits == 6 else pc.binary_join_element_wise(text, "000", "")


def epoch_micros(column: pa.Array, timezone: str) -> pa.Array:
    """Timestamps as int64 microseconds since the epoch, UTC; those without a zone have the zone ``timezone``.

    Integers are already milliseconds since the epoch, and texts are ISO dates and times, as SQLite's users store them.
    """
    if pa.types.is_string(column.type):
        column = _from_text(column, pa.timestamp("us"))
    if pa.types.is_integer(column.type):
        return pc.multiply(column.cast(pa.int64()), 1000)
    if column.type.tz is None and timezone != "UTC":
        column = pc.assume_timezone(column, timezone, ambiguous="earliest", nonexistent="latest")
    return column.cast(pa.timestamp("us", column.type.tz)).cast(pa.int64())


def _from_text(column: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """Texts of dates and times, parsed as ``arrow_type``; digits alone are milliseconds since the epoch."""
    if not pa.types.is_string(column.type):
        return column
    try:
        return column.cast(arrow_type)
    except pa.ArrowInvalid:
        numbers = pc.match_substring_regex(column, r"^-?[0-9]+$")
        zoned = pc.match_substring_regex(column, r"[0-9](Z|[+-][0-9]{2}:?[0-9]{2})$")
        if not pa.types.is_timestamp(arrow_type) or not pc.any(pc.or_(numbers, zoned)).as_py():
            raise
    null = pa.scalar(None, pa.string())
    plain = pc.if_else(pc.or_(numbers, zoned), null, column).cast(arrow_type)
    from_zoned = pc.if_else(zoned, column, null).cast(pa.timestamp("us", "UTC")).cast(pa.int64()).cast(arrow_type)
    millis = pc.if_else(numbers, column, null).cast(pa.int64())
    from_numbers = pc.multiply(millis, 1000).cast(arrow_type)
    return pc.coalesce(plain, from_zoned, from_numbers)
