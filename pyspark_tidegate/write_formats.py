"""Formats whose schema is in the registry: how a write derives a schema from columns, and encodes with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from registry.client import AvroSchema
from registry.formats.json_schema.schema import JsonSchema
from registry.formats.protobuf.schema import ProtobufSchema
from registry.serde import (
    arrow_type,
    avro_schema,
    encode_columns,
    encode_json,
    encode_protobuf,
    json_schema_of,
    json_type,
    protobuf_schema_of,
    protobuf_type,
)

__all__ = ["WRITTEN", "WrittenFormat"]


@dataclass(frozen=True)
class WrittenFormat:
    """The functions of a format. ``message`` is the full name of a Protobuf message; empty: the first of the schema."""

    schema_type: str
    """The registry's name of the format."""
    parse: Callable[[str, Mapping[str, str]], Any]
    """A schema from its text and those of its references."""
    derived: Callable[[pa.DataType, str], Any]
    """(type of the columns, name) → schema. Raises UnsupportedSchema that names the field."""
    columns: Callable[[Any, str], pa.DataType]
    """(schema, message) → the columns that it has."""
    encode: Callable[[Any, pa.Array, int, str], pa.Array]
    """(schema, column, id, message) → bytes. Raises UnencodableValue that names row and field."""


WRITTEN: Final[Mapping[str, WrittenFormat]] = {
    "avro": WrittenFormat(
        "AVRO",
        lambda text, references: AvroSchema.parse(text, references, strict=False),
        avro_schema,
        lambda schema, _: arrow_type(schema),
        lambda schema, column, schema_id, _: encode_columns(schema, column, schema_id),
    ),
    "protobuf": WrittenFormat(
        "PROTOBUF",
        lambda text, references: ProtobufSchema.parse(text, references, strict=False),
        protobuf_schema_of,
        lambda schema, message: protobuf_type(schema, message or None),
        lambda schema, column, schema_id, message: encode_protobuf(column, schema, schema_id, message or None),
    ),
    "json-schema": WrittenFormat(
        "JSON",
        lambda text, references: JsonSchema.parse(text, references, strict=False),
        json_schema_of,
        lambda schema, _: json_type(schema),
        lambda schema, column, schema_id, _: encode_json(column, schema, schema_id),
    ),
}
