"""Columns of records in the types of a table's columns: by field name, without a loop over rows."""

from __future__ import annotations

import base64
import binascii
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DATE, DECIMAL, TIME, TIMESTAMP, DataError, Field, Schema, SchemaType
from connect.formats import json_column

__all__ = [
    "UNITS",
    "Column",
    "Shape",
    "arrow_schema",
    "column_of",
    "decimal_digits",
    "is_logical",
    "is_time",
    "list_offsets",
    "null_mask",
]

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
_TIMES: Final = frozenset({"io.debezium.time.Time", "io.debezium.time.MicroTime", "io.debezium.time.NanoTime"})
_MAX_PRECISION: Final = 38


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, or a field within one."""

    field: pa.Field
    """Its name and Arrow type, as rows for the table have them."""
    kind: str
    """The type in the format's words."""
    required: bool = False
    children: tuple[Column, ...] = ()
    """The fields of a struct, the element of a list, key and value of a map."""

    @property
    def name(self) -> str:
        return str(self.field.name)

    @property
    def type(self) -> pa.DataType:
        return self.field.type


def arrow_schema(columns: Sequence[Column]) -> pa.Schema:
    """The Arrow schema of rows of a table."""
    return pa.schema([column.field for column in columns])


def column_of(columns: Sequence[Column], name: str, *, any_case: bool) -> Column | None:
    """The column of a field."""
    exact = next((column for column in columns if column.name == name), None)
    if exact is not None or not any_case:
        return exact
    folded = name.casefold()
    return next((column for column in columns if column.name.casefold() == folded), None)


def is_logical(schema: Schema) -> bool:
    """Whether a number is a date or a time."""
    return schema.name in UNITS or schema.name in (DATE, TIME, TIMESTAMP, DECIMAL)


def is_time(schema: Schema) -> bool:
    """Whether values are times of a day."""
    return schema.name == TIME or (schema.name or "") in _TIMES


def decimal_digits(schema: Schema, name: str) -> tuple[int, int]:
    """The precision and scale of a Decimal. Raises DataError for more digits than tables have."""
    precision = int(schema.parameters.get("connect.decimal.precision", _MAX_PRECISION))
    if precision > _MAX_PRECISION or schema.scale > precision or schema.scale < 0:
        raise DataError(
            f"field {name!r} is a decimal of {precision} digits with scale {schema.scale}, and a table has up to "
            f"{_MAX_PRECISION} digits: cast it to a string, or take decimal.handling.mode=string at the source"
        )
    return precision, schema.scale


