"""Avro bodies to Arrow columns, without a Python call per row.

All rows are read together, field by field, through a ``Cursor`` with each row's position. An optional value is read in
the rows that have it: in place if most have it, otherwise with a cursor of only those rows.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np
import pyarrow as pa

from registry.formats.avro.model import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    PrimitiveType,
    RecordType,
    UnionType,
)
from registry.serde.arrow_types import DAY, UnsupportedSchema, is_nullable, type_to_arrow
from registry.serde.blocks import read_blocks
from registry.serde.checking import SIZELESS, Budget
from registry.serde.cursor import Cursor, Ints, Mask, packed, spread_bits
from registry.serde.decimals import read_decimal, read_fixed_decimal
from registry.serde.errors import CorruptRecord
from registry.serde.logical import branch_names, logical_of, null_branch, value_branches

__all__ = ["decode_bodies"]

_MOST: Final = 3
"""An optional value is read in place if at least one in this many rows has it."""

_WIDE_FIXED: Final = 1 << 30
"""The most bytes of a fixed-width column for rows without a value."""


def decode_bodies(type_: AvroType, values: pa.Array, skip: int = 0) -> pa.Array:
    """The values of the rows of a BinaryArray without nulls, after ``skip`` bytes. Raises CorruptRecord."""
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1].astype(np.int64)
    buffer = values.buffers()[2]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(1, np.uint8)
    cursor = Cursor(data, offsets[:-1] + skip, offsets[1:], np.arange(len(values)), Budget(SIZELESS))
    cursor.check(cursor.position <= cursor.end, "", "the record ends within its header")
    decoded = _read(type_, cursor, "")
    left = cursor.end - cursor.position
    cursor.check(left == 0, "", lambda at: f"{left[at]} bytes are left over after the record")
    return decoded


def _read(type_: AvroType, cursor: Cursor, path: str) -> pa.Array:
    """The next value of each row; null in rows that the cursor does not read."""
    match type_:
        case RecordType():
            columns = [_read(f.type, cursor, f"{path}.{f.name}" if path else f.name) for f in type_.fields]
            fields = [
                pa.field(f.name, column.type, is_nullable(f.type))
                for f, column in zip(type_.fields, columns, strict=True)
            ]
            return pa.Array.from_buffers(pa.struct(fields), len(cursor), [cursor.validity], children=columns)
        case UnionType():
            return _read_union(type_, cursor, path)
        case ArrayType():
            return _read_array(type_, cursor, path)
        case MapType():
            return _read_map(type_, cursor, path)
        case EnumType():
            return _read_enum(type_, cursor, path)
        case FixedType():
            return _read_fixed(type_, cursor, path)
    return _read_primitive(type_, cursor, path)


def _read_primitive(type_: AvroType, cursor: Cursor, path: str) -> pa.Array:
    arrow = type_to_arrow(type_, path)
    count = len(cursor)
    match type_.kind:
        case "null":
            return pa.nulls(count)
        case "boolean":
            octets = cursor.octets(path)
            cursor.check(octets <= 1, path, lambda at: f"a boolean of {octets[at]}")
            return pa.Array.from_buffers(arrow, count, [cursor.validity, packed(octets.view(np.bool_))])
        case "int":
            numbers = cursor.varints(path)
            small = numbers.astype(np.int32)
            cursor.check(small == numbers, path, lambda at: f"{numbers[at]} is no int")
            _check_time(small, arrow, cursor, path)
            return pa.Array.from_buffers(arrow, count, [cursor.validity, pa.py_buffer(small)])
        case "long":
            numbers = cursor.varints(path)
            _check_time(numbers, arrow, cursor, path)
            return pa.Array.from_buffers(arrow, count, [cursor.validity, pa.py_buffer(numbers)])
        case "float" | "double":
            taken = cursor.take(4 if type_.kind == "float" else 8, path)
            return pa.Array.from_buffers(arrow, count, [cursor.validity, pa.py_buffer(taken)])
    if pa.types.is_decimal(arrow):
        return read_decimal(cursor, arrow, path)
    if arrow == pa.binary():
        return pa.Array.from_buffers(arrow, count, [cursor.validity, *cursor.strings(path)])
    return _read_text(cursor, path)


def _check_time(numbers: Any, arrow: pa.DataType, cursor: Cursor, path: str) -> None:
    """A time of day must be within the day, otherwise Arrow's values are invalid."""
    if pa.types.is_time(arrow):
        inside = (numbers >= 0) & (numbers < DAY[arrow.unit])
        cursor.check(inside, path, lambda at: f"{numbers[at]} {arrow.unit} is no time of day")


def _read_text(cursor: Cursor, path: str) -> pa.Array:
    offsets, data = cursor.strings(path)
    plain = not data.size or int(np.frombuffer(data, np.uint8).max()) < 0x80
    made = pa.Array.from_buffers(pa.string() if plain else pa.binary(), len(cursor), [cursor.validity, offsets, data])
    if plain:
        return made
    try:
        return made.cast(pa.string())
    except pa.ArrowInvalid:
        for at, value in enumerate(made):
            try:
                bytes(value.as_buffer() or b"").decode()
            except UnicodeDecodeError as error:
                raise CorruptRecord(f"not UTF-8: {error}", row=int(cursor.rows[at]), path=path) from error
        raise


