"""Schema formats behind one contract, ``parsed.ParsedSchema``; ``parser_of`` returns the parser of a type."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

from registry.errors import InvalidSchema
from registry.formats.parsed import NO_REFERENCES, ParsedSchema, Parser

__all__ = ["SCHEMA_TYPES", "parse", "parser_of"]

_CLASSES: Final[Mapping[str, tuple[str, str]]] = {
    "JSON": ("registry.formats.json_schema.schema", "JsonSchema"),
    "PROTOBUF": ("registry.formats.protobuf.schema", "ProtobufSchema"),
    "AVRO": ("registry.formats.avro.schema", "AvroSchema"),
}
"""The class of every format by ``schemaType``; its ``parse`` reads the format. Imported on use."""

SCHEMA_TYPES: Final = tuple(_CLASSES)
"""In Confluent's order."""


def parser_of(schema_type: str) -> Parser:
    """The parser of a schema type. Raises InvalidSchema for an unknown type."""
    class_path = _CLASSES.get(schema_type.upper())
    if class_path is None:
        raise InvalidSchema(f"Invalid schema type {schema_type}: this registry knows {', '.join(_CLASSES)}")
    module, name = class_path
    parser: Parser = getattr(importlib.import_module(module), name).parse
    return parser


def parse(
    schema_type: str, text: str, references: Mapping[str, str] = NO_REFERENCES, *, strict: bool = True
) -> ParsedSchema:
    """Parse a schema of any type; see ``Parser``."""
    return parser_of(schema_type)(text, references, strict=strict)
