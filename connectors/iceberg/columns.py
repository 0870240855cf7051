"""Columns of records in the types of a table's columns: by field name, without a loop over rows."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    FixedType,
    IcebergType,
    ListType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
    UUIDType,
)

from connect.api import DataError, Field, Schema, SchemaType
from connect.formats import json_column
from connectors.iceberg.schemas import UNITS, field_of

__all__ = ["Shape", "arrow_schema", "arrow_type", "list_offsets", "null_mask"]

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


class Shape:
    """How records become rows of a table.

    Raises DataError where a value does not fit, which names the column and what it holds.
    """

    def __init__(self, *, any_case: bool, replace_null: bool) -> None:
        self._any_case, self._replace_null = any_case, replace_null

    def rows(self, values: pa.StructArray, fields: Sequence[Field], columns: Sequence[NestedField]) -> pa.Table:
        """The rows, with ``arrow_schema(columns)``. Fields without a column are left out."""
        made = self._children(values, fields, columns, "")
        return pa.Table.from_arrays(made, schema=arrow_schema(columns))

    def column(self, values: pa.Array, schema: Schema, column: NestedField) -> pa.Array:
        """One field in the type of a column."""
        return self._fitted(values, schema, column.field_type, column.name)

    def _children(
        self, values: pa.StructArray, fields: Sequence[Field], columns: Sequence[NestedField], path: str
    ) -> list[pa.Array]:
        numbers = self._fields_of_columns(fields, columns)
        whole = values.null_count == 0
        made = []
        for column in columns:
            name = f"{path}{column.name}"
            number = numbers.get(column.field_id)
            if number is None:
                if column.required:
                    raise DataError(f"the record has no field {name}, and the column is required")
                made.append(pa.nulls(len(values), arrow_type(column.field_type)))
                continue
            schema = fields[number].schema
            child = values.field(number) if whole and not values.offset else pc.struct_field(values, [number])
            if self._replace_null and schema.default is not None and child.null_count:
                child = _defaulted(child, schema, values)
            fitted = self._fitted(child, schema, column.field_type, name)
            if column.required and fitted.null_count and (whole or _null_within(values, fitted)):
                raise DataError(f"the record has no value for {name}, and the column is required")
            made.append(fitted)
        return made

    def _fields_of_columns(self, fields: Sequence[Field], columns: Sequence[NestedField]) -> dict[int, int]:
        numbers: dict[int, int] = {}
        for number, field in enumerate(fields):
            column = field_of(columns, field.name, any_case=self._any_case)
            if column is not None:
                if column.field_id in numbers:
                    other = fields[numbers[column.field_id]].name
                    raise DataError(f"the fields {other} and {field.name} have the same column {column.name}")
                numbers[column.field_id] = number
        return numbers

    def _fitted(self, values: pa.Array, schema: Schema, column: IcebergType, path: str) -> pa.Array:
        if isinstance(column, StructType):
            _require(schema.type is SchemaType.STRUCT, schema, column, path)
            children = self._children(values, schema.fields, column.fields, f"{path}.")
            fields = [_arrow_field(field) for field in column.fields]
            return pa.StructArray.from_arrays(children, fields=fields, mask=null_mask(values))
        if isinstance(column, ListType):
            _require(schema.type is SchemaType.ARRAY, schema, column, path)
            assert schema.value_schema is not None
            items = self._fitted(values.flatten(), schema.value_schema, column.element_type, f"{path}.element")
            if column.element_required and items.null_count:
                raise DataError(f"{path} has an item without value, and its items are required")
            return pa.ListArray.from_arrays(
                list_offsets(values), items, type=arrow_type(column), mask=null_mask(values)
            )
        if isinstance(column, MapType):
            _require(schema.type is SchemaType.MAP, schema, column, path)
            return self._map(values, schema, column, path)
        try:
            return _primitive(values, schema, column)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, OverflowError) as error:
            kind = schema.name or schema.type.value
            raise DataError(f"{path} is {kind} and does not fit its column, which is {column}: {error}") from error

    def _map(self, values: pa.Array, schema: Schema, column: MapType, path: str) -> pa.Array:
        assert schema.key_schema is not None and schema.value_schema is not None
        entries = values.cast(pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])))
        pairs = entries.flatten()
        keys = self._fitted(pairs.field("key"), schema.key_schema, column.key_type, f"{path}.key")
        items = self._fitted(pairs.field("value"), schema.value_schema, column.value_type, f"{path}.value")
        if column.value_required and items.null_count:
            raise DataError(f"{path} has a key without value, and its values are required")
        return pa.MapArray.from_arrays(list_offsets(entries), keys, items, arrow_type(column), mask=null_mask(values))


def _require(right: bool, schema: Schema, column: IcebergType, path: str) -> None:
    if not right:
        kind = schema.name or schema.type.value
        raise DataError(
            f"{path} is {kind}, and its column is {column}, which it cannot become: rename the field, or drop the column"
        )


def _null_within(parents: pa.Array, children: pa.Array) -> bool:
    """Whether a child is null whose parent is not."""
    return bool(pc.any(pc.and_(children.is_null(), parents.is_valid())).as_py())


def _defaulted(child: pa.Array, schema: Schema, parents: pa.Array) -> pa.Array:
    try:
        default = pa.scalar(schema.default, child.type)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError):
        return child
    filled = pc.if_else(child.is_null(), default, child)
    return filled if not parents.null_count else pc.if_else(parents.is_null(), pa.scalar(None, child.type), filled)


def list_offsets(values: pa.Array) -> pa.Array:
    """Offsets into the flattened items of a list column."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).cast(pa.int64())
    ends = pc.cumulative_sum(lengths)
    return pa.concat_arrays([pa.array([0], pa.int32()), ends.cast(pa.int32())])


