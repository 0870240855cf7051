"""Converts columns between Connect's Arrow form and that of their Avro schemas, where the two differ.

They differ in small integers (Avro has int), maps without text keys (an array of entries), the width of decimals, and
logical types that Connect does not know (microseconds are plain long numbers to it).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from connect.api import DataError, Schema, SchemaType

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["from_avro_column", "renamed", "to_avro_column"]


def to_avro_column(schema: Schema, column: pa.Array, *, optional_keys: bool = False) -> pa.Array:
    """The column with maps without text keys as lists of entries. The codec casts other differences."""
    import pyarrow as pa

    if not _has_entry_maps(schema, optional_keys):
        return column
    if schema.type is SchemaType.STRUCT:
        children = [
            to_avro_column(m.schema, column.field(i), optional_keys=optional_keys) for i, m in enumerate(schema.fields)
        ]
        fields = [
            pa.field(m.name, child.type, m.schema.optional) for m, child in zip(schema.fields, children, strict=True)
        ]
        return _rebuilt(pa.struct(fields), column, children)
    assert schema.value_schema is not None
    if schema.type is SchemaType.ARRAY:
        items = to_avro_column(schema.value_schema, column.values, optional_keys=optional_keys)
        made = pa.ListArray.from_buffers(
            pa.list_(items.type), len(column), column.buffers()[:2], offset=column.offset, children=[items]
        )
        return made
    assert schema.key_schema is not None
    keys = to_avro_column(schema.key_schema, column.keys, optional_keys=optional_keys)
    items = to_avro_column(schema.value_schema, column.items, optional_keys=optional_keys)
    entries = pa.StructArray.from_arrays([keys, items], names=["key", "value"])
    buffers = column.buffers()[:2]
    return pa.ListArray.from_buffers(
        pa.list_(entries.type), len(column), buffers, offset=column.offset, children=[entries]
    )


def _has_entry_maps(schema: Schema, optional_keys: bool) -> bool:
    if schema.type is SchemaType.MAP:
        assert schema.key_schema is not None and schema.value_schema is not None
        plain = schema.key_schema.type is SchemaType.STRING and (optional_keys or not schema.key_schema.optional)
        return not plain or _has_entry_maps(schema.value_schema, optional_keys)
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        return _has_entry_maps(schema.value_schema, optional_keys)
    return any(_has_entry_maps(member.schema, optional_keys) for member in schema.fields)


def from_avro_column(schema: Schema, column: pa.Array) -> pa.Array:
    """The column in the Arrow type of its Connect schema. Raises DataError if a value does not fit."""
    import pyarrow as pa

    arrow_type = schema.arrow_type
    if column.type == arrow_type:
        return column
    if schema.type is SchemaType.STRUCT and pa.types.is_struct(column.type):
        # By position, because members of a union may have other names than in Connect.
        children = [from_avro_column(m.schema, column.field(i)) for i, m in enumerate(schema.fields)]
        return _rebuilt(arrow_type, column, children)
    if schema.type is SchemaType.ARRAY and pa.types.is_list(column.type):
        assert schema.value_schema is not None
        items = from_avro_column(schema.value_schema, column.values)
        return pa.Array.from_buffers(
            arrow_type, len(column), column.buffers()[:2], offset=column.offset, children=[items]
        )
    if schema.type is SchemaType.MAP and (pa.types.is_map(column.type) or pa.types.is_list(column.type)):
        return _map_column(schema, column)
    try:
        if pa.types.is_timestamp(column.type) or pa.types.is_time(column.type):
            return column.view("int64").cast(arrow_type) if column.type.bit_width == 64 else column.cast(arrow_type)
        return column.cast(arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(
            f"a column of {column.type} does not fit {schema.name or schema.type.value}: {error}"
        ) from error


def _map_column(schema: Schema, column: pa.Array) -> pa.Array:
    import pyarrow as pa

    assert schema.key_schema is not None and schema.value_schema is not None
    is_map = pa.types.is_map(column.type)
    keys = column.keys if is_map else column.values.field(0)
    items = column.items if is_map else column.values.field(1)
    made = [from_avro_column(schema.key_schema, keys), from_avro_column(schema.value_schema, items)]
    entry_type = pa.struct([schema.arrow_type.key_field, schema.arrow_type.item_field])
    entries = pa.Array.from_buffers(entry_type, len(keys), [None], children=made)
    buffers = column.buffers()[:2]
    return pa.Array.from_buffers(schema.arrow_type, len(column), buffers, offset=column.offset, children=[entries])


def _rebuilt(arrow_type: pa.DataType, column: pa.Array, children: list[pa.Array]) -> pa.Array:
    """A struct column with other children, null where the original is."""
    import pyarrow as pa

    valid = None
    if column.null_count:
        valid = column.is_valid().buffers()[1]
    return pa.Array.from_buffers(arrow_type, len(column), [valid], children=children)


def renamed(column: pa.Array, arrow_type: pa.DataType) -> pa.Array:
    """The column with the field names of another type of the same shape (scrubbed names, names of unions)."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_struct(kind) and pa.types.is_struct(arrow_type) and kind.num_fields == arrow_type.num_fields:
        children = [renamed(column.field(i), arrow_type.field(i).type) for i in range(kind.num_fields)]
        if all(child.type == kind.field(i).type for i, child in enumerate(children)) and _names(kind) == _names(
            arrow_type
        ):
            return column
        made = [arrow_type.field(i).with_type(child.type) for i, child in enumerate(children)]
        return _rebuilt(pa.struct([inner.with_nullable(True) for inner in made]), column, children)
    if pa.types.is_list(kind) and pa.types.is_list(arrow_type):
        items = renamed(column.values, arrow_type.value_type)
        if items.type == column.values.type:
            return column
        return pa.Array.from_buffers(
            pa.list_(items.type), len(column), column.buffers()[:2], offset=column.offset, children=[items]
        )
    if pa.types.is_map(kind) and pa.types.is_map(arrow_type):
        items = renamed(column.items, arrow_type.item_type)
        if items.type == column.items.type:
            return column
        entries = pa.StructArray.from_arrays([column.keys, items], names=["key", "value"])
        buffers = column.buffers()[:2]
        typed = pa.map_(kind.key_type, items.type)
        return pa.Array.from_buffers(typed, len(column), buffers, offset=column.offset, children=[entries])
    return column


def _names(kind: pa.DataType) -> list[str]:
    """The names of a struct's fields."""
    return [kind.field(i).name for i in range(kind.num_fields)]
