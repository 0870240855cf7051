"""Casts columns to another type: by Arrow if its rules equal Java's, otherwise value by value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from connect.api import DATE, DECIMAL, TIME, TIMESTAMP, DataError, Schema, SchemaType
from connect.transforms.cast_values import cast_value, checked_input

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["cast_column"]

_INTEGERS: Final = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}
_FLOATS: Final = (SchemaType.FLOAT32, SchemaType.FLOAT64)
_INTEGER_TEXT: Final = r"^-?[0-9]{1,18}$"
_FLOAT_TEXT: Final = r"^-?[0-9]{1,15}(\.[0-9]{1,9})?$"


def cast_column(schema: Schema, column: pa.Array, target: SchemaType) -> pa.Array:
    """The column as ``target``, null where it is. Raises DataError with the invalid rows."""
    arrow_type = Schema(target).arrow_type
    if column.null_count == len(column):
        import pyarrow as pa

        return pa.nulls(len(column), arrow_type)
    checked_input(schema.type)
    made = _columnar(schema, column, target, arrow_type)
    return _by_value(schema, column, target, arrow_type) if made is None else made


def _columnar(schema: Schema, column: pa.Array, target: SchemaType, arrow_type: pa.DataType) -> pa.Array | None:
    """None if values have to be cast one by one."""
    if schema.name == DECIMAL or schema.type is SchemaType.BYTES:
        return None
    if schema.name in (DATE, TIME, TIMESTAMP):
        if target is SchemaType.STRING:
            return None
        column = column.cast(schema.arrow_type).cast("int64" if schema.name == TIMESTAMP else "int32")
    if schema.type is SchemaType.STRING:
        return _of_texts(column, target, arrow_type)
    if target is SchemaType.STRING:
        return _texts(schema, column)
    if schema.type in _FLOATS:
        return _of_floats(column, target, arrow_type)
    if target is SchemaType.BOOLEAN:
        return column.cast(arrow_type)
    return column.cast(arrow_type, safe=False)


def _of_floats(column: pa.Array, target: SchemaType, arrow_type: pa.DataType) -> pa.Array:
    """Truncated, clamped to the range, 0 for NaN; types below 32 bits go through 32 bits."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if target in _FLOATS:
        return column.cast(arrow_type, safe=False)
    bits = max(32, _INTEGERS.get(target, 64))
    values = pc.fill_null(column, 0).cast("float64").to_numpy(zero_copy_only=False)
    low, high = -(2.0 ** (bits - 1)), 2.0 ** (bits - 1)
    with np.errstate(invalid="ignore"):
        within = np.where(np.isnan(values) | (values >= high) | (values < low), 0, values).astype("int64")
    whole = np.where(values >= high, 2 ** (bits - 1) - 1, np.where(values < low, -(2 ** (bits - 1)), within))
    made = pa.array(whole, pa.int64(), mask=column.is_null().to_numpy(zero_copy_only=False))
    return made.cast(arrow_type, safe=False)


def _of_texts(column: pa.Array, target: SchemaType, arrow_type: pa.DataType) -> pa.Array | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if target is SchemaType.STRING:
        return column
    if target is SchemaType.BOOLEAN:
        return pc.equal(pc.utf8_lower(column), "true")
    pattern = _FLOAT_TEXT if target in _FLOATS else _INTEGER_TEXT
    if target is SchemaType.FLOAT32 or not pc.all(pc.match_substring_regex(column, pattern)).as_py():
        return None
    try:
        return column.cast(arrow_type)
    except pa.ArrowInvalid:
        return None


def _texts(schema: Schema, column: pa.Array) -> pa.Array | None:
    import pyarrow.compute as pc

    if schema.type not in _FLOATS:
        return column.cast("string")
    size = pc.abs(column)
    plain = pc.and_(pc.greater_equal(size, 1e-3), pc.less(size, 1e7))
    if not pc.all(pc.or_(plain, pc.equal(size, 0))).as_py():
        return None
    texts = column.cast("string")
    dotted = pc.binary_join_element_wise(texts, "0", ".")
    return pc.if_else(pc.match_substring_regex(texts, r"^-?[0-9]+$"), dotted, texts)


def _by_value(schema: Schema, column: pa.Array, target: SchemaType, arrow_type: pa.DataType) -> pa.Array:
    import pyarrow as pa

    made: list[Any] = []
    wrong: list[int] = []
    first: DataError | None = None
    for row, value in enumerate(column.to_pylist()):
        try:
            made.append(cast_value(schema, value, target))
        except DataError as error:
            first = first or error
            wrong.append(row)
    if first is not None:
        raise DataError(str(first), rows=wrong) from first
    return pa.array(made, arrow_type)
