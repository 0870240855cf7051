"""Arrow columns to Avro bodies, without a Python call per row.

Each type turns its column into pieces: matrices of bytes (a row of the column is a row of the matrix, a mask says which
bytes count) for everything short, and ready byte strings for text and lists. Neighbouring matrices are merged, then
every row's pieces are joined in one pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
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
from registry.serde.defaults import default_column
from registry.serde.errors import UnencodableValue
from registry.serde.logical import branch_names, decimal_of, logical_of, null_branch, value_branches

__all__ = ["encode_bodies"]

Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class _Matrix:
    """Short pieces: row i is ``data[i][mask[i]]``; all of it without a mask."""

    data: Bytes
    mask: Mask | None = None


_Piece: TypeAlias = "_Matrix | pa.Array"


def encode_bodies(type_: AvroType, column: pa.Array, prefix: bytes = b"") -> pa.Array:
    """The Avro body of every row after ``prefix``, as a BinaryArray. Raises UnencodableValue, row and field named."""
    encoder = _Encoder()
    rows = len(column)
    start = _Matrix(np.broadcast_to(np.frombuffer(prefix, np.uint8), (rows, len(prefix))))
    return encoder.join([start, *encoder.pieces(type_, column, None, "")], rows)


class _Encoder:
    def pieces(self, type_: AvroType, column: pa.Array, present: Mask | None, path: str) -> list[_Piece]:
        """The pieces of a column. Rows that are not ``present`` become nothing at all, whatever they hold."""
        match type_:
            case UnionType():
                return self._union(type_, column, present, path)
            case RecordType():
                _check_required(column, present, path)
                return self._record(type_, column, present, path)
            case ArrayType():
                _check_required(column, present, path)
                return self._array(type_, column, present, path)
            case MapType():
                _check_required(column, present, path)
                return self._map(type_, column, present, path)
        if type_.kind == "null":
            return []
        _check_required(column, present, path)
        return self._scalar(type_, _cast(column, type_to_arrow(type_), path), present, path)

    def _record(self, type_: RecordType, column: pa.Array, present: Mask | None, path: str) -> list[_Piece]:
        if not pa.types.is_struct(column.type):
            raise UnencodableValue(f"Arrow type {column.type} is no record {type_.full_name}", path=path)
        names = [field.name for field in column.type]
        known = {field.name for field in type_.fields}
        if strange := [name for name in names if name not in known]:
            raise UnencodableValue(
                f"the schema {type_.full_name} has no field {', '.join(strange)}; it has {', '.join(sorted(known))}",
                path=path,
            )
        children = dict(zip(names, column.flatten(), strict=True))
        pieces: list[_Piece] = []
        for field in type_.fields:
            place = f"{path}.{field.name}" if path else field.name
            child = children.get(field.name)
            if child is None:
                if not field.has_default:
                    raise UnencodableValue("the column is missing, and the schema has no default for it", path=place)
                child = default_column(field.type, field.default, len(column))
            pieces += self.pieces(field.type, child, present, place)
        return pieces

    def _union(self, type_: UnionType, column: pa.Array, present: Mask | None, path: str) -> list[_Piece]:
        null, branches = null_branch(type_), value_branches(type_)
        valid = _valid(column)
        if null is None:
            _check_required(column, present, path)
        if not branches:
            if valid is None or valid.any():
                raise UnencodableValue("the schema knows only null here", path=path)
            return [_constant(_varint(null or 0), len(column), present)]
        if len(branches) == 1:
            columns = [column]
            chosen = [valid]
        else:
            columns = _branch_columns(type_, column, path)
            chosen = [_and(_valid(child), valid) for child in columns]
            _check_one_set(chosen, valid, present, path)
        choice = np.full(len(column), null or 0, np.int64)
        for (index, _), mask in zip(branches, chosen, strict=True):
            choice[slice(None) if mask is None else mask] = index
        pieces: list[_Piece] = [_masked(_varints(choice), present)]
        for (_, branch), child, mask in zip(branches, columns, chosen, strict=True):
            pieces += self.pieces(branch, child, _and(present, mask), path)
        return pieces

    def _array(self, type_: ArrayType, column: pa.Array, present: Mask | None, path: str) -> list[_Piece]:
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            if not pa.types.is_fixed_size_list(column.type):
                raise UnencodableValue(f"Arrow type {column.type} is no array", path=path)
            column = column.cast(pa.list_(column.type.value_field))
        return self._blocks(column, present, lambda items: self.pieces(type_.items, items, None, f"{path}[]"))

    def _map(self, type_: MapType, column: pa.Array, present: Mask | None, path: str) -> list[_Piece]:
        if not pa.types.is_map(column.type):
            raise UnencodableValue(f"Arrow type {column.type} is no map", path=path)
        entry = pa.struct([column.type.key_field, column.type.item_field])
        listed = column.cast(pa.list_(pa.field("entries", entry, False)))
        string = PrimitiveType("string")

        def entries(items: pa.Array) -> list[_Piece]:
            keys, values = items.flatten()
            return self.pieces(string, keys, None, f"{path}{{}}") + self.pieces(type_.values, values, None, f"{path}[]")

        return self._blocks(listed, present, entries)

    def _blocks(self, column: pa.Array, present: Mask | None, encode_items: Any) -> list[_Piece]:
        """One block with all items, then the empty block; an empty list is the empty block alone."""
        if present is not None:
            column = pc.if_else(pa.array(present), column, pa.scalar(None, column.type))
        counts = pc.list_value_length(column).fill_null(0).to_numpy().astype(np.int64)
        items = column.flatten()
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        try:
            bodies = self.join(encode_items(items), len(items))
        except UnencodableValue as error:
            # What was the row of an item is told as the row of its list.
            row = None if error.row is None else int(np.searchsorted(starts, error.row, "right")) - 1
            raise UnencodableValue(error.reason, row=row, path=error.path) from error
        offsets = np.frombuffer(bodies.buffers()[1], np.int32)[bodies.offset :][: len(items) + 1]
        listed = _binary(offsets[starts], bodies.buffers()[2])
        filled = counts > 0
        return [
            _masked(_varints(counts), filled),
            listed,
            _constant(b"\0", len(column), present),
        ]

    def _scalar(self, type_: AvroType, column: pa.Array, present: Mask | None, path: str) -> list[_Piece]:
        match type_.kind:
            case "boolean":
                data = column.cast(pa.uint8()).fill_null(0).to_numpy().reshape(-1, 1)
                return [_Matrix(data, _spread(present, 1))]
            case "int" | "long":
                whole = pa.int32() if column.type.bit_width == 32 else pa.int64()
                numbers = column.view(whole).fill_null(0).to_numpy().astype(np.int64)
                return [_masked(_varints(numbers), present)]
            case "float" | "double":
                width = 4 if type_.kind == "float" else 8
                numbers = column.fill_null(0).to_numpy(zero_copy_only=False).astype(f"<f{width}", copy=False)
                return [_Matrix(numbers.view(np.uint8).reshape(-1, width), _spread(present, width))]
            case "enum" if isinstance(type_, EnumType):
                return [_masked(_varints(_enum_indexes(type_, column, present, path)), present)]
        decimal = decimal_of(type_) if logical_of(type_) == "decimal" else None
        if isinstance(type_, FixedType):
            if decimal is not None:
                return [_fixed_decimal(column, type_.size, present, path)]
            data = _fixed_bytes(column, type_.size)
            return [_Matrix(data, _spread(present, type_.size))]
        if decimal is not None:
            return _decimal(column, present)
        return _text(column, present)

    def join(self, pieces: Sequence[_Piece], rows: int) -> pa.Array:
        """Every row's pieces one after another, as a BinaryArray without nulls."""
        arrays: list[pa.Array] = []
        waiting: list[_Matrix] = []
        for piece in pieces:
            if isinstance(piece, _Matrix):
                waiting.append(piece)
                continue
            arrays += _flattened(waiting)
            waiting = []
            arrays.append(piece)
        arrays += _flattened(waiting)
        if not arrays:
            return _binary(np.zeros(rows + 1, np.int32), pa.py_buffer(b""))
        if len(arrays) == 1:
            return arrays[0].fill_null(b"")
        return pc.binary_join_element_wise(*arrays, b"", null_handling="replace", null_replacement=b"")


