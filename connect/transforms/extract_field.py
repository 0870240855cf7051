"""ExtractField: one field takes the place of the whole key or value."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from connect.api import DataError, RecordBatch, Schema, config, key, non_empty
from connect.transforms.sides import SideTransformation, struct_columns

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["ExtractFieldConfig", "ExtractKeyField", "ExtractValueField"]

_PURPOSE = "field extraction"


@config
class ExtractFieldConfig:
    """Keys of ExtractField."""

    field: str = key("field", check=non_empty, doc="Field name to extract.")
    replace_null: bool = key(
        "replace.null.with.default",
        default=True,
        doc="Whether a null is shown as its field's default; columns keep nulls.",
    )


class _ExtractField(SideTransformation):
    config_class = ExtractFieldConfig
    config: ExtractFieldConfig

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        import pyarrow.compute as pc

        struct_columns(schema, column, _PURPOSE)
        if self.config.field not in schema.field_names:
            names = ", ".join(schema.field_names)
            raise DataError(
                f"Unknown field: {self.config.field} (of a {self.side} of {batch.topic}); there are: {names}"
            )
        return pc.struct_field(column, self.config.field), schema.field(self.config.field).schema

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        import pyarrow as pa

        texts: list[str | None] = []
        for row, text in enumerate(column.to_pylist()):
            value = None if text is None else json.loads(text)
            if value is not None and not isinstance(value, dict):
                raise DataError(
                    f"Only Map objects supported for [{_PURPOSE}], found: {type(value).__name__}", rows=[row]
                )
            found = None if value is None else value.get(self.config.field)
            texts.append(None if found is None else json.dumps(found, separators=(",", ":"), ensure_ascii=False))
        return pa.array(texts, pa.string())


class ExtractKeyField(_ExtractField):
    side = "key"


class ExtractValueField(_ExtractField):
    side = "value"
