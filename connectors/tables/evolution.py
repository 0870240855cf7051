"""Changes by which the columns of an existing table follow the records' schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from connect.api import DECIMAL, ConnectError, Field, Schema, SchemaType
from connectors.tables.columns import Column, column_of, decimal_digits, is_logical

__all__ = ["Change", "changes_for", "widened_kind"]

_BITS: Final = {SchemaType.INT8: 8, SchemaType.INT16: 16, SchemaType.INT32: 32, SchemaType.INT64: 64}
_INTEGERS: Final = {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a table's schema; ``path`` leads to the column. One of ``add``, ``widen`` or ``optional``."""

    path: tuple[str, ...]
    add: Schema | None = None
    widen: pa.DataType | None = None
    optional: bool = False


def widened_kind(widened: pa.DataType) -> str:
    """A type that columns are widened to, in the words that table formats share."""
    names = {pa.int16(): "short", pa.int32(): "integer", pa.int64(): "long", pa.float64(): "double"}
    return names.get(widened) or f"decimal({widened.precision}, {widened.scale})"


def changes_for(
    fields: Sequence[Field], columns: Sequence[Column], *, any_case: bool, keep_required: frozenset[str]
) -> list[Change]:
    """The changes that the columns need to take the fields.

    ``keep_required`` are the id columns. Raises ConnectError where a table cannot follow.
    """
    return list(_changes(fields, columns, (), any_case, keep_required))


def _changes(
    fields: Sequence[Field],
    columns: Sequence[Column],
    path: tuple[str, ...],
    any_case: bool,
    keep_required: frozenset[str],
) -> Iterator[Change]:
    for field in fields:
        column = column_of(columns, field.name, any_case=any_case)
        if column is None:
            yield Change((*path, field.name), add=field.schema)
            continue
        here = (*path, column.name)
        if column.required and field.schema.optional and ".".join(here) not in keep_required:
            yield Change(here, optional=True)
        yield from _of_type(field.schema, column, here, any_case, keep_required)


def _of_type(
    schema: Schema, column: Column, path: tuple[str, ...], any_case: bool, keep_required: frozenset[str]
) -> Iterator[Change]:
    if pa.types.is_struct(column.type) and schema.type is SchemaType.STRUCT:
        yield from _changes(schema.fields, column.children, path, any_case, keep_required)
    elif (pa.types.is_list(column.type) and schema.type is SchemaType.ARRAY) or (
        pa.types.is_map(column.type) and schema.type is SchemaType.MAP
    ):
        items, inner = column.children[-1], schema.value_schema
        assert inner is not None
        if items.required and inner.optional:
            yield Change((*path, items.name), optional=True)
        yield from _of_type(inner, items, (*path, items.name), any_case, keep_required)
    elif (wider := _wider(schema, column, path)) is not None:
        yield Change(path, widen=wider)


def _wider(schema: Schema, column: Column, path: tuple[str, ...]) -> pa.DataType | None:
    """The type that a column is widened to. Raises ConnectError for a decimal that no table widens."""
    if pa.types.is_signed_integer(column.type) and not is_logical(schema):
        bits = _BITS.get(schema.type, 0)
        return _INTEGERS[bits] if bits > column.type.bit_width else None
    if pa.types.is_float32(column.type) and schema.type is SchemaType.FLOAT64:
        return pa.float64()
    if pa.types.is_decimal(column.type) and schema.name == DECIMAL:
        precision, scale = decimal_digits(schema, ".".join(path))
        if scale > column.type.scale:
            raise ConnectError(
                f"column {'.'.join(path)} is {column.kind}, and the records have decimal({precision}, {scale}): a table never "
                "changes a scale. Add a column with the new scale and rename the field, or cast it with a transformation"
            )
        if scale == column.type.scale and precision > column.type.precision:
            return pa.decimal128(precision, scale)
    return None
