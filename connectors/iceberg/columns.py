"""The columns of Iceberg's schemas, in Arrow's types and for the shared parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pyarrow as pa
from pyiceberg.schema import Schema as TableSchema
from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FixedType,
    IcebergType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
    UUIDType,
)

from connect.api import DataError
from connectors.tables.columns import Column

__all__ = ["arrow_schema", "arrow_type", "columns_of", "iceberg_type"]

_FIELD_ID: Final = b"PARQUET:field_id"
_PRIMITIVE: Final = {
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "time": pa.time64("us"),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", tz="UTC"),
    "timestamp_ns": pa.timestamp("ns"),
    "timestamptz_ns": pa.timestamp("ns", tz="UTC"),
    "string": pa.string(),
    "binary": pa.binary(),
}


def columns_of(schema: TableSchema) -> list[Column]:
    return [_column(field, _arrow_field(field).with_nullable(field.optional)) for field in schema.fields]


def _column(field: NestedField, arrow: pa.Field) -> Column:
    kind = field.field_type
    members: Sequence[NestedField] = ()
    if isinstance(kind, StructType):
        members = kind.fields
    elif isinstance(kind, ListType):
        members = (kind.element_field,)
    elif isinstance(kind, MapType):
        members = (kind.key_field, kind.value_field)
    children = tuple(_column(member, _arrow_field(member)) for member in members)
    return Column(arrow, str(kind), field.required, children)


def iceberg_type(widened: pa.DataType) -> IcebergType:
    """The type that a column is widened to."""
    if pa.types.is_decimal(widened):
        return DecimalType(widened.precision, widened.scale)
    return DoubleType() if pa.types.is_floating(widened) else LongType()


def arrow_schema(fields: Sequence[NestedField]) -> pa.Schema:
    """The Arrow schema of rows of a table, with Iceberg's field ids for Parquet."""
    return pa.schema([_arrow_field(field).with_nullable(field.optional) for field in fields])


def _arrow_field(field: NestedField) -> pa.Field:
    """Required fields within others are optional in files: without the field around them they have no value."""
    metadata = {_FIELD_ID: str(field.field_id).encode()}
    return pa.field(field.name, arrow_type(field.field_type), metadata=metadata)


def arrow_type(column: IcebergType) -> pa.DataType:
    if isinstance(column, StructType):
        return pa.struct([_arrow_field(field) for field in column.fields])
    if isinstance(column, ListType):
        return pa.list_(_arrow_field(column.element_field))
    if isinstance(column, MapType):
        return pa.map_(_arrow_field(column.key_field).with_nullable(False), _arrow_field(column.value_field))
    if isinstance(column, DecimalType):
        return pa.decimal128(column.precision, column.scale)
    if isinstance(column, FixedType):
        return pa.binary(len(column))
    if isinstance(column, UUIDType):
        return pa.uuid()
    known = _PRIMITIVE.get(str(column))
    if known is None:
        raise DataError(f"columns of type {column} cannot be written")
    return known
