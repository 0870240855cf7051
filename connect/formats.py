"""The Avro, JSON and plain text forms of columns, for connectors that write and read files: the same as the converters'."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from connect.data.errors import DataError
from connect.data.schema import Schema, SchemaType

if TYPE_CHECKING:
    import pyarrow as pa

    from connect.data.batch import RecordBatch
    from registry.client import AvroSchema

__all__ = ["avro_blocks", "avro_bodies", "avro_schema", "avro_text", "java_texts", "json_column"]


def avro_text(schema: Schema) -> str:
    """The Avro schema as JSON text. Raises DataError for names that Avro does not allow."""
    import json

    from connect.converters.avro_schema import schema_to_avro

    return json.dumps(schema_to_avro(schema.as_optional(False)), separators=(",", ":"))


def avro_bodies(schema: Schema, values: pa.Array) -> pa.Array:
    """The Avro body of every row, without framing, as a binary column. Raises DataError that names the row and field of
    a value that does not fit; no row may be null."""
    import pyarrow.compute as pc

    from connect.converters.avro_columns import to_avro_column
    from registry.client import AvroSchema
    from registry.serde import SerializationError, encode_columns

    try:
        framed = encode_columns(AvroSchema.parse(avro_text(schema)), to_avro_column(schema, values), 0)
    except SerializationError as error:
        raise DataError(str(error)) from error
    return pc.binary_slice(framed, _FRAME_BYTES, _NO_END)


_FRAME_BYTES, _NO_END = 5, (1 << 31) - 1


def avro_blocks(text: str) -> tuple[Schema, Callable[[bytes, int], pa.Array]]:
    """The Connect schema of an Avro one, and what makes a column of so many bodies that follow one another.

    Both raise DataError: for a schema that is none or that columns cannot hold, for bytes that are not what it says.
    """
    from connect.converters.avro_columns import from_avro_column
    from registry.serde import decode_block
    from tidegate.kit.errors import TidegateError

    avro, schema = _read(text)

    def column(data: bytes, rows: int) -> pa.Array:
        try:
            return from_avro_column(schema, decode_block(avro, data, rows))
        except TidegateError as error:
            raise DataError(str(error)) from error

    return schema, column


def json_column(schema: Schema | None, values: pa.Array, *, numeric_decimals: bool = False) -> pa.Array:
    """Every row as a JSON text without line breaks, null where the row is. Without a schema the values are texts already."""
    import pyarrow.compute as pc

    from connect.data.json_text import json_texts

    if schema is not None:
        return json_texts(schema, values, numeric_decimals=numeric_decimals)
    return pc.replace_substring_regex(values, r"[\r\n]+", " ")


def avro_schema(text: str) -> Schema:
    """The Connect schema of an Avro one, as JSON text. Raises DataError for what is none, or what columns cannot hold."""
    return _read(text)[1]


def _read(text: str) -> tuple[AvroSchema, Schema]:
    import json

    from connect.converters.avro_reading import schema_from_avro
    from registry.client import AvroSchema
    from tidegate.kit.errors import TidegateError

    try:
        avro = AvroSchema.parse(text, strict=False)
        return avro, schema_from_avro(json.loads(avro.resolved))
    except TidegateError as error:
        raise DataError(str(error)) from error


def java_texts(batch: RecordBatch) -> pa.Array:
    """Values as the text that Java makes of them: strings, whole numbers and JSON texts (values without schema) as columns, others one by one."""
    import pyarrow as pa

    schema = batch.value_schema
    if schema is None or (schema.name is None and schema.type is SchemaType.STRING):
        return batch.values
    if schema.name is None and schema.type in (SchemaType.INT8, SchemaType.INT16, SchemaType.INT32, SchemaType.INT64):
        return batch.values.cast(pa.string())
    return pa.array([_java_text(record.value, schema) for record in batch.records()], pa.string())


def _java_text(value: Any, schema: Schema | None) -> str:
    """What Java's ``toString`` says of a value, in so far as people read it: ``Struct{id=1,name=x}``, ``[1, 2]``, ``true``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if schema is not None and schema.type is SchemaType.STRUCT:
        members = ((field, value.get(field.name)) for field in schema.fields)
        shown = [f"{field.name}={_java_text(member, field.schema)}" for field, member in members if member is not None]
        return f"Struct{{{','.join(shown)}}}"
    if isinstance(value, dict):
        items = schema.value_schema if schema is not None else None
        return "{" + ", ".join(f"{name}={_java_text(member, items)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        items = schema.value_schema if schema is not None else None
        return "[" + ", ".join(_java_text(member, items) for member in value) + "]"
    return str(value)
