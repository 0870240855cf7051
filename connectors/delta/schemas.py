"""Delta's schemas: of records' schemas, and as columns for the shared parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import Field as DeltaField
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import DeltaError
from deltalake.schema import ArrayType, MapType, PrimitiveType, StructType

from connect.api import DATE, DECIMAL, TIMESTAMP, DataError, Field, Schema, SchemaType
from connectors.tables.columns import Column, decimal_digits, is_time, list_offsets, null_mask
from connectors.tables.evolution import Change

__all__ = ["DeltaType", "changed_schema", "columns_of", "delta_type", "kind_of", "projected", "table_schema"]

DeltaType: TypeAlias = PrimitiveType | ArrayType | MapType | StructType

_LOGICAL: Final = {
    DATE: "date",
    TIMESTAMP: "timestamp",
    "io.debezium.time.Date": "date",
    "io.debezium.time.Timestamp": "timestamp_ntz",
    "io.debezium.time.MicroTimestamp": "timestamp_ntz",
    "io.debezium.time.NanoTimestamp": "timestamp_ntz",
    "io.debezium.time.ZonedTimestamp": "timestamp",
}
_PRIMITIVE: Final = {
    SchemaType.INT8: "byte",
    SchemaType.INT16: "short",
    SchemaType.INT32: "integer",
    SchemaType.INT64: "long",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.BOOLEAN: "boolean",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "binary",
}
_ARROW: Final = {
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
_DECIMAL: Final = re.compile(r"decimal\((\d+), ?(\d+)\)")


def table_schema(fields: Sequence[Field], id_columns: Sequence[str], partition_by: Sequence[str]) -> DeltaSchema:
    """The schema of a new table; every column may be null. Raises DataError where the records have no such columns."""
    names = [field.name for field in fields]
    for what, columns in (("id", id_columns), ("partition", partition_by)):
        if missing := [name for name in columns if name not in names]:
            raise DataError(
                f"the records have no field {', '.join(missing)}, which the {what} columns name; they have: {', '.join(names)}"
            )
    made = [DeltaField(field.name, delta_type(field.schema, field.name)) for field in fields]
    try:
        return DeltaSchema(made)
    except DeltaError as error:
        raise DataError(f"the records' fields cannot be columns: {error}") from error


def delta_type(schema: Schema, name: str) -> DeltaType:
    """The type of a column for a field. Raises DataError for one that Delta does not have."""
    if schema.name == DECIMAL and schema.type is SchemaType.BYTES:
        precision, scale = decimal_digits(schema, name)
        return PrimitiveType(f"decimal({precision},{scale})")
    if is_time(schema):
        return PrimitiveType("string")  # Delta has no times of day
    if schema.name in _LOGICAL:
        return PrimitiveType(_LOGICAL[schema.name])
    if schema.type is SchemaType.STRUCT:
        members = [DeltaField(each.name, delta_type(each.schema, f"{name}.{each.name}")) for each in schema.fields]
        return StructType(members)
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        return ArrayType(delta_type(schema.value_schema, f"{name}.element"), contains_null=True)
    if schema.type is SchemaType.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        keys, values = delta_type(schema.key_schema, f"{name}.key"), delta_type(schema.value_schema, f"{name}.value")
        return MapType(keys, values, value_contains_null=True)
    return PrimitiveType(_PRIMITIVE[schema.type])


def columns_of(schema: DeltaSchema) -> list[Column]:
    return [_column(field.name, field.type, nullable=field.nullable) for field in schema.fields]


def _column(name: str, kind: Any, *, nullable: bool) -> Column:
    children: tuple[Column, ...] = ()
    if isinstance(kind, StructType):
        children = tuple(_column(field.name, field.type, nullable=field.nullable) for field in kind.fields)
        arrow: pa.DataType = pa.struct([child.field for child in children])
    elif isinstance(kind, ArrayType):
        children = (_column("element", kind.element_type, nullable=kind.contains_null),)
        arrow = pa.list_(children[0].field)
    elif isinstance(kind, MapType):
        children = (
            _column("key", kind.key_type, nullable=False),
            _column("value", kind.value_type, nullable=kind.value_contains_null),
        )
        arrow = pa.map_(children[0].field, children[1].field)
    else:
        arrow = _arrow(kind_of(kind))
    return Column(pa.field(name, arrow, nullable=nullable), kind_of(kind), not nullable, children)


def _arrow(kind: str) -> pa.DataType:
    if (match := _DECIMAL.fullmatch(kind)) is not None:
        return pa.decimal128(int(match[1]), int(match[2]))
    if (known := _ARROW.get(kind)) is None:
        raise DataError(f"columns of type {kind} cannot be written")
    return known


def kind_of(kind: Any) -> str:
    """A type as Spark writes it."""
    if isinstance(kind, StructType):
        return f"struct<{', '.join(f'{field.name}: {kind_of(field.type)}' for field in kind.fields)}>"
    if isinstance(kind, ArrayType):
        return f"array<{kind_of(kind.element_type)}>"
    if isinstance(kind, MapType):
        return f"map<{kind_of(kind.key_type)}, {kind_of(kind.value_type)}>"
    return str(kind.type if isinstance(kind, PrimitiveType) else kind)


def changed_schema(columns: Sequence[Column], changes: Sequence[Change]) -> pa.Schema:
    """The Arrow schema of a table after changes. Raises DataError for a type that Delta does not have."""
    return pa.schema(_changed_fields([column.field for column in columns], changes, 0))


def _changed_fields(fields: Sequence[pa.Field], changes: Sequence[Change], depth: int) -> list[pa.Field]:
    made = [
        _changed(field, [change for change in changes if change.path[depth] == field.name], depth) for field in fields
    ]
    for change in changes:
        if change.add is not None and len(change.path) == depth + 1:
            name = change.path[-1]
            made.append(_column(name, delta_type(change.add, ".".join(change.path)), nullable=True).field)
    return made


def _changed(field: pa.Field, changes: Sequence[Change], depth: int) -> pa.Field:
    if not changes:
        return field
    for change in changes:
        if len(change.path) == depth + 1:
            field = field.with_type(change.widen) if change.widen is not None else field.with_nullable(True)
    inner = [change for change in changes if len(change.path) > depth + 1]
    kind = field.type
    if pa.types.is_struct(kind):
        members = [kind.field(number) for number in range(kind.num_fields)]
        return field.with_type(pa.struct(_changed_fields(members, inner, depth + 1)))
    if pa.types.is_list(kind):
        return field.with_type(pa.list_(_changed_fields([kind.value_field], inner, depth + 1)[0]))
    if pa.types.is_map(kind):
        return field.with_type(pa.map_(*_changed_fields([kind.key_field, kind.item_field], inner, depth + 1)))
    return field


def projected(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Rows of an older schema in a newer one, by names."""
    made = [
        _cast(rows.column(field.name).combine_chunks(), field.type)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(made, schema=schema)


def _cast(values: pa.Array, target: pa.DataType) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.chunk(0) if values.num_chunks else pa.array([], values.type)
    if values.type == target:
        return values
    if pa.types.is_struct(target) and pa.types.is_struct(values.type):
        names = [field.name for field in values.type]
        members = [target.field(number) for number in range(target.num_fields)]
        made = [
            _cast(pc.struct_field(values, [names.index(member.name)]), member.type)
            if member.name in names
            else pa.nulls(len(values), member.type)
            for member in members
        ]
        return pa.StructArray.from_arrays(made, fields=members, mask=null_mask(values))
    if pa.types.is_list(target) and pa.types.is_list(values.type):
        items = _cast(values.flatten(), target.value_type)
        return pa.ListArray.from_arrays(list_offsets(values), items, type=target, mask=null_mask(values))
    if pa.types.is_map(target) and pa.types.is_map(values.type):
        kind = values.type
        listed = values.cast(pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
        entries = listed.flatten()
        keys, items = _cast(entries.field("key"), target.key_type), _cast(entries.field("value"), target.item_type)
        return pa.MapArray.from_arrays(list_offsets(listed), keys, items, target, mask=null_mask(values))
    return values.cast(target)