def _flattened(matrices: list[_Matrix]) -> list[pa.Array]:
    """Neighbouring matrices as one byte string a row."""
    matrices = [matrix for matrix in matrices if matrix.data.shape[1]]
    if not matrices:
        return []
    rows = len(matrices[0].data)
    data = np.concatenate([matrix.data for matrix in matrices], axis=1)
    if all(matrix.mask is None for matrix in matrices):
        offsets = np.arange(rows + 1, dtype=np.int64) * data.shape[1]
        return [_binary(offsets, pa.py_buffer(np.ascontiguousarray(data)))]
    masks = [
        matrix.mask if matrix.mask is not None else np.broadcast_to(np.True_, matrix.data.shape) for matrix in matrices
    ]
    mask = np.concatenate(masks, axis=1)
    offsets = np.zeros(rows + 1, np.int64)
    for place in range(mask.shape[1]):
        # Column by column: numpy sums short rows ten times slower.
        offsets[1:] += mask[:, place]
    np.cumsum(offsets, out=offsets)
    return [_binary(offsets, pa.py_buffer(data[mask]))]


def _binary(offsets: npt.NDArray[Any], data: pa.Buffer) -> pa.Array:
    if int(offsets[-1]) >= 1 << 31:
        raise UnencodableValue(f"the rows encode to {int(offsets[-1])} bytes; at most 2 GiB go into one batch")
    buffers = [None, pa.py_buffer(np.ascontiguousarray(offsets, np.int32)), data]
    return pa.Array.from_buffers(pa.binary(), len(offsets) - 1, buffers)


