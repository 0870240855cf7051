"""Maps Avro types to Arrow types and back.

Record → struct, array → list, map → map, enum → string, fixed → fixed-size binary, a union with null → nullable. A
union of several types is a struct with one nullable field per type, exactly one of them set (Confluent's form in
Connect).
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

import pyarrow as pa

from registry.formats.avro.model import ArrayType, AvroType, FixedType, MapType, RecordType, UnionType
from registry.formats.avro.schema import AvroSchema
from registry.serde.errors import SerializationError
from registry.serde.logical import branch_names, decimal_of, logical_of, value_branches

__all__ = ["DAY", "UnsupportedSchema", "arrow_type", "avro_schema", "is_nullable", "type_to_arrow"]


MAX_COLUMNS = 10_000
DAY = {"ms": 86_400_000, "us": 86_400_000_000}
"""The length of a day in the units of a time of day."""


class UnsupportedSchema(SerializationError):
    """A schema that can't be represented as columns: recursive, too many columns, or decimals of more than 76 digits."""


@lru_cache(maxsize=1000)
def arrow_type(schema: AvroSchema) -> pa.DataType:
    """The Arrow type of a schema's values; raises UnsupportedSchema."""
    columns = _columns(schema.type, {})
    if columns > MAX_COLUMNS:
        raise UnsupportedSchema(
            f"the schema has {columns} columns once its records are written out, more than {MAX_COLUMNS}"
        )
    return type_to_arrow(schema.type)


def _columns(type_: AvroType, known: dict[int, int]) -> int:
    """The number of columns for a type, including nested ones; a record counts once per use."""
    match type_:
        case RecordType():
            if id(type_) not in known:
                known[id(type_)] = 0
                known[id(type_)] = 1 + sum(_columns(field.type, known) for field in type_.fields)
            return known[id(type_)]
        case ArrayType():
            return 1 + _columns(type_.items, known)
        case MapType():
            return 2 + _columns(type_.values, known)
        case UnionType():
            return 1 + sum(_columns(branch, known) for branch in type_.branches)
    return 1


def type_to_arrow(type_: AvroType, path: str = "", within: tuple[int, ...] = ()) -> pa.DataType:
    match type_:
        case RecordType():
            if id(type_) in within:
                raise UnsupportedSchema(f"the record {type_.full_name} holds itself, which columns cannot", path=path)
            within = (*within, id(type_))
            return pa.struct(
                [
                    pa.field(
                        field.name, type_to_arrow(field.type, _join(path, field.name), within), is_nullable(field.type)
                    )
                    for field in type_.fields
                ]
            )
        case ArrayType():
            return pa.list_(pa.field("item", type_to_arrow(type_.items, f"{path}[]", within), is_nullable(type_.items)))
        case MapType():
            value = pa.field("value", type_to_arrow(type_.values, f"{path}[]", within), is_nullable(type_.values))
            return pa.map_(pa.string(), value)
        case UnionType():
            branches = [type_to_arrow(branch, path, within) for _, branch in value_branches(type_)]
            if not branches:
                return pa.null()
            if len(branches) == 1:
                return branches[0]
            return pa.struct([pa.field(n, t, True) for n, t in zip(branch_names(type_), branches, strict=True)])
    return _scalar(type_, path)


