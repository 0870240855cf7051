"""Builds columns of structs from the columns of their fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from connect.data.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["struct_of"]


def struct_of(schema: Schema, columns: Sequence[pa.Array], like: pa.Array | None) -> pa.Array:
    """A column of a struct schema from its fields' columns, null where ``like`` is."""
    import pyarrow as pa

    rows = len(like) if like is not None else len(columns[0])
    mask = like.is_null() if like is not None and like.null_count else None
    if not columns:
        present = [True] * rows if mask is None else [not null for null in mask.to_pylist()]
        return pa.array([{} if there else None for there in present], schema.arrow_type)
    arrow = list(schema.arrow_type)
    # Under a null struct a required field has nulls, which Arrow refuses for fields declared non-nullable.
    loose = pa.StructArray.from_arrays(list(columns), fields=[f.with_nullable(True) for f in arrow], mask=mask)
    return pa.Array.from_buffers(
        schema.arrow_type, len(loose), loose.buffers()[:1], children=[loose.field(i) for i in range(len(arrow))]
    )
