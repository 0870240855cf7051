"""Encodes Arrow columns to Avro bodies, without a Python call per row: each type converts its column to pieces, which
are joined.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

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
from registry.serde.arrow_types import type_to_arrow
from registry.serde.casts import cast, plain_values
from registry.serde.cursor import Ints, Mask
from registry.serde.decimals import decimal_pieces, fixed_decimal_pieces
from registry.serde.defaults import default_column
from registry.serde.errors import UnencodableValue
from registry.serde.logical import branch_names, null_branch, value_branches
from registry.serde.pieces import Long, Piece, Short, constant, fixed, join, masked, text, varints
from tidegate.kit.arrow import is_one_value

__all__ = ["encode_bodies"]


def encode_bodies(type_: AvroType, column: pa.Array, prefix: bytes = b"") -> pa.Array:
    """The Avro body of every row after ``prefix``, as a BinaryArray. Raises UnencodableValue with row and field."""
    rows = len(column)
    return join([*constant(prefix, rows), *_pieces(type_, column, None, "")], rows)


def _pieces(type_: AvroType, column: pa.Array, present: Mask | None, path: str) -> list[Piece]:
    """The pieces of a column. Rows that are not ``present`` produce nothing, whatever their values."""
    if isinstance(type_, UnionType):
        return _union(type_, column, present, path)
    if type_.kind == "null":
        if column.null_count != len(column):
            _check_only_null(column, present, path)
        return []
    _check_required(column, present, path)
    if present is None and is_one_value(column):
        (body,) = join(_value_pieces(type_, column.slice(0, 1), None, path), 1).to_pylist()
        return list(constant(body, len(column)))
    return _value_pieces(type_, column, present, path)


def _value_pieces(type_: AvroType, column: pa.Array, present: Mask | None, path: str) -> list[Piece]:
    match type_:
        case RecordType():
            return _record(type_, column, present, path)
        case ArrayType():
            return _array(type_, column, present, path)
        case MapType():
            return _map(type_, column, present, path)
    return _scalar(type_, cast(column, type_to_arrow(type_, path), path), present, path)


def _record(type_: RecordType, column: pa.Array, present: Mask | None, path: str) -> list[Piece]:
    if not pa.types.is_struct(column.type):
        raise UnencodableValue(f"Arrow type {column.type} is no record {type_.full_name}", path=path)
    names = [field.name for field in column.type]
    known = {field.name for field in type_.fields}
    if strange := [name for name in names if name not in known]:
        raise UnencodableValue(
            f"the schema {type_.full_name} has no field {', '.join(strange)}; it has {', '.join(sorted(known))}",
            path=path,
        )
    children = dict(zip(names, _children(column), strict=True))
    pieces: list[Piece] = []
    for field in type_.fields:
        field_path = f"{path}.{field.name}" if path else field.name
        child = children.get(field.name)
        if child is None:
            if not field.has_default:
                raise UnencodableValue("the column is missing, and the schema has no default for it", path=field_path)
            child = default_column(field.type, field.default, len(column))
        pieces += _pieces(field.type, child, present, field_path)
    return pieces


def _children(column: pa.Array) -> list[pa.Array]:
    """The columns of a struct, null where the struct is null."""
    if column.null_count:
        return list(column.flatten())
    return [column.field(child) for child in range(column.type.num_fields)]


def _union(type_: UnionType, column: pa.Array, present: Mask | None, path: str) -> list[Piece]:
    null, branches = null_branch(type_), value_branches(type_)
    valid = _valid(column)
    if null is None:
        _check_required(column, present, path)
    if not branches:
        _check_only_null(column, present, path)
        return list(varints(np.full(len(column), null or 0), present))
    if len(branches) == 1:
        columns, chosen = [column], [valid]
    else:
        columns = _branch_columns(type_, column, path)
        chosen = [_and(_valid(child), valid) for child in columns]
        _check_one_set(chosen, len(column), valid, present, path)
    choice = np.full(len(column), null or 0, np.int64)
    for (index, _), mask in zip(branches, chosen, strict=True):
        if mask is None:
            choice[:] = index
        else:
            choice += (index - (null or 0)) * mask
    pieces: list[Piece] = list(varints(choice, present))
    for (_, branch), child, mask in zip(branches, columns, chosen, strict=True):
        if mask is not None and not mask.any():
            continue
        pieces += _pieces(branch, child, _and(present, mask), path)
    return pieces


def _array(type_: ArrayType, column: pa.Array, present: Mask | None, path: str) -> list[Piece]:
    kind = column.type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        if not (pa.types.is_fixed_size_list(kind) or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)):
            raise UnencodableValue(f"Arrow type {kind} is no array", path=path)
        column = column.cast(pa.list_(kind.value_field))
    return _blocks(column, present, lambda items: _pieces(type_.items, items, None, f"{path}[]"))


def _map(type_: MapType, column: pa.Array, present: Mask | None, path: str) -> list[Piece]:
    if not pa.types.is_map(column.type):
        raise UnencodableValue(f"Arrow type {column.type} is no map", path=path)
    # Rebuilt as a list instead of cast, because a cast rejects nulls within entries that are null themselves.
    entry = pa.struct([column.type.key_field, column.type.item_field])
    pairs = pa.Array.from_buffers(entry, len(column.keys), [None], children=[column.keys, column.items])
    listed = pa.Array.from_buffers(
        pa.list_(pa.field("entries", entry, False)),
        len(column),
        column.buffers()[:2],
        offset=column.offset,
        children=[pairs],
    )
    string = PrimitiveType("string")

    def entries(items: pa.Array) -> list[Piece]:
        keys, values = _children(items)
        return _pieces(string, keys, None, f"{path}{{}}") + _pieces(type_.values, values, None, f"{path}[]")

    return _blocks(listed, present, entries)


def _blocks(column: pa.Array, present: Mask | None, encode_items: Callable[[pa.Array], list[Piece]]) -> list[Piece]:
    """One block with all items, then the empty block. An empty list is just the empty block."""
    counts = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
    if present is not None and (counts > 0)[~present].any():
        column = pc.if_else(pa.array(present), column, pa.scalar(None, column.type))
        counts *= present
    items = column.flatten()
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    try:
        bodies = join(encode_items(items), len(items))
    except UnencodableValue as error:
        # The error names the row of the list instead of the item's.
        error.row = None if error.row is None else int(np.searchsorted(starts, error.row, "right")) - 1
        raise
    offsets = np.frombuffer(bodies.buffers()[1], np.int32)
    return [
        *varints(counts, counts > 0),
        Long(offsets[starts], bodies.buffers()[2]),
        *constant(b"\0", len(column), present),
    ]


def _scalar(type_: AvroType, column: pa.Array, present: Mask | None, path: str) -> list[Piece]:
    if isinstance(type_, EnumType):
        return list(varints(_enum_indexes(type_, column, present, path), present))
    if isinstance(type_, FixedType):
        if pa.types.is_decimal(column.type):
            return fixed_decimal_pieces(column, type_.size, present, path)
        return fixed(plain_values(column, np.uint8, type_.size).reshape(len(column), type_.size), present)
    match type_.kind:
        case "boolean":
            bits = np.unpackbits(np.frombuffer(column.buffers()[1] or b"", np.uint8), bitorder="little")
            words = bits[column.offset :][: len(column)].astype(np.uint64)
            return [masked(Short(words, 1, 1, 1), present)]
        case "int":
            return list(varints(plain_values(column, np.int32).astype(np.int64), present))
        case "long":
            return list(varints(plain_values(column, np.int64), present))
        case "float":
            return [masked(Short(plain_values(column, np.uint32).astype(np.uint64), 4, 4, 4), present)]
        case "double":
            return [masked(Short(plain_values(column, np.uint64), 8, 8, 8), present)]
    if pa.types.is_decimal(column.type):
        return decimal_pieces(column, present)
    return _text(column, present)


def _valid(column: pa.Array) -> Mask | None:
    """The mask of rows that are not null; None if all are valid."""
    if column.null_count == 0:
        return None
    valid: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _and(left: Mask | None, other: Mask | None) -> Mask | None:
    if left is None or other is None:
        return other if left is None else left
    return left & other


def _check_required(column: pa.Array, present: Mask | None, path: str) -> None:
    valid = _valid(column)
    if valid is None:
        return
    missing = ~valid if present is None else present & ~valid
    if missing.any():
        raise UnencodableValue("null, but the schema allows no null here", row=int(missing.argmax()), path=path)


def _check_only_null(column: pa.Array, present: Mask | None, path: str) -> None:
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    if present is not None:
        valid = valid & present
    if valid.any():
        raise UnencodableValue("the schema knows only null here", row=int(valid.argmax()), path=path)


def _branch_columns(type_: UnionType, column: pa.Array, path: str) -> list[pa.Array]:
    names = branch_names(type_)
    if not pa.types.is_struct(column.type) or [field.name for field in column.type] != names:
        raise UnencodableValue(
            f"a union of several types is a struct with the fields {', '.join(names)}, not {column.type}", path=path
        )
    return _children(column)


def _check_one_set(chosen: list[Mask | None], rows: int, valid: Mask | None, present: Mask | None, path: str) -> None:
    count = np.zeros(rows, np.int64)
    for mask in chosen:
        count += True if mask is None else mask
    wrong = count != 1
    for mask in (valid, present):
        if mask is not None:
            wrong &= mask
    if wrong.any():
        row = int(wrong.argmax())
        raise UnencodableValue(f"{count[row]} branches of the union are set; exactly one must be", row=row, path=path)


def _enum_indexes(type_: EnumType, column: pa.Array, present: Mask | None, path: str) -> Ints:
    symbol_indexes = pc.index_in(column, pa.array(type_.symbols, pa.string()))
    unknown = symbol_indexes.is_null().to_numpy(zero_copy_only=False)
    if present is not None:
        unknown = unknown & present
    if unknown.any():
        row = int(unknown.argmax())
        raise UnencodableValue(
            f"'{column[row]}' is no symbol of {type_.full_name} ({', '.join(type_.symbols)})", row=row, path=path
        )
    indexes: Ints = symbol_indexes.fill_null(0).to_numpy().astype(np.int64)
    return indexes


def _text(column: pa.Array, present: Mask | None) -> list[Piece]:
    if len(column) == 0:
        return []
    _, buffer, data = column.buffers()
    offsets = np.frombuffer(buffer, np.int32)[column.offset :][: len(column) + 1]
    return text(offsets, data if data is not None else pa.py_buffer(b""), present)
