"""Avro in Confluent framing, for records (``records``) and for Arrow columns (``columns``).

Protobuf and JSON are read as columns (``protobuf``, ``json_schema``) and written from them (``protobuf_writing``,
``json_writing``).

Parts that need pyarrow are loaded on first use, so that a process for single records does not load it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from registry.serde.arrow_types import UnsupportedSchema, arrow_type, avro_schema
    from registry.serde.columns import DecodedRun, decode_block, decode_columns, encode_columns
    from registry.serde.errors import CorruptRecord, Origin, SerializationError, UnencodableValue, UnknownSchema
    from registry.serde.framing import frame, unframe
    from registry.serde.json_schema import decode_json, json_type
    from registry.serde.json_values import record_from_json, record_to_json, text_example
    from registry.serde.json_writing import encode_json, json_schema_of
    from registry.serde.protobuf import decode_protobuf, protobuf_message, protobuf_type
    from registry.serde.protobuf_writing import encode_protobuf, protobuf_schema_of
    from registry.serde.records import decode_record, encode_record
    from registry.serde.subjects import subject_name

__all__ = [
    "CorruptRecord",
    "DecodedRun",
    "Origin",
    "SerializationError",
    "UnencodableValue",
    "UnknownSchema",
    "UnsupportedSchema",
    "arrow_type",
    "avro_schema",
    "decode_block",
    "decode_columns",
    "decode_json",
    "decode_protobuf",
    "decode_record",
    "encode_columns",
    "encode_json",
    "encode_protobuf",
    "encode_record",
    "frame",
    "json_schema_of",
    "json_type",
    "protobuf_message",
    "protobuf_schema_of",
    "protobuf_type",
    "record_from_json",
    "record_to_json",
    "subject_name",
    "text_example",
    "unframe",
]

_HOMES = {
    "CorruptRecord": "errors",
    "DecodedRun": "columns",
    "Origin": "errors",
    "SerializationError": "errors",
    "UnencodableValue": "errors",
    "UnknownSchema": "errors",
    "UnsupportedSchema": "arrow_types",
    "arrow_type": "arrow_types",
    "avro_schema": "arrow_types",
    "decode_block": "columns",
    "decode_columns": "columns",
    "decode_json": "json_schema",
    "decode_protobuf": "protobuf",
    "decode_record": "records",
    "encode_columns": "columns",
    "encode_json": "json_writing",
    "encode_protobuf": "protobuf_writing",
    "encode_record": "records",
    "frame": "framing",
    "json_schema_of": "json_writing",
    "json_type": "json_schema",
    "protobuf_schema_of": "protobuf_writing",
    "protobuf_message": "protobuf",
    "protobuf_type": "protobuf",
    "record_from_json": "json_values",
    "record_to_json": "json_values",
    "text_example": "json_values",
    "subject_name": "subjects",
    "unframe": "framing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"registry.serde.{_HOMES[name]}"), name)
