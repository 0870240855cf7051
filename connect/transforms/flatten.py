"""Flatten: moves fields of nested structs to the outermost, named after their path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from connect.api import DataError, Field, RecordBatch, Schema, SchemaType, config, key
from connect.data.defaults import with_default
from connect.data.structs import struct_of
from connect.transforms.sides import (
    SideTransformation,
    copied_basics,
    map_texts,
    required_struct,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["FlattenConfig", "FlattenKey", "FlattenValue"]

_PURPOSE: Final = "flattening"


@config
class FlattenConfig:
    """Keys of Flatten."""

    delimiter: str = key("delimiter", default=".", doc="What stands between the names along a path in a field's name.")


class _Flatten(SideTransformation):
    config_class = FlattenConfig
    config: FlattenConfig
    traces_fields = True

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        required_struct(schema, _PURPOSE)
        fields: list[Field] = []
        columns: list[pa.Array] = []
        self._collect(schema, column, "", schema.optional, schema.default, fields, columns)
        made = copied_basics(schema, fields)
        if len({member.name for member in fields}) != len(fields):
            names = [member.name for member in fields]
            twice = next(name for name in names if names.count(name) > 1)
            raise DataError(f"Cannot create field because of field name duplication {twice}")
        return struct_of(made, columns, column), made

    def _collect(
        self,
        schema: Schema,
        column: pa.Array,
        prefix: str,
        optional: bool,
        default: Mapping[str, Any] | None,
        fields: list[Field],
        columns: list[pa.Array],
    ) -> None:
        """A field below an optional struct is optional, and below a struct with a default it has its part of that
        default.
        """
        import pyarrow.compute as pc

        for index, member in enumerate(schema.fields):
            name = f"{prefix}{self.config.delimiter}{member.name}" if prefix else member.name
            inner = member.schema
            inner_default = inner.default
            if inner_default is None and default is not None:
                inner_default = default.get(member.name)
            if inner.type is SchemaType.MAP:
                raise DataError(
                    f"Flatten transformation does not support MAP for record with schemas (for field {name})."
                )
            part = pc.struct_field(column, [index])
            if inner.type is SchemaType.STRUCT:
                self._collect(inner, part, name, optional or inner.optional, inner_default, fields, columns)
                continue
            if inner.default is not None:
                filled = with_default(inner, part)
                part = pc.if_else(column.is_null(), None, filled) if column.null_count else filled
            fields.append(Field(name, _flat(inner, optional or inner.optional, inner_default)))
            columns.append(part)

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        def flatten(value: Mapping[str, Any], prefix: str, into: dict[str, Any]) -> dict[str, Any]:
            for name, item in value.items():
                full = f"{prefix}{self.config.delimiter}{name}" if prefix else name
                if isinstance(item, dict):
                    flatten(item, full, into)
                else:
                    into[full] = item
            return into

        return map_texts(column, lambda value, row: flatten(value, "", {}), _PURPOSE)

    def field_after(self, path: str) -> str | None:
        return path.replace(".", self.config.delimiter)


def _flat(schema: Schema, optional: bool, default: Any) -> Schema:
    from dataclasses import replace

    return replace(schema, optional=optional, default=default)


class FlattenKey(_Flatten):
    """Of the key."""

    side = "key"


class FlattenValue(_Flatten):
    """Of the value."""

    side = "value"