_PLAIN = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
}
_LOGICAL = {
    "date": pa.date32(),
    "time-millis": pa.time32("ms"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("ms", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("ms"),
    "local-timestamp-micros": pa.timestamp("us"),
    "timestamp-nanos": pa.timestamp("ns", "UTC"),
    "local-timestamp-nanos": pa.timestamp("ns"),
    "uuid": pa.string(),
}


def _scalar(type_: AvroType, path: str) -> pa.DataType:
    logical = logical_of(type_)
    if logical == "decimal":
        precision, scale = decimal_of(type_) or (0, 0)
        if precision > 76:
            raise UnsupportedSchema(f"a decimal of {precision} digits is wider than columns go (76)", path=path)
        return pa.decimal128(precision, scale) if precision <= 38 else pa.decimal256(precision, scale)
    if logical is not None:
        return _LOGICAL[logical]
    return pa.binary(type_.size) if isinstance(type_, FixedType) else _PLAIN[type_.kind]


def is_nullable(type_: AvroType) -> bool:
    """Whether a column of the type may contain nulls."""
    return type_.kind == "null" or (isinstance(type_, UnionType) and any(b.kind == "null" for b in type_.branches))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def avro_schema(type_: pa.DataType, name: str = "Record", namespace: str | None = None) -> AvroSchema:
    """A schema for values of an Arrow type. Nested structs are named after their path. Raises UnsupportedSchema.

    Types that Avro lacks become the next wider one: unsigned and small integers, timestamps in seconds (as
    microseconds), half floats. Times in nanoseconds become microseconds; writing a value that would lose precision is
    an error.
    """
    full_name = f"{namespace}.{name}" if namespace else name
    return AvroSchema.parse(json.dumps(_to_avro(type_, full_name, "")))


def _to_avro(type_: pa.DataType, name: str, path: str) -> Any:
    if pa.types.is_struct(type_):
        return {
            "type": "record",
            "name": name,
            "fields": [_field_to_avro(field, f"{name}_{field.name}", _join(path, field.name)) for field in type_],
        }
    if pa.types.is_map(type_):
        if not (pa.types.is_string(type_.key_type) or pa.types.is_large_string(type_.key_type)):
            raise UnsupportedSchema(f"a map with keys of {type_.key_type}; Avro's are strings", path=path)
        return {"type": "map", "values": _item_to_avro(type_.item_field, f"{name}_value", f"{path}[]")}
    if pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_):
        return {"type": "array", "items": _item_to_avro(type_.value_field, f"{name}_item", f"{path}[]")}
    if pa.types.is_dictionary(type_):
        return _to_avro(type_.value_type, name, path)
    if pa.types.is_decimal(type_):
        if type_.scale < 0:
            raise UnsupportedSchema(f"a decimal of negative scale {type_.scale}", path=path)
        return {"type": "bytes", "logicalType": "decimal", "precision": type_.precision, "scale": type_.scale}
    if pa.types.is_fixed_size_binary(type_):
        return {"type": "fixed", "name": f"{name}_fixed", "size": type_.byte_width}
    for matches, avro in _TO_AVRO:
        if matches(type_):
            return avro(type_) if callable(avro) else avro
    raise UnsupportedSchema(f"Arrow type {type_} has no Avro type", path=path)


def _field_to_avro(field: pa.Field, name: str, path: str) -> dict[str, Any]:
    made: dict[str, Any] = {"name": field.name, "type": _item_to_avro(field, name, path)}
    if field.nullable:
        made["default"] = None
    return made


def _item_to_avro(field: pa.Field, name: str, path: str) -> Any:
    avro = _to_avro(field.type, name, path)
    return ["null", avro] if field.nullable and avro != "null" else avro


def _logical(type_: str, logical: str) -> dict[str, str]:
    return {"type": type_, "logicalType": logical}


def _timestamp(type_: pa.DataType) -> dict[str, str]:
    unit = {"ms": "millis", "ns": "nanos"}.get(type_.unit, "micros")
    return _logical("long", f"{'local-' if type_.tz is None else ''}timestamp-{unit}")


_TO_AVRO: tuple[tuple[Any, Any], ...] = (
    (pa.types.is_null, "null"),
    (pa.types.is_boolean, "boolean"),
    (lambda t: pa.types.is_integer(t) and (t.bit_width < 32 or t == pa.int32()), "int"),
    (lambda t: pa.types.is_integer(t) and t != pa.uint64(), "long"),
    (pa.types.is_uint64, {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}),
    (lambda t: pa.types.is_float16(t) or pa.types.is_float32(t), "float"),
    (pa.types.is_float64, "double"),
    (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t) or t == pa.string_view(), "string"),
    (lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t) or t == pa.binary_view(), "bytes"),
    (pa.types.is_date, _logical("int", "date")),
    (pa.types.is_time32, _logical("int", "time-millis")),
    (pa.types.is_time64, _logical("long", "time-micros")),
    (pa.types.is_timestamp, _timestamp),
)
