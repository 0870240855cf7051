"""Arrow types of decoded values as Spark's types.

As in Spark's ``from_avro``: an enum is a string, a fixed is binary, a time of day is a number (``time-millis`` INT, ``time-micros``
BIGINT), timestamps have microseconds, a union of several values is a struct with one field for each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

__all__ = ["converted", "projected", "spark_arrow", "spark_type"]

_MOST_DIGITS: Final = 38


def spark_arrow(type_: pa.DataType, path: str = "") -> pa.DataType:
    """The Arrow type in which Spark takes values of another one, every member nullable. Raises UsageError for a field that Spark has no type for."""
    if pa.types.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        return pa.struct([pa.field(f.name, spark_arrow(f.type, _join(path, f.name))) for f in fields])
    if pa.types.is_list(type_):
        return pa.list_(pa.field("item", spark_arrow(type_.value_type, f"{path}[]")))
    if pa.types.is_map(type_):
        return pa.map_(type_.key_type, pa.field("value", spark_arrow(type_.item_type, f"{path}[]")))
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", type_.tz)
    if pa.types.is_time32(type_):
        return pa.int32()
    if pa.types.is_time64(type_):
        return pa.int64()
    if pa.types.is_fixed_size_binary(type_):
        return pa.binary()
    if pa.types.is_decimal256(type_):
        raise UsageError(f"the field {path} has decimals of {type_.precision} digits, and Spark holds {_MOST_DIGITS}")
    return type_


def converted(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """The column in the type that ``spark_arrow`` gave for its own. Nanoseconds are cut off, as Spark does."""
    if column.type.equals(type_):
        return column
    if pa.types.is_struct(type_):
        children = [converted(column.field(i), type_.field(i).type) for i in range(type_.num_fields)]
        mask = column.is_null() if column.null_count else None
        # Below a null struct a required field has a null of its own, so all fields are taken for nullable.
        return pa.StructArray.from_arrays(
            children, fields=[_nullable(type_.field(i)) for i in range(len(children))], mask=mask
        )
    mask = column.is_null() if column.null_count else None
    if pa.types.is_list(type_):
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        return pa.ListArray.from_arrays(_offsets(lengths), converted(column.flatten(), type_.value_type), mask=mask)
    if pa.types.is_map(type_):
        first, stop = column.offsets[0].as_py(), column.offsets[-1].as_py()
        items = converted(column.items.slice(first, stop - first), type_.item_type)
        offsets = pc.subtract(column.offsets, pa.scalar(first, pa.int32()))
        return pa.MapArray.from_arrays(offsets, column.keys.slice(first, stop - first), items, mask=mask)
    return column.cast(type_, safe=False)


def _nullable(field: pa.Field) -> pa.Field:
    return field.with_nullable(True)


def _offsets(lengths: pa.Array) -> pa.Array:
    return pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])


def projected(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """The column with the fields of another type, by their names: a field that the column lacks is null, further ones go."""
    if column.type.equals(type_):
        return column
    if pa.types.is_struct(type_) and pa.types.is_struct(column.type):
        names = {column.type.field(i).name: i for i in range(column.type.num_fields)}
        targets = [type_.field(i) for i in range(type_.num_fields)]
        children = [
            projected(column.field(names[field.name]), field.type)
            if field.name in names
            else pa.nulls(len(column), field.type)
            for field in targets
        ]
        mask = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(children, fields=[_nullable(field) for field in targets], mask=mask)
    if pa.types.is_list(type_) and pa.types.is_list(column.type):
        lengths = pc.fill_null(pc.list_value_length(column), 0)
        mask = column.is_null() if column.null_count else None
        return pa.ListArray.from_arrays(_offsets(lengths), projected(column.flatten(), type_.value_type), mask=mask)
    return column.cast(type_)


def spark_type(type_: pa.DataType) -> DataType:
    """Spark's type of an Arrow type that ``spark_arrow`` gave; every member may be null."""
    from pyspark.sql.pandas.types import from_arrow_type
    from pyspark.sql.types import ArrayType, MapType, StringType, StructField, StructType

    if pa.types.is_struct(type_):
        fields = (type_.field(i) for i in range(type_.num_fields))
        return StructType([StructField(field.name, spark_type(field.type), nullable=True) for field in fields])
    if pa.types.is_list(type_):
        return ArrayType(spark_type(type_.value_type), containsNull=True)
    if pa.types.is_map(type_):
        return MapType(StringType(), spark_type(type_.item_type), valueContainsNull=True)
    return from_arrow_type(type_, prefer_timestamp_ntz=True)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
