"""MaskField: replaces fields' values by 0, false, the empty text, or a replacement."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from connect.api import (
    DATE,
    DECIMAL,
    TIME,
    TIMESTAMP,
    DataError,
    RecordBatch,
    Schema,
    SchemaType,
    config,
    key,
    non_empty,
)
from connect.data.java.numbers import INTEGER_BITS, narrowed, single
from connect.data.structs import struct_of
from connect.transforms.sides import (
    SideTransformation,
    map_texts,
    replace_null_key,
    some,
    struct_columns,
)
from tidegate.kit.config import all_of, distinct

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["MaskFieldConfig", "MaskKeyField", "MaskValueField"]

_PURPOSE: Final = "mask fields"
_LARGEST: Final = decimal.Decimal(10) ** 76


@config
class MaskFieldConfig:
    """Keys of MaskField."""

    fields: list[str] = key("fields", importance="high", check=all_of(some, distinct), doc="Names of fields to mask.")
    replacement: str | None = key(
        "replacement",
        default=None,
        importance="low",
        check=non_empty,
        doc="What masked fields hold instead: for numbers and text only, converted to the field's type.",
    )
    replace_null: bool = replace_null_key()


class _MaskField(SideTransformation):
    config_class = MaskFieldConfig
    config: MaskFieldConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        column, schema = self.column(batch)
        kind = "Map objects supported in absence of schema" if schema is None else "Struct objects supported"
        error = f"Only {kind} for [{_PURPOSE}], found: null"
        if column is None:
            raise DataError(error)
        if column.null_count:
            raise DataError(error, rows=[row for row, null in enumerate(column.is_null().to_pylist()) if null])
        return super().apply(batch)

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = struct_columns(schema, column, _PURPOSE, defaults=self.config.replace_null)
        for index, member in enumerate(schema.fields):
            part = columns[index]
            if member.name in self.config.fields and part.null_count < len(part):
                masked = pa.array([self._mask(member.schema)], member.schema.arrow_type)
                if part.null_count and pa.types.is_nested(masked.type):
                    columns[index] = masked.take(pc.if_else(part.is_null(), None, pa.repeat(pa.scalar(0), len(part))))
                elif pa.types.is_nested(masked.type):
                    columns[index] = masked.take(pa.repeat(pa.scalar(0), len(part)))
                else:
                    columns[index] = pc.if_else(part.is_null(), None, masked[0])
        return struct_of(schema, columns, column), schema

    def _mask(self, schema: Schema) -> Any:
        if self.config.replacement is not None:
            return _replaced(schema, self.config.replacement)
        if schema.name in _LOGICAL:
            return _LOGICAL[schema.name]
        if schema.type not in _NOTHING:
            what = {
                SchemaType.BYTES: "class [B",
                SchemaType.STRUCT: "class org.apache.kafka.connect.data.Struct",
            }
            raise DataError(f"Cannot mask value of type: {what[schema.type]}")
        return _NOTHING[schema.type]

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        def mask(value: dict[str, Any], row: int) -> dict[str, Any]:  # noqa: ARG001
            return {**value, **{name: self._masked_value(value.get(name)) for name in self.config.fields}}

        return map_texts(column, mask, _PURPOSE)

    def _masked_value(self, value: Any) -> Any:
        if value is None:
            return None
        if self.config.replacement is None:
            return type(value)()
        return _replaced(Schema(_PLAIN[type(value)]), self.config.replacement)

    def field_after(self, path: str) -> str | None:
        return None if path.partition(".")[0] in self.config.fields else path


def _replaced(schema: Schema, text: str) -> Any:
    """The replacement in the type of a schema."""
    if schema.type is SchemaType.STRING:
        return text
    is_number = schema.type.value in INTEGER_BITS or schema.type in (SchemaType.FLOAT32, SchemaType.FLOAT64)
    if not (schema.name == DECIMAL or (is_number and schema.name not in _LOGICAL)):
        raise DataError(
            f"Cannot mask value of type {_JAVA.get(schema.type, 'class java.util.Date')} with custom replacement."
        )
    try:
        number = decimal.Decimal(text)
    except decimal.InvalidOperation:
        number = decimal.Decimal("NaN")
    if not number.is_finite() or abs(number) >= _LARGEST:
        raise DataError(f"Unable to convert {text} (class java.lang.String) to a number")
    if schema.name == DECIMAL:
        exact = number.quantize(decimal.Decimal(1).scaleb(-schema.scale), context=decimal.Context(prec=100))
        if exact != number:
            raise DataError(f"Unable to convert {text} to a decimal of scale {schema.scale}")
        return exact
    if schema.type is SchemaType.FLOAT32:
        return single(float(number))
    return (
        float(number) if schema.type is SchemaType.FLOAT64 else narrowed(int(number), INTEGER_BITS[schema.type.value])
    )


_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_LOGICAL: Final[dict[str, Any]] = {
    DECIMAL: decimal.Decimal(0),
    DATE: _EPOCH.date(),
    TIME: dt.time(),
    TIMESTAMP: _EPOCH,
}
_NOTHING: Final[dict[SchemaType, Any]] = {
    SchemaType.INT8: 0,
    SchemaType.INT16: 0,
    SchemaType.INT32: 0,
    SchemaType.INT64: 0,
    SchemaType.FLOAT32: 0.0,
    SchemaType.FLOAT64: 0.0,
    SchemaType.BOOLEAN: False,
    SchemaType.STRING: "",
    SchemaType.ARRAY: [],
    SchemaType.MAP: [],
}
_PLAIN: Final = {
    bool: SchemaType.BOOLEAN,
    int: SchemaType.INT64,
    float: SchemaType.FLOAT64,
    str: SchemaType.STRING,
    list: SchemaType.ARRAY,
    dict: SchemaType.MAP,
}
_JAVA: Final = {
    SchemaType.BOOLEAN: "class java.lang.Boolean",
    SchemaType.BYTES: "class [B",
    SchemaType.ARRAY: "class java.util.ArrayList",
    SchemaType.MAP: "class java.util.HashMap",
    SchemaType.STRUCT: "class org.apache.kafka.connect.data.Struct",
}


class MaskKeyField(_MaskField):
    """Of the key."""

    side = "key"


class MaskValueField(_MaskField):
    """Of the value."""

    side = "value"
