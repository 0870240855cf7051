"""The Avro, JSON and plain text forms of columns, for connectors that read and write files; the same as the
converters'.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from connect.data.errors import DataError
from connect.data.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from connect.data.batch import RecordBatch
    from registry.client import AvroSchema

__all__ = [
    "avro_blocks",
    "avro_bodies",
    "avro_schema",
    "avro_text",
    "header_texts",
    "java_texts",
    "json_column",
    "schema_from_json",
    "schema_json",
    "text_headers",
]


def schema_json(schema: Schema) -> dict[str, Any]:
    """The schema in Kafka Connect's JSON form, as JsonConverter writes it."""
    from connect.data.json_schema import schema_to_json

    return schema_to_json(schema)


def schema_from_json(form: Any) -> Schema:
    """The schema of such a form. Raises DataError."""
    from connect.data.json_schema import schema_from_json as read

    return read(form)


def avro_text(schema: Schema) -> str:
    """The Avro schema as JSON text. Raises DataError for names that are invalid in Avro."""
    import json

    from connect.converters.avro_schema import schema_to_avro

    return json.dumps(schema_to_avro(schema.as_optional(False)), separators=(",", ":"))


def avro_bodies(schema: Schema, values: pa.Array) -> pa.Array:
    """The Avro body of every row, without framing, as a binary column.

    Raises DataError that names the row and field of a value that does not fit; no row may be null.
    """
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
    """The Connect schema of an Avro schema, and a function that decodes a number of consecutive bodies into a column.

    Both raise DataError: for an invalid schema or one without a column form, and for bytes that contradict it.
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
    """Every row as a JSON text without line breaks; null where the row is.

    Without a schema the values are JSON texts already.
    """
    import pyarrow.compute as pc

    from connect.data.json_text import json_texts

    if schema is not None:
        return json_texts(schema, values, numeric_decimals=numeric_decimals)
    return pc.replace_substring_regex(values, r"[\r\n]+", " ")


def avro_schema(text: str) -> Schema:
    """The Connect schema of an Avro schema in JSON text.

    Raises DataError for an invalid schema, or one without a column form.
    """
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


def header_texts(batch: RecordBatch) -> pa.Array:
    """The headers of every row as ``list<struct<key: string, value: string>>``, values in the form of Kafka Connect's
    ``Values.convertToString``.

    Raises DataError that names the row of a header without value, which has no text.
    """
    import pyarrow as pa

    from connect.data.headers import header_lists
    from connect.data.java.value_texts import to_text

    cells = []
    for row, headers in enumerate(header_lists(batch.headers) if batch.headers is not None else [()] * len(batch)):
        texts = [{"key": header.key, "value": to_text(header.schema, header.value)} for header in headers]
        if (empty := next((text["key"] for text in texts if text["value"] is None), None)) is not None:
            raise DataError(
                f"record {row} of a batch of {batch.topic!r} has a header {empty!r} without value", rows=[row]
            )
        cells.append(texts)
    pair = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.string(), nullable=False)])
    return pa.array(cells, pa.list_(pa.field("item", pair, nullable=False)))


def text_headers(texts: pa.Array) -> pa.Array | None:
    """The headers of a batch from such a column: strings. None where no row has one."""
    from connect.data.headers import Header, column_of
    from connect.data.schema import SchemaType

    string = Schema(SchemaType.STRING)
    return column_of(
        [[Header(each["key"], each["value"], string) for each in cells or ()] for cells in texts.to_pylist()]
    )


def java_texts(batch: RecordBatch) -> pa.Array:
    """Values in Java's text format.

    Without a schema that applies to texts, numbers and booleans; objects and arrays stay JSON, because Java writes them
    in the order of a hash table.
    """
    from connect.converters.java_text import java_texts as texts_of

    if batch.value_schema is not None:
        return texts_of(batch.value_schema, batch.values)
    import pyarrow as pa

    return pa.array([None if text is None else _bare(text) for text in batch.values.to_pylist()], pa.string())


def _bare(text: str) -> str:
    """The value of a JSON text in Java's text format."""
    import json

    from connect.data.java.numbers import float_text

    if text.lstrip()[:1] in ("{", "["):
        return text
    value = json.loads(text)
    if isinstance(value, str):
        return value
    return float_text(value) if isinstance(value, float) else json.dumps(value)
