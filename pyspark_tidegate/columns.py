"""Keys and values as columns: the formats that the data source decodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from pyspark_tidegate.types import converted, spark_arrow
from registry.client import AvroSchema, NotFound, ParsedSchema, RegistryClient
from registry.formats.json_schema.schema import JsonSchema
from registry.formats.protobuf.schema import ProtobufSchema
from registry.serde import (
    CorruptRecord,
    SerializationError,
    arrow_type,
    decode_columns,
    decode_json,
    decode_protobuf,
    json_type,
    protobuf_type,
)

if TYPE_CHECKING:
    from registry.serde import DecodedRun

__all__ = ["Decode", "Side", "decode_each", "decoder"]

Decode = Callable[[pa.Array], pa.Array]
"""Bytes of keys or values as a column of the side's type. Raises SerializationError with the row where it is known."""
_MOST_UNKNOWN: Final = 10_000


@dataclass(frozen=True)
class Side:
    """Keys or values of the records: as bytes, as text, or decoded into the columns of a schema."""

    format: str
    schema: str = ""
    """The text of the schema that they are read as; empty for bytes and text."""
    references: tuple[tuple[str, str], ...] = ()
    """Names and texts of the schemas that it refers to."""
    message: str = ""
    """The full name of a Protobuf message; empty: the first of the schema."""

    @property
    def type(self) -> pa.DataType:
        if self.format == "avro":
            return spark_arrow(arrow_type(AvroSchema.parse(self.schema, strict=False)))
        if self.format == "protobuf":
            return spark_arrow(protobuf_type(_protobuf_schema(self), self.message or None))
        if self.format in ("json", "json-schema"):
            return spark_arrow(json_type(_json_schema(self)))
        return pa.string() if self.format == "string" else pa.binary()

    @property
    def asks_registry(self) -> bool:
        """Whether decoding asks for the schemas of records. JSON says by itself what it is."""
        return self.format in ("avro", "protobuf")


def _protobuf_schema(side: Side) -> ProtobufSchema:
    return ProtobufSchema.parse(side.schema, dict(side.references), strict=False)


def _json_schema(side: Side) -> JsonSchema:
    return JsonSchema.parse(side.schema, dict(side.references), strict=False)


def decoder(side: Side, client: RegistryClient | None) -> Decode:
    """The function that decodes a side; schemas are parsed here, once."""
    if side.format == "avro":
        assert client is not None
        return _avro(side, client)
    if side.format == "protobuf":
        assert client is not None
        return _protobuf(side, client)
    if side.format in ("json", "json-schema"):
        schema, type_, framed = _json_schema(side), side.type, side.format == "json-schema"
        return lambda column: _converted(decode_json(column, schema, framed=framed), type_)
    return _text if side.format == "string" else lambda column: column.cast(pa.binary())


def _protobuf(side: Side, client: RegistryClient) -> Decode:
    reader, type_, resolve = _protobuf_schema(side), side.type, _schemas_of(client)
    return lambda column: _converted(decode_protobuf(column, resolve, reader, side.message or None), type_)


def _schemas_of(client: RegistryClient) -> Callable[[int], ParsedSchema]:
    """The schema of an id. The registry is asked once for an id that it does not have: ``decode_each`` comes back to it with each
    record that has it."""
    unknown: dict[int, NotFound] = {}

    def resolve(schema_id: int) -> ParsedSchema:
        if (refused := unknown.get(schema_id)) is not None:
            raise refused
        try:
            return client.any_schema(schema_id)
        except NotFound as error:
            if len(unknown) < _MOST_UNKNOWN:
                unknown[schema_id] = error
            raise

    return resolve


def _avro(side: Side, client: RegistryClient) -> Decode:
    reader, type_, schema_of = AvroSchema.parse(side.schema, strict=False), side.type, _schemas_of(client)

    def resolve(schema_id: int) -> AvroSchema:
        schema = schema_of(schema_id)
        if not isinstance(schema, AvroSchema):
            raise CorruptRecord(f"the schema with the id {schema_id} is of type {schema.schema_type}, not AVRO")
        return schema

    def decode(column: pa.Array) -> pa.Array:
        return _joined(decode_columns(column, resolve, reader), type_, len(column))

    return decode


def _joined(runs: list[DecodedRun], type_: pa.DataType, rows: int) -> pa.Array:
    pieces = [
        pa.nulls(run.length, type_) if pa.types.is_null(run.array.type) else _converted(run.array, type_)
        for run in runs
    ]
    if not pieces:
        return pa.nulls(rows, type_)
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


def _converted(column: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return converted(column, type_)
    except pa.ArrowInvalid as error:
        raise CorruptRecord(f"Spark has no such value: {error}") from error


def _text(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        pass
    for row, data in enumerate(column.to_pylist()):
        try:
            (data or b"").decode()
        except UnicodeDecodeError as error:
            reason = f"the value is not UTF-8: {error.reason} at byte {error.start} (format binary reads any bytes)"
            raise CorruptRecord(reason, row=row) from None
    return column.cast(pa.string())


def decode_each(decode: Decode, column: pa.Array) -> tuple[pa.Array, list[str | None]]:
    """The column with a null for each value that can't be decoded, and for each row the reason or None.

    Halves the rows until each failure stands alone, so a few bad values among many cost little.
    """
    try:
        return decode(column), [None] * len(column)
    except SerializationError as error:
        if len(column) == 1:
            return decode(pa.nulls(1, column.type)), [
                f"field {error.path}: {error.reason}" if error.path else error.reason
            ]
    middle = len(column) // 2
    (left, reasons), (right, more) = decode_each(decode, column[:middle]), decode_each(decode, column[middle:])
    return pa.concat_arrays([left, right]), reasons + more
