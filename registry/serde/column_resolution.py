"""Avro's schema resolution on whole columns: converts them from the writer's to the reader's schema.

Names are matched as in the compatibility check, numbers are promoted, missing fields get the reader's defaults. A value
that the reader can't represent (a null, an unknown symbol or branch) is an error that names its row.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from registry.formats.avro.model import (
    ArrayType,
    AvroType,
    EnumType,
    Field,
    MapType,
    RecordType,
    UnionType,
)
from registry.formats.avro.text import write_text
from registry.serde.arrow_types import DAY, is_nullable, type_to_arrow
from registry.serde.casts import first_failing
from registry.serde.cursor import packed
from registry.serde.defaults import default_column
from registry.serde.errors import CorruptRecord
from registry.serde.logical import branch_names, value_branches
from registry.serde.matching import field_places, matching_branch, mismatch

__all__ = ["resolve_column"]


def resolve_column(column: pa.Array, writer: AvroType, reader: AvroType, path: str = "") -> pa.Array:
    """Convert ``column``, read with ``writer``, to ``reader``. Raises CorruptRecord if that is impossible."""
    if writer is reader or write_text(writer) == write_text(reader):
        return column
    if isinstance(writer, UnionType) or isinstance(reader, UnionType):
        return _resolve_union(column, writer, reader, path)
    match writer, reader:
        case RecordType(), RecordType():
            return _resolve_record(column, writer, reader, path)
        case ArrayType(), ArrayType():
            offsets = _offsets(column)
            with _rows_of(offsets):
                items = resolve_column(column.flatten(), writer.items, reader.items, f"{path}[]")
            arrow = type_to_arrow(reader)
            return pa.ListArray.from_arrays(pa.array(offsets), items, type=arrow, mask=_null_mask(column))
        case MapType(), MapType():
            column = column.take(pa.array(np.arange(len(column))))
            with _rows_of(column.offsets.to_numpy()):
                items = resolve_column(column.items, writer.values, reader.values, f"{path}[]")
            made = pa.MapArray.from_arrays(column.offsets, column.keys, items, type=type_to_arrow(reader))
            return made if column.null_count == 0 else pc.if_else(column.is_valid(), made, pa.scalar(None, made.type))
        case EnumType(), EnumType():
            return _resolve_enum(column, reader, path)
    return _resolve_scalar(column, writer, reader, path)


def _offsets(column: pa.Array) -> npt.NDArray[np.int32]:
    counts = pc.list_value_length(column).fill_null(0).to_numpy()
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32)


@contextmanager
def _rows_of(offsets: npt.NDArray[np.int32]) -> Iterator[None]:
    """Reports an error in an item with the row of its list."""
    try:
        yield
    except CorruptRecord as error:
        error.row = None if error.row is None else int(np.searchsorted(offsets, error.row, "right")) - 1
        raise


@contextmanager
def _rows_among(valid: npt.NDArray[np.bool_]) -> Iterator[None]:
    """Reports an error in one of the valid rows with its index among all rows."""
    try:
        yield
    except CorruptRecord as error:
        error.row = None if error.row is None else int(np.flatnonzero(valid)[error.row])
        raise


def _null_mask(column: pa.Array) -> pa.Array | None:
    return column.is_null() if column.null_count else None


def _resolve_record(column: pa.Array, writer: RecordType, reader: RecordType, path: str) -> pa.Array:
    children = column.flatten()
    made = []
    for field, position in field_places(writer, reader):
        where = f"{path}.{field.name}" if path else field.name
        if position is None:
            made.append(_missing(field, len(column), where))
            continue
        written = writer.fields[position]
        # A required field of a null record is null too, which is not an error.
        child = children[position]
        if column.null_count and not is_nullable(field.type):
            valid = column.is_valid().to_numpy(zero_copy_only=False)
            with _rows_among(valid):
                resolved = resolve_column(child.filter(pa.array(valid)), written.type, field.type, where)
            child = resolved.take(pa.array(np.cumsum(valid) - 1, mask=~valid))
        else:
            child = resolve_column(child, written.type, field.type, where)
        made.append(child)
    if not made:
        valid = column.is_valid().to_numpy(zero_copy_only=False) if column.null_count else None
        return pa.Array.from_buffers(pa.struct([]), len(column), [packed(valid)], children=[])
    return pa.StructArray.from_arrays(made, fields=list(type_to_arrow(reader)), mask=_null_mask(column))


def _missing(field: Field, rows: int, path: str) -> pa.Array:
    if not field.has_default:
        raise CorruptRecord("the writer's schema lacks the field, and the reader's has no default for it", path=path)
    return default_column(field.type, field.default, rows)


def _resolve_enum(column: pa.Array, reader: EnumType, path: str) -> pa.Array:
    known = pc.is_in(column, pa.array(reader.symbols, pa.string()))
    strange = pc.and_(pc.invert(known), column.is_valid())
    if not pc.any(strange).as_py():
        return column
    if reader.default is None:
        row = pc.index(strange, True).as_py()
        raise CorruptRecord(f"'{column[row]}' is no symbol of {reader.full_name}", row=row, path=path)
    return pc.if_else(strange, reader.default, column)


def _resolve_union(column: pa.Array, writer: AvroType, reader: AvroType, path: str) -> pa.Array:
    targets = value_branches(reader) if isinstance(reader, UnionType) else [(0, reader)]
    nullable = is_nullable(reader)
    if column.null_count and not nullable:
        row = pc.index(column.is_null(), True).as_py()
        raise CorruptRecord("null, but the reader's schema allows no null here", row=row, path=path)
    gathered: list[pa.Array | None] = [None] * len(targets)
    for branch, values in _branches(column, writer):
        if values.null_count == len(values):
            continue
        choice = matching_branch(branch, [target for _, target in targets])
        if choice is None:
            row = pc.index(values.is_valid(), True).as_py()
            raise CorruptRecord(f"the reader's schema has no branch for {branch.kind}", row=row, path=path)
        resolved = resolve_column(values, branch, targets[choice][1], path)
        before = gathered[choice]
        gathered[choice] = resolved if before is None else pc.coalesce(before, resolved)
    columns = [
        values if values is not None else pa.nulls(len(column), type_to_arrow(target))
        for values, (_, target) in zip(gathered, targets, strict=True)
    ]
    if not isinstance(reader, UnionType) or len(targets) <= 1:
        return columns[0] if columns else pa.nulls(len(column))
    fields = [pa.field(n, c.type, True) for n, c in zip(branch_names(reader), columns, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=_null_mask(column))


def _branches(column: pa.Array, type_: AvroType) -> list[tuple[AvroType, pa.Array]]:
    """The values of each branch; null where the row has another branch."""
    if not isinstance(type_, UnionType):
        return [(type_, column)]
    branches = [branch for _, branch in value_branches(type_)]
    return list(zip(branches, [column] if len(branches) == 1 else column.flatten(), strict=False))


def _resolve_scalar(column: pa.Array, writer: AvroType, reader: AvroType, path: str) -> pa.Array:
    if reason := mismatch(writer, reader):
        raise CorruptRecord(reason, path=path)
    arrow_type = type_to_arrow(reader)
    if column.type == arrow_type:
        return column
    # Avro resolves the underlying numbers; the reader determines their meaning. Avro promotes to floating point even if
    # digits are lost; bytes that become text must be UTF-8.
    safe = not pa.types.is_floating(arrow_type)
    try:
        resolved = _plain(column).cast(_plain_type(arrow_type), safe=safe).view(arrow_type)
    except pa.ArrowInvalid as error:
        row = first_failing(_plain(column), _plain_type(arrow_type))
        raise CorruptRecord(f"{writer.kind} cannot be read as {reader.kind}: {error}", row=row, path=path) from error
    if pa.types.is_time(arrow_type):
        plain = _plain(resolved)
        inside = pc.and_(pc.greater_equal(plain, 0), pc.less(plain, DAY[arrow_type.unit]))
        row = pc.index(inside, False).as_py()
        if row >= 0:
            raise CorruptRecord(f"{plain[row]} {arrow_type.unit} is no time of day", row=row, path=path)
    return resolved


def _plain(column: pa.Array) -> pa.Array:
    return column.view(_plain_type(column.type))


def _plain_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_temporal(type_):
        return pa.int32() if type_.bit_width == 32 else pa.int64()
    return type_
