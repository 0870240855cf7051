"""Nulls of a column replaced by the default of its schema (``replace.null.with.default``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connect.api.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["with_default"]


def with_default(schema: Schema, column: pa.Array) -> pa.Array:
    """The column with the default of its schema, if there is one, in place of nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if schema.default is None or not column.null_count:
        return column
    default = pa.array([schema.default], schema.arrow_type)
    if pa.types.is_nested(schema.arrow_type):
        picked = pc.if_else(column.is_null(), 0, pc.add(pa.array(range(len(column)), pa.int64()), 1))
        return pa.concat_arrays([default, column]).take(picked)
    return pc.fill_null(column, default[0])
