"""Options for mapping Connect schemas to Avro schemas: those of Confluent's AvroData, with its names."""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import quote_plus

from connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, SchemaType

__all__ = ["AvroStyle", "scrubbed"]

NAMESPACE: Final = "io.confluent.connect.avro"
DEFAULT_NAME: Final = "ConnectDefault"
ENUM: Final = f"{NAMESPACE}.Enum"
"""The parameter with an enum's name, followed by one per symbol. Confluent's."""
GENERALIZED_ENUM: Final = "org.apache.kafka.connect.data.Enum"
UNION: Final = f"{NAMESPACE}.Union"
GENERALIZED_UNION: Final = "org.apache.kafka.connect.data.Union"
RECORD_DOC: Final = f"{NAMESPACE}.record.doc"
FIELD_DOC: Final = f"{NAMESPACE}.field.doc."
ENUM_DOC: Final = f"{NAMESPACE}.enum.doc."
ENUM_DEFAULT: Final = f"{NAMESPACE}.enum.default."
DEFAULT_FLAG: Final = f"{NAMESPACE}.field.default"
"""Marks a default as Avro's own, so that it is not repeated as Connect's."""
PLAIN_RECORD_DOC: Final = "connect.record.doc"
PLAIN_ENUM_DOC: Final = "connect.enum.doc"
FIXED_SIZE: Final = "connect.fixed.size"
AVRO_PREFIX: Final = "avro"
"""Parameters with this prefix become properties of the Avro schema."""
DEFAULT_PRECISION: Final = 64
LOGICAL: Final = {DATE: "date", TIME: "time-millis", TIMESTAMP: "timestamp-millis", DECIMAL: "decimal"}
PLAIN: Final = {
    SchemaType.INT8: "int",
    SchemaType.INT16: "int",
    SchemaType.INT32: "int",
    SchemaType.INT64: "long",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.BOOLEAN: "boolean",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "bytes",
}


class AvroStyle(NamedTuple):
    """The keys of AvroConverter that shape schemas."""

    enhanced: bool = False
    """``enhanced.avro.schema.support``: enums stay enums, union members have full names."""
    meta: bool = True
    """``connect.meta.data``: Connect's own facts become properties of the Avro schema."""
    scrub: bool = False
    """``scrub.invalid.names``: names that are invalid in Avro are changed."""
    generalized: bool = False
    """``generalized.sum.type.support``: enums and unions use names shared by all of Confluent's converters."""
    discard: bool = False
    """``discard.type.doc.default``: documentation and defaults are kept only for fields."""
    optional_keys: bool = False
    """``allow.optional.map.keys``: a map with optional text keys is an Avro map too."""
    flatten_singletons: bool = True
    """``flatten.singleton.unions``: a union of one type is that type."""

    @property
    def enum(self) -> str:
        """The parameter that makes text an enum."""
        return GENERALIZED_ENUM if self.generalized else ENUM

    def name(self, name: str) -> str:
        """A field's name, made valid for Avro."""
        return scrubbed(name) if self.scrub else name

    def full_name(self, name: str) -> str:
        """A schema's name, made valid for Avro part by part."""
        return ".".join(self.name(part) for part in name.split("."))


def scrubbed(name: str) -> str:
    """A name with only letters, digits and _, that does not begin with a digit."""
    if not name or re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        return name
    coded = quote_plus(name, safe="*")
    if coded[0].isdigit():
        coded = f"x{coded}"
    return re.sub(r"[^A-Za-z0-9_]", "_", coded)
