"""The two sides of a record that most transformations come for: its key and its value."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from connect.api import DataError, Field, RecordBatch, Schema, SchemaType, Transformation

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["SideTransformation", "map_texts", "struct_columns", "struct_of"]


class SideTransformation(Transformation):
    """A transformation of one side. A batch without that side, or with nothing but nulls in it, passes untouched."""

    side: Literal["key", "value"]

    def apply(self, batch: RecordBatch) -> Sequence[RecordBatch]:
        column = batch.keys if self.side == "key" else batch.values
        schema = batch.key_schema if self.side == "key" else batch.value_schema
        if column is None or column.null_count == len(column):
            return [batch]
        if schema is None:
            made, made_schema = self.change_texts(batch, column), None
        else:
            made, made_schema = self.change(batch, schema, column)
        if self.side == "key":
            return [batch.replace(keys=made, key_schema=made_schema)]
        return [batch.replace(values=made, value_schema=made_schema)]

    @abstractmethod
    def change(self, batch: RecordBatch, schema: Schema, column: pa.Array) -> tuple[pa.Array, Schema]:
        """The changed column and its schema."""

    @abstractmethod
    def change_texts(self, batch: RecordBatch, column: pa.Array) -> pa.Array:
        """The changed column of JSON texts, for data without a schema."""


def struct_columns(schema: Schema, column: pa.Array, purpose: str) -> list[pa.Array]:
    """The columns of a struct's fields; raises DataError for another type, as Kafka Connect does."""
    if schema.type is not SchemaType.STRUCT:
        raise DataError(f"Only Struct objects supported for [{purpose}], found: {schema.name or schema.type.value}")
    return [column.field(position) for position in range(column.type.num_fields)]


def struct_of(
    schema: Schema, fields: Sequence[Field], columns: Sequence[pa.Array], like: pa.Array
) -> tuple[pa.Array, Schema]:
    """A struct column with other fields, null where ``like`` is, and its schema."""
    import pyarrow as pa

    changed = schema.with_fields(fields)
    mask = like.is_null() if like.null_count else None
    if not fields:
        return pa.array([None if null else {} for null in like.is_null().to_pylist()], changed.arrow_type), changed
    arrow = [member.schema.arrow_field(member.name) for member in fields]
    if mask is not None:
        # Under a null struct a required field has a null of its own, which Arrow refuses to see declared impossible.
        loose = pa.StructArray.from_arrays(list(columns), fields=[f.with_nullable(True) for f in arrow], mask=mask)
        return pa.Array.from_buffers(
            changed.arrow_type, len(loose), loose.buffers()[:1], children=[loose.field(i) for i in range(len(arrow))]
        ), changed
    return pa.StructArray.from_arrays(list(columns), fields=arrow), changed


def map_texts(column: pa.Array, change: Callable[[dict[str, Any], int], Any], purpose: str) -> pa.Array:
    """JSON texts of objects, each changed by ``change(value, row)``; nulls stay."""
    import pyarrow as pa

    texts: list[str | None] = []
    for row, text in enumerate(column.to_pylist()):
        value = None if text is None else json.loads(text)
        if value is None:
            texts.append(text)
            continue
        if not isinstance(value, dict):
            raise DataError(f"Only Map objects supported for [{purpose}], found: {type(value).__name__}", rows=[row])
        texts.append(json.dumps(change(value, row), separators=(",", ":"), ensure_ascii=False))
    return pa.array(texts, pa.string())