def null_mask(values: pa.Array) -> pa.Array | None:
    """Where a column is null, as ``from_arrays`` takes it."""
    return values.is_null() if values.null_count else None


def _primitive(values: pa.Array, schema: Schema, column: IcebergType) -> pa.Array:
    target = arrow_type(column)
    if values.type == target:
        return values
    if isinstance(column, StringType):
        return _text(values, schema)
    if isinstance(column, DateType | TimeType | TimestampType | TimestamptzType):
        return _temporal(values, schema, target)
    if isinstance(column, UUIDType):
        return _uuids(values)
    if isinstance(column, BinaryType | FixedType) and pa.types.is_string(values.type):
        return pa.array([_from_base64(text) for text in values.to_pylist()], target)
    if isinstance(column, DecimalType) and pa.types.is_integer(values.type):
        return values.cast(pa.decimal128(19, 0)).cast(target)
    return values.cast(target)


def _text(values: pa.Array, schema: Schema) -> pa.Array:
    if schema.type in (SchemaType.STRUCT, SchemaType.ARRAY, SchemaType.MAP):
        return json_column(schema, values).cast(pa.string())
    if pa.types.is_binary(values.type):
        return pa.array([None if v is None else base64.b64encode(v).decode() for v in values.to_pylist()], pa.string())
    return values.cast(pa.string())


def _temporal(values: pa.Array, schema: Schema, target: pa.DataType) -> pa.Array:
    """Numbers have the unit that Debezium's name says; others are milliseconds, and days for a date."""
    if pa.types.is_string(values.type):
        return _parsed(values, target)
    if pa.types.is_integer(values.type):
        unit = UNITS.get(schema.name or "", "d" if pa.types.is_date(target) else "ms")
        values = _instants(values, unit, time=pa.types.is_time(target))
    if pa.types.is_timestamp(values.type) and pa.types.is_timestamp(target):
        return values.cast(pa.timestamp("us", "UTC")).cast(target)
    return values.cast(target)


def _instants(numbers: pa.Array, unit: str, *, time: bool) -> pa.Array:
    if unit == "d":
        return numbers.cast(pa.int32()).cast(pa.date32())
    micros = numbers.cast(pa.int64())
    if unit == "ns":
        micros = pc.floor_temporal(micros.cast(pa.timestamp("ns")), unit="microsecond").cast(pa.timestamp("us"))
        micros = micros.cast(pa.int64())
    elif unit == "ms":
        micros = pc.multiply_checked(micros, 1000)
    return micros.cast(pa.time64("us")) if time else micros.cast(pa.timestamp("us", "UTC"))


def _parsed(texts: pa.Array, target: pa.DataType) -> pa.Array:
    """Texts as ISO 8601 writes them; a timestamp without a zone is in UTC."""
    if pa.types.is_time(target):
        instants = pc.binary_join_element_wise("1970-01-01T", texts, "")
        return instants.cast(pa.timestamp("us")).cast(target)
    if not pa.types.is_timestamp(target):
        return texts.cast(target)
    try:
        return texts.cast(pa.timestamp("us", "UTC")).cast(target)
    except pa.ArrowInvalid:
        return texts.cast(pa.timestamp("us")).cast(pa.timestamp("us", "UTC")).cast(target)


def _uuids(values: pa.Array) -> pa.Array:
    def of(value: Any) -> bytes | None:
        return None if value is None else value if isinstance(value, bytes) else uuid.UUID(value).bytes

    storage = pa.array([of(value) for value in values.to_pylist()], pa.binary(16))
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _from_base64(text: str | None) -> bytes | None:
    try:
        return None if text is None else base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError(f"{str(text)[:40]!r} is not base64: {error}") from error
