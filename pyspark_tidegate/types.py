"""Arrow types of decoded values, and the Arrow and SQL types that Spark has for them.

The choices are those of Spark's ``from_avro``. An enum is a string. A fixed is binary. A time of day is a number:
``time-millis`` INT, ``time-micros`` BIGINT. Timestamps have microseconds. A union of several values is a struct with a
field for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = ["converted", "spark_arrow", "spark_type"]

_MOST_DIGITS: Final = 38


def spark_arrow(type_: pa.DataType, path: str = "") -> pa.DataType:
    """The Arrow type in which Spark takes values of another Arrow type, every member nullable.

    Raises UsageError for a field that Spark has no type for.
    """
    if pa.types.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        return pa.struct([pa.field(f.name, spark_arrow(f.type, _join(path, f.name))) for f in fields])
    if pa.types.is_list(type_):
        return pa.list_(pa.field("item", spark_arrow(type_.value_type, f"{path}[]")))
    if pa.types.is_map(type_):
        return pa.map_(spark_arrow(type_.key_type, path), pa.field("value", spark_arrow(type_.item_type, f"{path}[]")))
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_time32(type_):
        return pa.int32()
    if pa.types.is_time64(type_):
        return pa.int64()
    if pa.types.is_fixed_size_binary(type_):
        return pa.binary()
    if pa.types.is_uint32(type_):
        return pa.int64()
    if pa.types.is_uint64(type_):
        return pa.decimal128(20, 0)
    if pa.types.is_decimal256(type_):
        raise UsageError(f"the field {path} has decimals of {type_.precision} digits, and Spark holds {_MOST_DIGITS}")
    return type_


def converted(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """The column in another type. Fields of structs are matched by name: a field that the column lacks is null.

    Nanoseconds are cut off, as Spark does. Any other value that the type can't hold raises ArrowInvalid.
    """
    if column.type.equals(type_):
        return column
    mask = column.is_null() if column.null_count else None
    if pa.types.is_struct(type_) and pa.types.is_struct(column.type):
        fields = [type_.field(i) for i in range(type_.num_fields)]
        positions = (column.type.get_field_index(field.name) for field in fields)
        children = [
            converted(column.field(at), field.type) if at >= 0 else pa.nulls(len(column), field.type)
            for at, field in zip(positions, fields, strict=True)
        ]
        # Below a null struct a required field has a null too, so all fields are taken for nullable.
        return pa.StructArray.from_arrays(children, fields=[field.with_nullable(True) for field in fields], mask=mask)
    if pa.types.is_list(type_) and pa.types.is_list(column.type):
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
        return pa.ListArray.from_arrays(offsets, converted(column.flatten(), type_.value_type), mask=mask)
    if pa.types.is_map(type_) and pa.types.is_map(column.type):
        first, stop = column.offsets[0].as_py(), column.offsets[-1].as_py()
        keys = column.keys.slice(first, stop - first)
        items = converted(column.items.slice(first, stop - first), type_.item_type)
        offsets = pc.subtract(column.offsets, pa.scalar(first, pa.int32()))
        return pa.MapArray.from_arrays(offsets, keys.cast(type_.key_type), items, mask=mask)
    nanoseconds = pa.types.is_timestamp(column.type) and column.type.unit == "ns"
    return column.cast(type_, safe=not nanoseconds)


def spark_type(type_: pa.DataType) -> DataType:
    """Spark's type of an Arrow type that ``spark_arrow`` gave; every member may be null."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import ArrayType, MapType, StructField, StructType

    if pa.types.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        return StructType([StructField(field.name, spark_type(field.type), nullable=True) for field in fields])
    if pa.types.is_list(type_):
        return ArrayType(spark_type(type_.value_type), containsNull=True)
    if pa.types.is_map(type_):
        return MapType(spark_type(type_.key_type), spark_type(type_.item_type), valueContainsNull=True)
    return from_arrow_type(type_, prefer_timestamp_ntz=True)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
