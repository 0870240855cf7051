"""HoistField: the whole key or value becomes a field of a new struct."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from connect.api import Field, RecordBatch, Schema, config, key
from connect.data.structs import struct_of
from connect.transforms.sides import SideTransformation, json_text

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["HoistFieldConfig", "HoistKeyField", "HoistValueField"]


@config
class HoistFieldConfig:
    """Keys of HoistField."""

    field: str = key("field", doc="Name of the one field of the struct, or map without schema, that is made.")


class _HoistField(SideTransformation):
    config_class = HoistFieldConfig
    config: HoistFieldConfig
    traces_fields = True

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        import pyarrow as pa

        column, schema = self.column(batch)
        if column is None:
            column = pa.nulls(len(batch), pa.string())
            return [self.changed(batch, self.change_texts(batch, column), None)]
        if schema is None:
            return [self.changed(batch, self.change_texts(batch, column), None)]
        if not column.null_count or schema.optional:
            return [self.changed(batch, *self.change(batch, schema, column))]
        # A null that the schema does not allow is a tombstone, which has no schema of its own.
        made: list[RecordBatch] = []
        for start, stop, null in _runs(column):
            part = batch.slice(start, stop - start)
            rows = column.slice(start, stop - start)
            if null:
                made.append(self.changed(part, self.change_texts(part, pa.nulls(len(rows), pa.string())), None))
            else:
                made.append(self.changed(part, *self.change(part, schema, rows)))
        return made

    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        made = Schema.struct([Field(self.config.field, schema)])
        return struct_of(made, [column], None), made

    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        import pyarrow as pa

        name = self.config.field
        return pa.array(
            [json_text({name: None if text is None else json.loads(text)}) for text in column.to_pylist()], pa.string()
        )

    def field_after(self, path: str) -> str | None:
        return f"{self.config.field}.{path}" if path else self.config.field


def _runs(column: pa.Array) -> list[tuple[int, int, bool]]:
    nulls = column.is_null().to_pylist()
    edges = [0, *(row for row in range(1, len(nulls)) if nulls[row] != nulls[row - 1]), len(nulls)]
    return [(start, stop, nulls[start]) for start, stop in pairwise(edges)]


class HoistKeyField(_HoistField):
    """Of the key."""

    side = "key"


class HoistValueField(_HoistField):
    """Of the value."""

    side = "value"
