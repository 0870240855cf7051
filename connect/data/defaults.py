"""Replaces nulls of a column by its schema's default (``replace.null.with.default``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from connect.data.schema import Schema, SchemaType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["filled_defaults", "with_default"]


def with_default(schema: Schema, column: pa.Array) -> pa.Array:
    """The column with nulls replaced by its schema's default, if there is one."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if schema.default is None or not column.null_count:
        return column
    default = pa.array([schema.default], schema.arrow_type)
    if pa.types.is_nested(schema.arrow_type):
        picked = pc.if_else(column.is_null(), 0, pc.add(pa.array(range(len(column)), pa.int64()), 1))
        return pa.concat_arrays([default, column]).take(picked)
    return pc.fill_null(column, default[0])


def filled_defaults(schema: Schema, column: pa.Array) -> pa.Array:
    """The column with nulls in struct fields replaced by defaults, at any depth; the column itself without defaults."""
    import pyarrow as pa

    if schema.type is not SchemaType.STRUCT or not _has_defaults(schema):
        return column
    parts = []
    for index, member in enumerate(schema.fields):
        parts.append(filled_defaults(member.schema, with_default(member.schema, column.field(index))))
    valid = column.is_valid().buffers()[1] if column.null_count else None
    return pa.Array.from_buffers(schema.arrow_type, len(column), [valid], children=parts)


def _has_defaults(schema: Schema) -> bool:
    return any(
        member.schema.default is not None or (member.schema.type is SchemaType.STRUCT and _has_defaults(member.schema))
        for member in schema.fields
    )
