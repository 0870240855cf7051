"""The two sides of a record that transformations work on: its key and its value."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal

from connect.api import DataError, Field, RecordBatch, Schema, SchemaType, Transformation, key
from connect.data.defaults import with_default

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = [
    "SideTransformation",
    "copied_basics",
    "java_name",
    "json_text",
    "map_texts",
    "replace_null_key",
    "required_struct",
    "some",
    "struct_columns",
]

_JAVA_NAMES: Final = {
    bool: "java.lang.Boolean",
    int: "java.lang.Long",
    float: "java.lang.Double",
    str: "java.lang.String",
    list: "java.util.ArrayList",
    dict: "java.util.HashMap",
    type(None): "null",
}


class SideTransformation(Transformation):
    """A transformation of one side. A batch without that side, or with only nulls in it, passes unchanged."""

    side: Literal["key", "value"]

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        column, schema = self.column(batch)
        if column is None or column.null_count == len(column):
            return [batch]
        if schema is None:
            return [self.changed(batch, self.change_texts(batch, column), None)]
        return [self.changed(batch, *self.change(batch, schema, column))]

    def column(self, batch: RecordBatch) -> tuple[pa.Array | None, Schema | None]:
        """The side's column and schema."""
        return (batch.keys, batch.key_schema) if self.side == "key" else (batch.values, batch.value_schema)

    def changed(self, batch: RecordBatch, column: pa.Array | None, schema: Schema | None) -> RecordBatch:
        """The batch with another column on this side."""
        if self.side == "key":
            return batch.replace(keys=column, key_schema=schema)
        return batch.replace(values=column, value_schema=schema)

    @abstractmethod
    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        """The changed column and its schema."""

    @abstractmethod
    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        """The changed column of JSON texts, for data without a schema."""


def replace_null_key() -> Any:
    """The key shared by most transformations."""
    return key(
        "replace.null.with.default",
        default=True,
        doc="Whether a field without a value takes the default of its schema, where that has one; otherwise it stays null.",
    )


def some(value: list[str]) -> str | None:
    """A list must not be empty."""
    return None if value else "Configuration must not be empty. Valid values include: any non-empty value"


def required_struct(schema: Schema, purpose: str) -> None:
    """Raises DataError for another type, in Kafka Connect's words."""
    if schema.type is not SchemaType.STRUCT:
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {_java_class(schema)}")


def _java_class(schema: Schema) -> str:
    """Kafka Connect's class name for the values of a schema."""
    return _SCHEMA_CLASSES.get(schema.name or "", _SCHEMA_CLASSES.get(schema.type.value, schema.type.value))


_SCHEMA_CLASSES: Final = {
    "int8": "java.lang.Byte",
    "int16": "java.lang.Short",
    "int32": "java.lang.Integer",
    "int64": "java.lang.Long",
    "float32": "java.lang.Float",
    "float64": "java.lang.Double",
    "boolean": "java.lang.Boolean",
    "string": "java.lang.String",
    "bytes": "[B",
    "array": "java.util.ArrayList",
    "map": "java.util.HashMap",
    "struct": "org.apache.kafka.connect.data.Struct",
    "org.apache.kafka.connect.data.Decimal": "java.math.BigDecimal",
    "org.apache.kafka.connect.data.Date": "java.util.Date",
    "org.apache.kafka.connect.data.Time": "java.util.Date",
    "org.apache.kafka.connect.data.Timestamp": "java.util.Date",
}


def struct_columns(schema: Schema, column: pa.Array, purpose: str, *, defaults: bool = True) -> list[pa.Array]:
    """The columns of a struct's fields, optionally with nulls replaced by the fields' defaults.

    Raises DataError for another type, as in Kafka Connect.
    """
    required_struct(schema, purpose)
    columns = [column.field(position) for position in range(column.type.num_fields)]
    if not defaults:
        return columns
    return [with_default(member.schema, part) for member, part in zip(schema.fields, columns, strict=True)]


def copied_basics(schema: Schema, fields: Sequence[Field]) -> Schema:
    """A struct's name, version, doc and parameters with other fields.

    As in Kafka Connect, a rebuilt schema is required and has no default.
    """
    return Schema.struct(fields, name=schema.name, version=schema.version, doc=schema.doc, parameters=schema.parameters)


def java_name(value: Any) -> str:
    """Kafka Connect's class name for a JSON value."""
    return _JAVA_NAMES[type(value)]


def json_text(value: Any) -> str:
    """A value without schema as its JSON text."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def map_texts(
    column: pa.Array, change: Callable[[dict[str, Any], int], Any], purpose: str, *, nulls: bool = True
) -> pa.Array:
    """JSON texts of objects, each changed by ``change(value, row)``; nulls stay, or are errors without ``nulls``."""
    import pyarrow as pa

    texts: list[str | None] = []
    for row, text in enumerate(column.to_pylist()):
        value = None if text is None else json.loads(text)
        if value is None and nulls:
            texts.append(None)
            continue
        if not isinstance(value, dict):
            raise DataError(
                f"Only Map objects supported in absence of schema for [{purpose}], found: {java_name(value)}",
                rows=[row],
            )
        try:
            made = change(value, row)
        except DataError as error:
            raise DataError(str(error), rows=[row]) from error
        texts.append(None if made is None else json_text(made))
    return pa.array(texts, pa.string())
