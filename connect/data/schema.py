"""Connect's data model: schemas, their logical types, and their Arrow form.

A schema has facts that Arrow lacks (name, version, doc, default, parameters) and derives the Arrow type of its values.
The model is Kafka Connect's ``org.apache.kafka.connect.data.Schema``; the logical types are its four.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from connect.data.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "DATE",
    "DECIMAL",
    "TIME",
    "TIMESTAMP",
    "Field",
    "Schema",
    "SchemaType",
    "schema_from_arrow",
]

DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
PRECISION: Final = "connect.decimal.precision"
"""Confluent's parameter for the precision of a decimal, which Connect's own model lacks."""
_MAX_PRECISION: Final = 76


class SchemaType(Enum):
    """Kafka Connect's types under its names."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float32"
    FLOAT64 = "float64"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


@dataclass(frozen=True, slots=True)
class Field:
    """A named member of a struct."""

    name: str
    schema: Schema


@dataclass(frozen=True, eq=True)
class Schema:
    """The type of a key, a value or a part of one. Immutable; equal if all attributes are.

    ``default`` is in the Python form of the type and only meaningful when not None. Python forms: int, float, bool,
    str, bytes, list, dict; dict by field name for a struct; ``decimal.Decimal``, ``datetime.date``, ``datetime.time``
    and an aware UTC ``datetime.datetime`` for the logical types.
    """

    type: SchemaType
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    default: Any = None
    parameters: Mapping[str, str] = dataclasses.field(default_factory=dict)
    fields: tuple[Field, ...] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    """The schema of an array's items or a map's values."""
    is_java_sql: bool = dataclasses.field(default=False, compare=False, repr=False)
    """For a date, time or timestamp: whether Kafka Connect has these values as ``java.sql.Date``, ``Time`` or
    ``Timestamp``, as from the JDBC source, instead of ``java.util.Date``.

    Only StringConverter distinguishes them.
    """

    def __hash__(self) -> int:
        return hash((self.type, self.optional, self.name, self.version, self.fields, self.value_schema))

    @classmethod
    def struct(cls, fields: Mapping[str, Schema] | Sequence[Field], **more: Any) -> Schema:
        """A struct of the given fields, in their order; ``more`` is ``name``, ``optional``, ``doc`` and so on."""
        members = (Field(n, s) for n, s in fields.items()) if isinstance(fields, Mapping) else fields
        return cls(SchemaType.STRUCT, fields=tuple(members), **more)

    @classmethod
    def array(cls, items: Schema, **more: Any) -> Schema:
        return cls(SchemaType.ARRAY, value_schema=items, **more)

    @classmethod
    def map(cls, keys: Schema, values: Schema, **more: Any) -> Schema:
        return cls(SchemaType.MAP, key_schema=keys, value_schema=values, **more)

    @classmethod
    def decimal(cls, scale: int, precision: int | None = None, **more: Any) -> Schema:
        """An exact number with ``scale`` digits after the point; without a precision, with up to 38 digits."""
        parameters = {"scale": str(scale)} | ({PRECISION: str(precision)} if precision is not None else {})
        return cls(SchemaType.BYTES, name=DECIMAL, version=1, parameters=parameters, **more)

    @classmethod
    def date(cls, **more: Any) -> Schema:
        return cls(SchemaType.INT32, name=DATE, version=1, **more)

    @classmethod
    def time(cls, **more: Any) -> Schema:
        return cls(SchemaType.INT32, name=TIME, version=1, **more)

    @classmethod
    def timestamp(cls, **more: Any) -> Schema:
        return cls(SchemaType.INT64, name=TIMESTAMP, version=1, **more)

    def as_optional(self, optional: bool = True) -> Schema:
        return self if self.optional == optional else replace(self, optional=optional)

    def with_fields(self, fields: Sequence[Field]) -> Schema:
        return replace(self, fields=tuple(fields))

    def field(self, name: str) -> Field:
        """The field of that name. Raises DataError that lists the existing fields."""
        for member in self.fields:
            if member.name == name:
                return member
        names = ", ".join(member.name for member in self.fields) or "none"
        raise DataError(f"no field {name!r} in schema {self.name or self.type.value!r}; it has: {names}")

    @property
    def field_names(self) -> tuple[str, ...]:
        return tuple(member.name for member in self.fields)

    @property
    def scale(self) -> int:
        """The scale of a decimal."""
        return int(self.parameters["scale"])

    @cached_property
    def arrow_type(self) -> pa.DataType:
        """The Arrow type of a column of this schema; nullability is the column's.

        Raises DataError for types that Arrow can't represent without loss (a decimal of more than 76 digits).
        """
        import pyarrow as pa

        if self.name in _LOGICAL and (self.name, self.type) in _LOGICAL_STORAGE:
            return self._logical_arrow_type()
        if self.type is SchemaType.STRUCT:
            return pa.struct([member.schema.arrow_field(member.name) for member in self.fields])
        if self.type is SchemaType.ARRAY:
            assert self.value_schema is not None
            return pa.list_(self.value_schema.arrow_field("item"))
        if self.type is SchemaType.MAP:
            assert self.key_schema is not None and self.value_schema is not None
            return pa.map_(
                self.key_schema.arrow_field("key").with_nullable(False), self.value_schema.arrow_field("value")
            )
        return pa.type_for_alias(_ARROW_ALIASES[self.type])

    def _logical_arrow_type(self) -> pa.DataType:
        import pyarrow as pa

        if self.name == DATE:
            return pa.date32()
        if self.name == TIME:
            return pa.time32("ms")
        if self.name == TIMESTAMP:
            return pa.timestamp("ms", tz="UTC")
        precision = int(self.parameters.get(PRECISION, 38))
        if precision > _MAX_PRECISION:
            raise DataError(f"a decimal of {precision} digits is more than the {_MAX_PRECISION} that Arrow holds")
        return pa.decimal128(precision, self.scale) if precision <= 38 else pa.decimal256(precision, self.scale)

    def arrow_field(self, name: str) -> pa.Field:
        import pyarrow as pa

        return pa.field(name, self.arrow_type, nullable=self.optional)


