"""SetSchemaMetadata: sets the name or version of the key's or value's schema."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from connect.api import DECIMAL, TIMESTAMP, DataError, Problem, RecordBatch, Schema, SchemaType, config, key
from connect.data.structs import struct_of
from connect.transforms.sides import SideTransformation, replace_null_key, struct_columns
from tidegate.kit.config import KeyType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SetKeySchemaMetadata", "SetSchemaMetadataConfig", "SetValueSchemaMetadata"]

_PURPOSE: Final = "updating schema metadata"


@config
class SetSchemaMetadataConfig:
    """Keys of SetSchemaMetadata."""

    name: str | None = key("schema.name", default=None, importance="high", doc="Schema name to set.")
    version: int | None = key(
        "schema.version", default=None, type=KeyType.INT, importance="high", doc="Schema version to set."
    )
    replace_null: bool = replace_null_key()

    def problems(self) -> Iterable[Problem]:
        if self.name is None and self.version is None:
            yield Problem("schema.name", "Neither schema name nor version configured")


class _SetSchemaMetadata(SideTransformation):
    config_class = SetSchemaMetadataConfig
    config: SetSchemaMetadataConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        column, schema = self.column(batch)
        if column is None or (schema is None and column.null_count == len(column)):
            return [batch]
        if schema is None:
            return super().apply(batch)
        return [self.changed(batch, *self.change(batch, schema, column))]

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        name = schema.name if self.config.name is None else self.config.name
        version = schema.version if self.config.version is None else self.config.version
        made = replace(schema, name=name, version=version)
        if schema.type is SchemaType.STRUCT:
            return struct_of(
                made, struct_columns(schema, column, _PURPOSE, defaults=self.config.replace_null), column
            ), made
        return _stored(schema, column, made), made

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        rows = [row for row, there in enumerate(column.is_valid().to_pylist()) if there]
        raise DataError(f"Schema required for [{_PURPOSE}]", rows=rows)


def _stored(schema: Schema, column: pa.Array, made: Schema) -> pa.Array:
    """The column for a schema that may have stopped, or started, being one of Connect's logical types."""
    import decimal

    import pyarrow as pa

    if column.type == made.arrow_type:
        return column
    if schema.name == DECIMAL:
        scale = decimal.Context(prec=100)
        numbers = (None if v is None else int(v.scaleb(schema.scale, scale)) for v in column.to_pylist())
        sized = ((n, n is not None and (n + (n < 0)).bit_length() // 8 + 1) for n in numbers)
        return pa.array([None if n is None else n.to_bytes(size, "big", signed=True) for n, size in sized], pa.binary())
    if made.name == DECIMAL:
        raise DataError(f"a schema named {DECIMAL} needs a scale: cast the bytes in the source instead")
    storage = "int64" if TIMESTAMP in (schema.name, made.name) else "int32"
    return column.cast(schema.arrow_type).cast(storage).cast(made.arrow_type)


class SetKeySchemaMetadata(_SetSchemaMetadata):
    """Of the key."""

    side = "key"


class SetValueSchemaMetadata(_SetSchemaMetadata):
    """Of the value."""

    side = "value"
