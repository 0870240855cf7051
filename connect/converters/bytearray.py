"""Bytes, unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from connect.api import Converted, Converter, DataError, Schema, SchemaType, config

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ByteArrayConfig", "ByteArrayConverter"]


@config
class ByteArrayConfig:
    """It has no keys."""


class ByteArrayConverter(Converter):
    """Writes a column of bytes unchanged; other types are an error. Reads everything as optional bytes."""

    config_class = ByteArrayConfig

    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        import pyarrow as pa

        if schema is not None and schema.type is not SchemaType.BYTES:
            raise DataError(
                f"Invalid schema type for ByteArrayConverter: {schema.type.value} (topic {topic}); use bytes"
            )
        if not pa.types.is_binary(values.type):
            raise DataError(f"ByteArrayConverter got a column of {values.type} for topic {topic}; use bytes")
        return values

    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        return [Converted(Schema(SchemaType.BYTES, optional=True), data)]
