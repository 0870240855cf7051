"""Cast: fields, or the whole key or value, as another type."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from connect.api import DataError, Field, Problem, RecordBatch, Schema, SchemaType, config, key
from connect.data.structs import struct_of
from connect.transforms.cast_columns import cast_column
from connect.transforms.cast_values import cast_value
from connect.transforms.sides import (
    SideTransformation,
    copied_basics,
    json_text,
    map_texts,
    replace_null_key,
    struct_columns,
)

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CastConfig", "CastKey", "CastValue"]

_PURPOSE: Final = "cast types"
_TARGETS: Final = (
    SchemaType.INT8,
    SchemaType.INT16,
    SchemaType.INT32,
    SchemaType.INT64,
    SchemaType.FLOAT32,
    SchemaType.FLOAT64,
    SchemaType.BOOLEAN,
    SchemaType.STRING,
)
_WHOLE: Final = ""


@config
class CastConfig:
    """Keys of Cast."""

    spec: list[str] = key(
        "spec",
        importance="high",
        doc="Pairs field:type, or one type for the whole key or value. Types are int8, int16, int32, int64, float32, "
        "float64, boolean and string. Bytes can only be cast to string, which makes base64 of them.",
    )
    replace_null: bool = replace_null_key()

    def problems(self) -> Iterable[Problem]:
        try:
            parsed_spec(self.spec)
        except ValueError as error:
            yield Problem("spec", str(error))


def parsed_spec(spec: list[str]) -> dict[str, SchemaType]:
    """Types by field name, "" for the whole. Raises ValueError in Kafka Connect's words."""
    if not spec:
        raise ValueError("Must specify at least one field to cast.")
    types: dict[str, SchemaType] = {}
    for pair in spec:
        name, colon, type_name = pair.rpartition(":")
        if ":" in name:
            raise ValueError(
                f"Invalid value [{', '.join(spec)}] for configuration renames: Invalid rename mapping: {pair}"
            )
        types[name.strip() if colon else _WHOLE] = _target(type_name.strip())
        if not colon and len(spec) > 1:
            raise ValueError(
                "Cast transformations that specify a type to cast the entire value to may only specify a single cast in "
                "their spec"
            )
    return types


def _target(name: str) -> SchemaType:
    kind = next((kind for kind in SchemaType if kind.name == name.upper()), None)
    if kind is None:
        raise ValueError(f"Invalid type found in casting spec: {name}")
    if kind not in _TARGETS:
        names = ", ".join(target.name for target in _TARGETS)
        raise ValueError(f"Cast transformation does not support casting to {kind.name}; supported types are [{names}]")
    return kind


class _Cast(SideTransformation):
    config_class = CastConfig
    config: CastConfig
    traces_fields = True

    @cached_property
    def _spec(self) -> dict[str, SchemaType]:
        return parsed_spec(self.config.spec)

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        whole = self._spec.get(_WHOLE)
        if whole is not None:
            made = Schema(
                whole,
                optional=schema.optional,
                name=schema.name,
                version=schema.version,
                doc=schema.doc,
                parameters=schema.parameters,
                default=cast_value(schema, schema.default, whole),
            )
            return cast_column(schema, column, whole).cast(made.arrow_type), made
        columns = struct_columns(schema, column, _PURPOSE, defaults=self.config.replace_null)
        fields = list(schema.fields)
        for index, member in enumerate(schema.fields):
            target = self._spec.get(member.name)
            if target is None:
                continue
            default = cast_value(member.schema, member.schema.default, target)
            fields[index] = Field(member.name, Schema(target, optional=member.schema.optional, default=default))
            part = columns[index]
            if column.null_count:
                import pyarrow.compute as pc

                part = pc.if_else(column.is_null(), None, part)
            columns[index] = cast_column(member.schema, part, target)
        changed = copied_basics(schema, fields).as_optional(schema.optional)
        return struct_of(changed, columns, column), changed

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        whole = self._spec.get(_WHOLE)
        if whole is None:

            def each(value: dict[str, Any], row: int) -> dict[str, Any]:  # noqa: ARG001
                made = {name: cast_value(None, value.get(name), target) for name, target in self._spec.items()}
                return {**value, **made}

            return map_texts(column, each, _PURPOSE)
        import json

        import pyarrow as pa

        texts: list[str | None] = []
        for row, text in enumerate(column.to_pylist()):
            value = None if text is None else json.loads(text)
            try:
                texts.append(None if value is None else json_text(cast_value(None, value, whole)))
            except DataError as error:
                raise DataError(str(error), rows=[row]) from error
        return pa.array(texts, pa.string())


class CastKey(_Cast):
    """Of the key."""

    side = "key"


class CastValue(_Cast):
    """Of the value."""

    side = "value"
