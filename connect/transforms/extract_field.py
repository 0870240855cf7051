"""ExtractField: one field replaces the whole key or value."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from connect.api import DataError, Problem, RecordBatch, Schema, config, key
from connect.transforms.field_path import FieldPath, field_syntax_key, steps_of
from connect.transforms.sides import SideTransformation, map_texts, replace_null_key, required_struct

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ExtractFieldConfig", "ExtractKeyField", "ExtractValueField"]

_PURPOSE = "field extraction"


@config
class ExtractFieldConfig:
    """Keys of ExtractField."""

    field: str = key("field", doc="Field name to extract.")
    replace_null: bool = replace_null_key()
    syntax: str = field_syntax_key()

    def problems(self) -> Iterable[Problem]:
        try:
            steps_of(self.field, self.syntax)
        except ValueError as error:
            yield Problem("field", str(error))


class _ExtractField(SideTransformation):
    config_class = ExtractFieldConfig
    config: ExtractFieldConfig
    traces_fields = True

    @cached_property
    def _path(self) -> FieldPath:
        return FieldPath(self.config.field, self.config.syntax)

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        required_struct(schema, _PURPOSE)
        field = self._path.field(schema)
        if field is None:
            names = ", ".join(schema.field_names)
            raise DataError(
                f"Unknown field: {self.config.field} (of a {self.side} of {batch.topic}); there are: {names}"
            )
        return self._path.column(schema, column, defaults=self.config.replace_null), field.schema

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        return map_texts(column, lambda value, row: self._path.value(value), _PURPOSE)

    def field_after(self, path: str) -> str | None:
        field = self.config.field
        return path.removeprefix(field).removeprefix(".") if f"{path}.".startswith(f"{field}.") else None


class ExtractKeyField(_ExtractField):
    """Of the key."""

    side = "key"


class ExtractValueField(_ExtractField):
    """Of the value."""

    side = "value"