def _read_fixed(type_: FixedType, cursor: Cursor, path: str) -> pa.Array:
    arrow, count = type_to_arrow(type_, path), len(cursor)
    if logical_of(type_) == "decimal":
        return read_fixed_decimal(cursor, type_.size, arrow, path)
    if not type_.size:
        return pa.Array.from_buffers(arrow, count, [cursor.validity, pa.py_buffer(b"")])
    taken = cursor.take(type_.size, path)
    return pa.Array.from_buffers(arrow, count, [cursor.validity, pa.py_buffer(taken)])


def _read_enum(type_: EnumType, cursor: Cursor, path: str) -> pa.Array:
    index = cursor.varints(path)
    known = (index >= 0) & (index < len(type_.symbols))
    cursor.check(known, path, lambda at: f"symbol {index[at]} of {len(type_.symbols)} in {type_.full_name}")
    positions = pa.Array.from_buffers(pa.int64(), len(index), [cursor.validity, pa.py_buffer(index)])
    return pa.array(type_.symbols, pa.string()).take(positions)


def _read_union(type_: UnionType, cursor: Cursor, path: str) -> pa.Array:
    choice = cursor.varints(path)
    known = (choice >= 0) & (choice < len(type_.branches))
    cursor.check(known, path, lambda at: f"branch {choice[at]} of a union of {len(type_.branches)}")
    branches = value_branches(type_)
    if not branches:
        return pa.nulls(len(cursor))
    columns = [_read_some(branch, cursor, choice == index, path) for index, branch in branches]
    if len(branches) == 1:
        return columns[0]
    fields = [pa.field(n, c.type, True) for n, c in zip(branch_names(type_), columns, strict=True)]
    null = null_branch(type_)
    valid = cursor.present
    if null is not None:
        valid = choice != null if valid is None else valid & (choice != null)
    return pa.Array.from_buffers(pa.struct(fields), len(cursor), [packed(valid)], children=columns)


def _read_some(type_: AvroType, cursor: Cursor, mask: Mask, path: str) -> pa.Array:
    """A value in some of the rows, null in the others. The cursor advances in those rows."""
    if cursor.present is not None:
        mask &= cursor.present
    count = int(np.count_nonzero(mask))
    if count == len(mask):
        return _read(type_, cursor, path)
    if (width := _fixed_width(type_)) * len(mask) > max(_WIDE_FIXED, len(cursor.data)):
        raise UnsupportedSchema(
            f"{len(mask)} rows of a fixed of {width} bytes, most without a value, are more than a column holds",
            path=path,
        )
    if count * _MOST >= len(mask):
        some = cursor.among(mask)
        values = _read(type_, some, path)
        cursor.position = some.position
        return values
    chosen = np.flatnonzero(mask)
    part = cursor.part(chosen)
    values = _read(type_, part, path)
    cursor.advance(chosen, part)
    return values.take(spread_bits(mask)) if count else pa.nulls(len(mask), values.type)


@lru_cache(maxsize=10_000)
def _fixed_width(type_: AvroType) -> int:
    """The size of fixed-width values per row of the type in columns, with or without a value."""
    match type_:
        case FixedType():
            return type_.size
        case RecordType():
            return sum(_fixed_width(field.type) for field in type_.fields)
        case UnionType():
            return sum(_fixed_width(branch) for branch in type_.branches)
    return 0


def _read_array(type_: ArrayType, cursor: Cursor, path: str) -> pa.Array:
    counts, items = read_blocks(cursor, [type_.items], path, lambda part: [_read(type_.items, part, f"{path}[]")])
    values = items[0] if items else pa.array([], type_to_arrow(type_.items, f"{path}[]"))
    arrow = pa.list_(pa.field("item", values.type, is_nullable(type_.items)))
    return pa.Array.from_buffers(arrow, len(cursor), [cursor.validity, _offsets(counts)], children=[values])


def _read_map(type_: MapType, cursor: Cursor, path: str) -> pa.Array:
    def entries(part: Cursor) -> list[pa.Array]:
        return [_read_text(part, f"{path}{{}}"), _read(type_.values, part, f"{path}[]")]

    counts, columns = read_blocks(cursor, [PrimitiveType("string"), type_.values], path, entries)
    keys, items = columns or [pa.array([], pa.string()), pa.array([], type_to_arrow(type_.values, f"{path}[]"))]
    arrow = pa.map_(pa.string(), pa.field("value", items.type, is_nullable(type_.values)))
    entry = pa.struct([arrow.key_field, arrow.item_field])
    pairs = pa.Array.from_buffers(entry, len(keys), [None], children=[keys, items])
    return pa.Array.from_buffers(arrow, len(cursor), [cursor.validity, _offsets(counts)], children=[pairs])


def _offsets(counts: Ints) -> pa.Buffer:
    offsets = np.zeros(len(counts) + 1, np.int32)
    np.cumsum(counts, out=offsets[1:])
    return pa.py_buffer(offsets)
