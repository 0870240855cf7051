"""Iceberg schemas for records' schemas: of new tables, and what an existing table needs to follow them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

from connect.api import DATE, DECIMAL, TIME, TIMESTAMP, ConnectError, DataError, Field, Schema, SchemaType

__all__ = ["UNITS", "Change", "changes_for", "field_of", "table_schema"]

UNITS: Final = {
    "io.debezium.time.Date": "d",
    "io.debezium.time.Time": "ms",
    "io.debezium.time.MicroTime": "us",
    "io.debezium.time.NanoTime": "ns",
    "io.debezium.time.Timestamp": "ms",
    "io.debezium.time.MicroTimestamp": "us",
    "io.debezium.time.NanoTimestamp": "ns",
}
"""The units of numbers that Debezium names (debezium.io, "Temporal values")."""
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
_MAX_PRECISION: Final = 38


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
        precision = int(schema.parameters.get("connect.decimal.precision", _MAX_PRECISION))
        if precision > _MAX_PRECISION or schema.scale > precision or schema.scale < 0:
            raise DataError(
                f"field {name!r} is a decimal of {precision} digits with scale {schema.scale}, and Iceberg has up to "
                f"{_MAX_PRECISION} digits: cast it to a string, or take decimal.handling.mode=string at the source"
            )
        return DecimalType(precision, schema.scale)
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


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a table's schema; ``path`` leads to the column. One of ``add``, ``widen`` or ``optional``."""

    path: tuple[str, ...]
    add: IcebergType | None = None
    widen: IcebergType | None = None
    optional: bool = False
    doc: str | None = None


def field_of(fields: Sequence[NestedField], name: str, *, any_case: bool) -> NestedField | None:
    """The column of a field."""
    exact = next((field for field in fields if field.name == name), None)
    if exact is not None or not any_case:
        return exact
    folded = name.casefold()
    return next((field for field in fields if field.name.casefold() == folded), None)


def changes_for(
    fields: Sequence[Field], columns: Sequence[NestedField], *, any_case: bool, keep_required: frozenset[str]
) -> list[Change]:
    """What the columns need so that they hold the fields.

    ``keep_required`` are the id columns. Raises ConnectError where a table cannot follow.
    """
    return list(_changes(fields, columns, (), any_case, keep_required))


def _changes(
    fields: Sequence[Field],
    columns: Sequence[NestedField],
    path: tuple[str, ...],
    any_case: bool,
    keep_required: frozenset[str],
) -> Iterator[Change]:
    for field in fields:
        column = field_of(columns, field.name, any_case=any_case)
        if column is None:
            made = _type_of(field.schema, itertools.count(1), True, field.name)
            yield Change((*path, field.name), add=made, doc=field.schema.doc)
            continue
        here = (*path, column.name)
        if column.required and field.schema.optional and ".".join(here) not in keep_required:
            yield Change(here, optional=True)
        yield from _of_type(field.schema, column.field_type, here, any_case, keep_required)


def _of_type(
    schema: Schema, column: IcebergType, path: tuple[str, ...], any_case: bool, keep_required: frozenset[str]
) -> Iterator[Change]:
    if isinstance(column, StructType) and schema.type is SchemaType.STRUCT:
        yield from _changes(schema.fields, column.fields, path, any_case, keep_required)
    elif isinstance(column, ListType) and schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        if column.element_required and schema.value_schema.optional:
            yield Change((*path, "element"), optional=True)
        yield from _of_type(schema.value_schema, column.element_type, (*path, "element"), any_case, keep_required)
    elif isinstance(column, MapType) and schema.type is SchemaType.MAP:
        assert schema.value_schema is not None
        if column.value_required and schema.value_schema.optional:
            yield Change((*path, "value"), optional=True)
        yield from _of_type(schema.value_schema, column.value_type, (*path, "value"), any_case, keep_required)
    elif (wider := _wider(schema, column, path)) is not None:
        yield Change(path, widen=wider)


def _wider(schema: Schema, column: IcebergType, path: tuple[str, ...]) -> IcebergType | None:
    """The type that a column is widened to. Raises ConnectError for a decimal that Iceberg does not widen."""
    if isinstance(column, IntegerType) and schema.type is SchemaType.INT64 and schema.name not in _LOGICAL:
        return LongType()
    if isinstance(column, FloatType) and schema.type is SchemaType.FLOAT64:
        return DoubleType()
    if isinstance(column, DecimalType) and schema.name == DECIMAL:
        made = _type_of(schema, itertools.count(1), True, ".".join(path))
        assert isinstance(made, DecimalType)
        if made.scale > column.scale:
            raise ConnectError(
                f"column {'.'.join(path)} is {column}, and the records have {made}: Iceberg never changes a scale. Add a column "
                "with the new scale and rename the field, or cast it with a transformation"
            )
        if made.scale == column.scale and made.precision > column.precision:
            return made
    return None