def _varint(number: int) -> bytes:
    zigzag, out = (number << 1) ^ (number >> 63), bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _varints(numbers: npt.NDArray[np.int64]) -> _Matrix:
    """Zigzag varints of all rows, as wide as the longest."""
    zigzag = ((numbers << 1) ^ (numbers >> 63)).view(np.uint64)
    widest = int(zigzag.max()) if len(zigzag) else 0
    width = max(1, -(-widest.bit_length() // 7))
    if width == 1:
        return _Matrix(zigzag.astype(np.uint8).reshape(-1, 1))
    data = np.empty((len(numbers), width), np.uint8)
    mask = np.empty((len(numbers), width), np.bool_)
    mask[:, 0] = True
    for position in range(width):
        rest = zigzag >> np.uint64(7 * position)
        data[:, position] = (rest & np.uint64(0x7F)).astype(np.uint8)
        if position + 1 < width:
            more = rest > 0x7F
            data[:, position] |= more.astype(np.uint8) << 7
            mask[:, position + 1] = more
    return _Matrix(data, mask)


def _constant(data: bytes, rows: int, present: Mask | None) -> _Matrix:
    return _Matrix(np.broadcast_to(np.frombuffer(data, np.uint8), (rows, len(data))), _spread(present, len(data)))


def _spread(present: Mask | None, width: int) -> Mask | None:
    return None if present is None else np.broadcast_to(present.reshape(-1, 1), (len(present), width))


def _masked(matrix: _Matrix, present: Mask | None) -> _Matrix:
    spread = _spread(present, matrix.data.shape[1])
    if spread is None:
        return matrix
    return _Matrix(matrix.data, spread if matrix.mask is None else matrix.mask & spread)


def _valid(column: pa.Array) -> Mask | None:
    """Which rows are not null; None for all."""
    if column.null_count == 0:
        return None
    valid: Mask = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def _and(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other


def _check_required(column: pa.Array, present: Mask | None, path: str) -> None:
    valid = _valid(column)
    if valid is None:
        return
    missing = ~valid if present is None else present & ~valid
    if missing.any():
        raise UnencodableValue("null, but the schema allows no null here", row=int(missing.argmax()), path=path)


def _branch_columns(type_: UnionType, column: pa.Array, path: str) -> list[pa.Array]:
    wanted = branch_names(type_)
    if not pa.types.is_struct(column.type) or [field.name for field in column.type] != wanted:
        raise UnencodableValue(
            f"a union of several types is a struct with the fields {', '.join(wanted)}, not {column.type}", path=path
        )
    return list(column.flatten())


def _check_one_set(chosen: list[Mask | None], valid: Mask | None, present: Mask | None, path: str) -> None:
    rows = next((len(mask) for mask in (*chosen, valid, present) if mask is not None), 0)
    if rows == 0:
        raise UnencodableValue("every branch of the union is set; exactly one must be", row=0, path=path)
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


def _cast(column: pa.Array, wanted: pa.DataType, path: str) -> pa.Array:
    """The column in the type of its schema, if no value changes by that."""
    if column.type == wanted:
        return column
    try:
        if pa.types.is_dictionary(column.type):
            column = column.dictionary_decode()
        if pa.types.is_timestamp(wanted) and not pa.types.is_timestamp(column.type):
            raise pa.ArrowInvalid(f"{column.type} is no timestamp")
        return column.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        row = _first_failing(column, wanted)
        raise UnencodableValue(f"{column.type} does not fit {wanted}: {error}", row=row, path=path) from error


def _first_failing(column: pa.Array, wanted: pa.DataType) -> int | None:
    """The row whose value cannot be cast, by halving; None where no value could."""
    low, high = 0, len(column)
    try:
        column.slice(0, 0).cast(wanted)
    except pa.ArrowException:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        try:
            column.slice(low, middle - low).cast(wanted)
            low = middle
        except pa.ArrowException:
            high = middle
    return low


def _enum_indexes(type_: EnumType, column: pa.Array, present: Mask | None, path: str) -> npt.NDArray[np.int64]:
    found = pc.index_in(column, pa.array(type_.symbols, pa.string()))
    unknown = found.is_null().to_numpy(zero_copy_only=False)
    if present is not None:
        unknown = unknown & present
    if unknown.any():
        row = int(unknown.argmax())
        raise UnencodableValue(
            f"'{column[row]}' is no symbol of {type_.full_name} ({', '.join(type_.symbols)})", row=row, path=path
        )
    indexes: npt.NDArray[np.int64] = found.fill_null(0).to_numpy().astype(np.int64)
    return indexes


def _text(column: pa.Array, present: Mask | None) -> list[_Piece]:
    lengths = pc.binary_length(column).fill_null(0).to_numpy().astype(np.int64)
    data = column.view(pa.binary())
    if present is not None:
        data = pc.if_else(pa.array(present), data, pa.scalar(None, pa.binary()))
    return [_masked(_varints(lengths), present), data]


def _fixed_bytes(column: pa.Array, size: int) -> Bytes:
    """The values of a fixed-width column as rows of bytes; nulls are whatever lies there."""
    buffer = column.buffers()[1]
    if buffer is None or size == 0:
        return np.zeros((len(column), size), np.uint8)
    return np.frombuffer(buffer, np.uint8)[column.offset * size :][: len(column) * size].reshape(-1, size)


def _big_endian(column: pa.Array) -> Bytes:
    """Unscaled decimals as two's complement, highest byte first."""
    return _fixed_bytes(column, column.type.bit_width // 8)[:, ::-1]


def _decimal(column: pa.Array, present: Mask | None) -> list[_Piece]:
    """Decimals as the fewest bytes that keep the sign, as Java's BigInteger writes them."""
    data = _big_endian(column)
    width = data.shape[1]
    negative = data[:, :1] >= 0x80
    meaningful = data != np.where(negative, np.uint8(0xFF), np.uint8(0))
    first = np.where(meaningful.any(axis=1), meaningful.argmax(axis=1), width - 1)
    # The byte kept first must show the sign; where its top bit says otherwise, one sign byte more is needed.
    shown = data[np.arange(len(data)), first] >= 0x80
    first = first - ((shown != negative[:, 0]) & (first > 0))
    kept = np.arange(width) >= first.reshape(-1, 1)
    lengths = _varints((width - first).astype(np.int64))
    return [_masked(lengths, present), _masked(_Matrix(data, kept), present)]


def _fixed_decimal(column: pa.Array, size: int, present: Mask | None, path: str) -> _Matrix:
    data = _big_endian(column)
    width = data.shape[1]
    sign = np.where(data[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    if size >= width:
        filled = np.broadcast_to(sign, (len(data), size - width))
        return _Matrix(np.concatenate([filled, data], axis=1), _spread(present, size))
    cut, kept = data[:, : width - size], data[:, width - size :]
    lost = (cut != sign).any(axis=1) | ((kept[:, 0] >= 0x80) != (sign[:, 0] == 0xFF))
    valid = _and(_valid(column), present)
    if valid is not None:
        lost &= valid
    if lost.any():
        raise UnencodableValue(f"the decimal needs more than {size} bytes", row=int(lost.argmax()), path=path)
    return _Matrix(kept, _spread(present, size))