_LOGICAL: Final = frozenset({DECIMAL, DATE, TIME, TIMESTAMP})
_LOGICAL_STORAGE: Final = frozenset(
    {
        (DECIMAL, SchemaType.BYTES),
        (DATE, SchemaType.INT32),
        (TIME, SchemaType.INT32),
        (TIMESTAMP, SchemaType.INT64),
    }
)
_ARROW_ALIASES: Final = {
    SchemaType.INT8: "int8",
    SchemaType.INT16: "int16",
    SchemaType.INT32: "int32",
    SchemaType.INT64: "int64",
    SchemaType.FLOAT32: "float32",
    SchemaType.FLOAT64: "float64",
    SchemaType.BOOLEAN: "bool",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "binary",
}


def schema_from_arrow(arrow: pa.DataType, *, name: str | None = None, optional: bool = False) -> Schema:
    """The schema that represents values of an Arrow type without loss.

    Unsigned integers widen to the next signed type; timestamps become Connect's (milliseconds, UTC). Raises DataError
    for a type that does not exist in Connect's model.
    """
    from pyarrow import types

    if types.is_struct(arrow):
        members = [arrow.field(i) for i in range(arrow.num_fields)]
        fields = [Field(m.name, schema_from_arrow(m.type, optional=m.nullable)) for m in members]
        return Schema.struct(fields, name=name, optional=optional)
    if types.is_map(arrow):
        values = schema_from_arrow(arrow.item_type, optional=arrow.item_field.nullable)
        return Schema.map(schema_from_arrow(arrow.key_type), values, name=name, optional=optional)
    if types.is_list(arrow) or types.is_large_list(arrow):
        items = schema_from_arrow(arrow.value_type, optional=arrow.value_field.nullable)
        return Schema.array(items, name=name, optional=optional)
    if types.is_decimal(arrow):
        return Schema.decimal(arrow.scale, arrow.precision, optional=optional)
    if types.is_timestamp(arrow):
        return Schema.timestamp(optional=optional)
    if types.is_date(arrow):
        return Schema.date(optional=optional)
    if types.is_time(arrow):
        return Schema.time(optional=optional)
    if types.is_dictionary(arrow):
        return schema_from_arrow(arrow.value_type, name=name, optional=optional)
    if types.is_null(arrow):
        return Schema(SchemaType.STRING, optional=True, name=name)
    schema = _FROM_ARROW.get(str(arrow))
    if schema is None:
        raise DataError(
            f"Arrow type {arrow} has no counterpart among Connect's types; cast the column {name or ''} first"
        )
    return Schema(schema, optional=optional, name=name)


_FROM_ARROW: Final = {
    "int8": SchemaType.INT8,
    "int16": SchemaType.INT16,
    "int32": SchemaType.INT32,
    "int64": SchemaType.INT64,
    "uint8": SchemaType.INT16,
    "uint16": SchemaType.INT32,
    "uint32": SchemaType.INT64,
    "halffloat": SchemaType.FLOAT32,
    "float": SchemaType.FLOAT32,
    "double": SchemaType.FLOAT64,
    "bool": SchemaType.BOOLEAN,
    "string": SchemaType.STRING,
    "large_string": SchemaType.STRING,
    "string_view": SchemaType.STRING,
    "binary": SchemaType.BYTES,
    "large_binary": SchemaType.BYTES,
}
