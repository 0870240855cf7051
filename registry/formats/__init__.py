"""Schema formats side by side behind one contract, ``parsed.ParsedSchema``; ``parser_of`` finds the one for a type."""

from __future__ import annotations

from registry.errors import InvalidSchema
from registry.formats.avro.schema import AvroSchema
from registry.formats.parsed import Parser

__all__ = ["PARSERS", "parser_of"]

PARSERS: dict[str, Parser] = {"AVRO": AvroSchema.parse}
"""Every format this registry knows, by its ``schemaType``."""


def parser_of(schema_type: str) -> Parser:
    """The parser of a schema type; raises InvalidSchema for one that is not known."""
    parser = PARSERS.get(schema_type.upper())
    if parser is None:
        raise InvalidSchema(f"Invalid schema type {schema_type}: this registry knows {', '.join(PARSERS)}")
    return parser
