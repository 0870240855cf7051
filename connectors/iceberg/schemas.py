"""Iceberg schemas for records' schemas."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final

from pyiceberg.schema import Schema as TableSchema
from pyiceberg.types import (
    BinaryType,
    BooleanType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StringType,
    StructType,
    TimestampType,
    TimestamptzType,
    TimeType,
)

from connect.api import DATE, DECIMAL, TIME, TIMESTAMP, DataError, Field, Schema, SchemaType
from connectors.tables.columns import decimal_digits

__all__ = ["table_schema", "type_of"]

_LOGICAL: Final = {
    DATE: DateType(),
    TIME: TimeType(),
    TIMESTAMP: TimestamptzType(),
    "io.debezium.time.Date": DateType(),
    "io.debezium.time.Time": TimeType(),
    "io.debezium.time.MicroTime": TimeType(),
    "io.debezium.time.NanoTime": TimeType(),
    "io.debezium.time.Timestamp": TimestampType(),
    "io.debezium.time.MicroTimestamp": TimestampType(),
    "io.debezium.time.NanoTimestamp": TimestampType(),
    "io.debezium.time.ZonedTimestamp": TimestamptzType(),
}
_PRIMITIVE: Final = {
    SchemaType.INT8: IntegerType(),
    SchemaType.INT16: IntegerType(),
    SchemaType.INT32: IntegerType(),
    SchemaType.INT64: LongType(),
    SchemaType.FLOAT32: FloatType(),
    SchemaType.FLOAT64: DoubleType(),
    SchemaType.BOOLEAN: BooleanType(),
    SchemaType.STRING: StringType(),
    SchemaType.BYTES: BinaryType(),
}


def table_schema(
    fields: Sequence[Field], id_columns: Sequence[str] = (), *, force_optional: bool = False
) -> TableSchema:
    """The schema of a new table. Raises DataError for a type that Iceberg does not have, and for missing id columns."""
    ids = itertools.count(1)
    members = list(_members(fields, ids, force_optional))
    by_name = {member.name: member for member in members}
    if missing := [name for name in id_columns if name not in by_name]:
        raise DataError(
            f"the records have no field {', '.join(missing)}, which the id columns name; they have: {', '.join(by_name)}"
        )
    members = [
        member.model_copy(update={"required": True}) if member.name in id_columns else member for member in members
    ]
    return TableSchema(*members, identifier_field_ids=[by_name[name].field_id for name in id_columns])


def _members(fields: Sequence[Field], ids: Iterator[int], force_optional: bool) -> Iterator[NestedField]:
    for field in fields:
        number = next(ids)
        required = not (field.schema.optional or force_optional)
        made = _type_of(field.schema, ids, force_optional, field.name)
        yield NestedField(number, field.name, made, required=required, doc=field.schema.doc)


def _type_of(schema: Schema, ids: Iterator[int], force_optional: bool, name: str) -> IcebergType:
    if schema.name == DECIMAL and schema.type is SchemaType.BYTES:
        return DecimalType(*decimal_digits(schema, name))
    if schema.name in _LOGICAL:
        return _LOGICAL[schema.name]
    # Within what may be missing nothing is required: pyiceberg cannot read a required field of a struct that is null.
    inner_optional = force_optional or schema.optional
    if schema.type is SchemaType.STRUCT:
        return StructType(*_members(schema.fields, ids, inner_optional))
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        number, items = next(ids), schema.value_schema
        made = _type_of(items, ids, inner_optional, f"{name}.element")
        return ListType(number, made, element_required=not (items.optional or inner_optional))
    if schema.type is SchemaType.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        key_id, value_id, values = next(ids), next(ids), schema.value_schema
        return MapType(
            key_id,
            _type_of(schema.key_schema, ids, False, f"{name}.key"),
            value_id,
            _type_of(values, ids, inner_optional, f"{name}.value"),
            value_required=not (values.optional or inner_optional),
        )
    return _PRIMITIVE[schema.type]


def type_of(schema: Schema, name: str) -> IcebergType:
    """The type of a column that is added; nothing within it is required. Raises DataError for one that Iceberg does not
    have.
    """
    return _type_of(schema, itertools.count(1), True, name)