class Shape:
    """How records become rows of a table.

    Raises DataError where a value does not fit, which names the column and what it holds.
    """

    def __init__(self, *, any_case: bool, replace_null: bool) -> None:
        self._any_case, self._replace_null = any_case, replace_null

    def rows(self, values: pa.StructArray, fields: Sequence[Field], columns: Sequence[Column]) -> pa.Table:
        """The rows, with ``arrow_schema(columns)``. Fields without a column are left out."""
        made = self._children(values, fields, columns, "")
        return pa.Table.from_arrays(made, schema=arrow_schema(columns))

    def column(self, values: pa.Array, schema: Schema, column: Column) -> pa.Array:
        """One field in the type of a column."""
        return self._fitted(values, schema, column, column.name)

    def _children(
        self, values: pa.StructArray, fields: Sequence[Field], columns: Sequence[Column], path: str
    ) -> list[pa.Array]:
        numbers = self._fields_of_columns(fields, columns)
        whole = values.null_count == 0
        made = []
        for at, column in enumerate(columns):
            name = f"{path}{column.name}"
            number = numbers.get(at)
            if number is None:
                if column.required:
                    raise DataError(f"the record has no field {name}, and the column is required")
                made.append(pa.nulls(len(values), column.type))
                continue
            schema = fields[number].schema
            child = values.field(number) if whole and not values.offset else pc.struct_field(values, [number])
            if self._replace_null and schema.default is not None and child.null_count:
                child = _defaulted(child, schema, values)
            fitted = self._fitted(child, schema, column, name)
            if column.required and fitted.null_count and (whole or _null_within(values, fitted)):
                raise DataError(f"the record has no value for {name}, and the column is required")
            made.append(fitted)
        return made

    def _fields_of_columns(self, fields: Sequence[Field], columns: Sequence[Column]) -> dict[int, int]:
        by_name = {column.name: at for at, column in enumerate(columns)}
        folded = {name.casefold(): at for name, at in reversed(by_name.items())} if self._any_case else {}
        numbers: dict[int, int] = {}
        for number, field in enumerate(fields):
            at = by_name.get(field.name, folded.get(field.name.casefold()))
            if at is not None:
                if at in numbers:
                    other = fields[numbers[at]].name
                    raise DataError(f"the fields {other} and {field.name} have the same column {columns[at].name}")
                numbers[at] = number
        return numbers

    def _fitted(self, values: pa.Array, schema: Schema, column: Column, path: str) -> pa.Array:
        target = column.type
        if pa.types.is_struct(target):
            _require(schema.type is SchemaType.STRUCT, schema, column, path)
            children = self._children(values, schema.fields, column.children, f"{path}.")
            fields = [target.field(number) for number in range(target.num_fields)]
            return pa.StructArray.from_arrays(children, fields=fields, mask=null_mask(values))
        if pa.types.is_list(target):
            _require(schema.type is SchemaType.ARRAY, schema, column, path)
            assert schema.value_schema is not None
            element = column.children[0]
            items = self._fitted(values.flatten(), schema.value_schema, element, f"{path}.element")
            if element.required and items.null_count:
                raise DataError(f"{path} has an item without value, and its items are required")
            return pa.ListArray.from_arrays(list_offsets(values), items, type=target, mask=null_mask(values))
        if pa.types.is_map(target):
            _require(schema.type is SchemaType.MAP, schema, column, path)
            return self._map(values, schema, column, path)
        try:
            return _primitive(values, schema, target)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError, OverflowError) as error:
            kind = schema.name or schema.type.value
            raise DataError(f"{path} is {kind} and does not fit its column, which is {column.kind}: {error}") from error

    def _map(self, values: pa.Array, schema: Schema, column: Column, path: str) -> pa.Array:
        assert schema.key_schema is not None and schema.value_schema is not None
        key_column, value_column = column.children
        entries = values.cast(pa.list_(pa.struct([("key", values.type.key_type), ("value", values.type.item_type)])))
        pairs = entries.flatten()
        keys = self._fitted(pairs.field("key"), schema.key_schema, key_column, f"{path}.key")
        items = self._fitted(pairs.field("value"), schema.value_schema, value_column, f"{path}.value")
        if value_column.required and items.null_count:
            raise DataError(f"{path} has a key without value, and its values are required")
        return pa.MapArray.from_arrays(list_offsets(entries), keys, items, column.type, mask=null_mask(values))


def _require(right: bool, schema: Schema, column: Column, path: str) -> None:
    if not right:
        kind = schema.name or schema.type.value
        raise DataError(
            f"{path} is {kind}, and its column is {column.kind}, which it cannot become: rename the field, or drop the column"
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


def _primitive(values: pa.Array, schema: Schema, target: pa.DataType) -> pa.Array:
    if values.type == target:
        return values
    if pa.types.is_string(target):
        return _text(values, schema)
    if pa.types.is_temporal(target):
        return _temporal(values, schema, target)
    if target == pa.uuid():
        return _uuids(values)
    if (pa.types.is_binary(target) or pa.types.is_fixed_size_binary(target)) and pa.types.is_string(values.type):
        return pa.array([_from_base64(text) for text in values.to_pylist()], target)
    if pa.types.is_decimal(target) and pa.types.is_integer(values.type):
        return values.cast(pa.decimal128(19, 0)).cast(target)
    return values.cast(target)


def _text(values: pa.Array, schema: Schema) -> pa.Array:
    if schema.type in (SchemaType.STRUCT, SchemaType.ARRAY, SchemaType.MAP):
        return json_column(schema, values).cast(pa.string())
    if is_time(schema) and pa.types.is_integer(values.type):
        return _instants(values, UNITS[schema.name or ""], time=True).cast(pa.string())
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
