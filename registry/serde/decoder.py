"""Avro bodies to Arrow columns, without a Python call per row.

All rows are read at once, field after field: a cursor holds every row's position in the one data buffer, and reading a
field is a few vector operations on it. Every read is checked against the row's end, so bytes that do not fit the
schema end in an error that names the row and the field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

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
from registry.serde.errors import CorruptRecord
from registry.serde.logical import branch_names, logical_of, null_branch, value_branches
from registry.serde.walk import SIZELESS, Budget, smallest, walk_blocks

__all__ = ["decode_bodies"]

Ints = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]
Mask = npt.NDArray[np.bool_]
ReadItem = Callable[["_Cursor"], list[pa.Array]]
Items = tuple[Ints, list[pa.Array]]

_STEPS: Final = 64
_FEW_ROWS: Final = 64


def decode_bodies(type_: AvroType, values: pa.Array, skip: int = 0) -> pa.Array:
    """The values that the rows of a BinaryArray without nulls hold after ``skip`` bytes. Raises CorruptRecord."""
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values) + 1].astype(np.int64)
    buffer = values.buffers()[2]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(1, np.uint8)
    cursor = _Cursor(data, offsets[:-1] + skip, offsets[1:], np.arange(len(values)), Budget(SIZELESS))
    cursor.check(cursor.position <= cursor.end, "", "the record ends within its header")
    decoded = _read(type_, cursor, "")
    left = cursor.end - cursor.position
    cursor.check(left == 0, "", lambda at: f"{left[at]} bytes are left over after the record")
    return decoded


class _Cursor:
    """Where each of some rows is being read."""

    __slots__ = ("budget", "data", "end", "position", "rows")

    def __init__(self, data: Bytes, position: Ints, end: Ints, rows: Ints, budget: Budget) -> None:
        self.data, self.position, self.end, self.rows, self.budget = data, position, end, rows, budget

    def __len__(self) -> int:
        return len(self.position)

    def part(self, chosen: Any) -> _Cursor:
        """A cursor of some of the rows; give it back with ``advance`` when it was read."""
        return _Cursor(self.data, self.position[chosen], self.end[chosen], self.rows[chosen], self.budget)

    def advance(self, chosen: Any, part: _Cursor) -> None:
        self.position[chosen] = part.position

    def check(self, good: Mask, path: str, reason: str | Callable[[int], str]) -> None:
        if not good.all():
            at = int(good.argmin())
            raise CorruptRecord(reason if isinstance(reason, str) else reason(at), row=int(self.rows[at]), path=path)

    def take(self, width: int, path: str) -> Bytes:
        """The next ``width`` bytes of each row, as a matrix."""
        self.check(self.position + width <= self.end, path, f"the record ends within the {width} bytes of the value")
        taken: Bytes = self.data[self.position.reshape(-1, 1) + np.arange(width)]
        self.position = self.position + width
        return taken

    def varints(self, path: str) -> Ints:
        """The next zigzag number of each row."""
        self.check(self.position < self.end, path, "the record ends where a number should begin")
        first = self.data[self.position]
        value = (first & 0x7F).astype(np.uint64)
        self.position = self.position + 1
        open_ = np.flatnonzero(first >= 0x80)
        for place in range(1, 11):
            if not len(open_):
                break
            part = self.part(open_)
            if place == 10:
                part.check(np.zeros(len(part), np.bool_), path, "a number goes on after 10 bytes")
            part.check(part.position < part.end, path, "the record ends within a number")
            byte = self.data[part.position]
            if place == 9:
                part.check(byte <= 1, path, "a number is wider than 64 bits")
            value[open_] |= (byte & 0x7F).astype(np.uint64) << np.uint64(7 * place)
            self.position[open_] += 1
            open_ = open_[byte >= 0x80]
        decoded: Ints = (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64)
        return decoded

    def strings(self, path: str) -> pa.Array:
        """The next length-prefixed bytes of each row, as a BinaryArray."""
        lengths = self.varints(path)
        self.check(lengths >= 0, path, lambda at: f"a length of {lengths[at]}")
        # Not position + length <= end: a length near 2^63 would wrap.
        self.check(
            lengths <= self.end - self.position,
            path,
            lambda at: f"a length of {lengths[at]} where {self.end[at] - self.position[at]} bytes are left",
        )
        start = self.position
        self.position = start + lengths
        # Rows lie in the buffer one after another, so the values and the gaps between them make one array of
        # segments; every second one is a value.
        bounds = np.empty(2 * len(start) + 1, np.int32)
        bounds[0:-1:2] = start
        bounds[1::2] = self.position
        bounds[-1] = self.position[-1] if len(start) else 0
        buffers = [None, pa.py_buffer(bounds), pa.py_buffer(self.data)]
        segments = pa.Array.from_buffers(pa.binary(), 2 * len(start), buffers)
        return segments.take(pa.array(np.arange(0, 2 * len(start), 2)))


def _read(type_: AvroType, cursor: _Cursor, path: str) -> pa.Array:
    match type_:
        case RecordType():
            columns = [_read(f.type, cursor, f"{path}.{f.name}" if path else f.name) for f in type_.fields]
            if not columns:
                return pa.array([{}] * len(cursor), pa.struct([]))
            return pa.StructArray.from_arrays(columns, fields=list(type_to_arrow(type_, path)))
        case UnionType():
            return _read_union(type_, cursor, path)
        case ArrayType():
            counts, items = _read_blocks(
                cursor, [type_.items], path, lambda part: [_read(type_.items, part, f"{path}[]")]
            )
            return _listed(counts, items, type_to_arrow(type_, path), lambda: type_to_arrow(type_.items))
        case MapType():
            return _read_map(type_, cursor, path)
        case EnumType():
            return _read_enum(type_, cursor, path)
    return _read_scalar(type_, cursor, path)


def _read_scalar(type_: AvroType, cursor: _Cursor, path: str) -> pa.Array:
    arrow = type_to_arrow(type_, path)
    match type_.kind:
        case "null":
            return pa.nulls(len(cursor))
        case "boolean":
            data = cursor.take(1, path).ravel()
            cursor.check(data <= 1, path, lambda at: f"a boolean of {data[at]}")
            return pa.array(data.astype(np.bool_))
        case "int":
            numbers = cursor.varints(path)
            small = (numbers >= -(1 << 31)) & (numbers < 1 << 31)
            cursor.check(small, path, lambda at: f"{numbers[at]} is no int")
            return _checked_time(pa.array(numbers.astype(np.int32)), arrow, cursor, path)
        case "long":
            return _checked_time(pa.array(cursor.varints(path)), arrow, cursor, path)
        case "float":
            return pa.array(cursor.take(4, path).view("<f4").ravel())
        case "double":
            return pa.array(cursor.take(8, path).view("<f8").ravel())
    decimal = logical_of(type_) == "decimal"
    if isinstance(type_, FixedType):
        data = cursor.take(type_.size, path)
        if decimal:
            return _decimals(data, np.full(len(data), type_.size), arrow, cursor, path)
        return pa.Array.from_buffers(arrow, len(data), [None, pa.py_buffer(np.ascontiguousarray(data))])
    if decimal:
        return _read_decimal(cursor, arrow, path)
    values = cursor.strings(path)
    return values if arrow == pa.binary() else _as_text(values, cursor, path)


def _checked_time(numbers: pa.Array, arrow: pa.DataType, cursor: _Cursor, path: str) -> pa.Array:
    """Numbers in their logical type; a time of day must lie within the day, or Arrow's values mean nothing."""
    if pa.types.is_time(arrow):
        day = 86_400_000 if arrow.unit == "ms" else 86_400_000_000
        plain = numbers.to_numpy()
        cursor.check((plain >= 0) & (plain < day), path, lambda at: f"{plain[at]} {arrow.unit} is no time of day")
    return numbers.view(arrow)


def _as_text(values: pa.Array, cursor: _Cursor, path: str) -> pa.Array:
    try:
        return values.cast(pa.string())
    except pa.ArrowInvalid:
        for at, value in enumerate(values):
            try:
                value.as_py().decode()
            except UnicodeDecodeError as error:
                raise CorruptRecord(f"not UTF-8: {error}", row=int(cursor.rows[at]), path=path) from error
        raise


def _read_decimal(cursor: _Cursor, arrow: pa.DataType, path: str) -> pa.Array:
    values = cursor.strings(path)
    lengths = pc.binary_length(values).to_numpy().astype(np.int64)
    widest = max(int(lengths.max()) if len(lengths) else 0, 1)
    if widest > 1024:
        at = int(lengths.argmax())
        raise CorruptRecord(f"a decimal of {lengths[at]} bytes", row=int(cursor.rows[at]), path=path)
    offsets = np.frombuffer(values.buffers()[1], np.int32)[values.offset :][: len(values)].astype(np.int64)
    buffer = values.buffers()[2]
    data = np.frombuffer(buffer, np.uint8) if buffer is not None and buffer.size else np.zeros(1, np.uint8)
    # Right-aligned, so that the lowest bytes stand in one column.
    places = (offsets + lengths - widest).reshape(-1, 1) + np.arange(widest)
    inside = np.arange(widest) >= (widest - lengths).reshape(-1, 1)
    aligned = np.where(inside, data[np.clip(places, 0, len(data) - 1)], np.uint8(0))
    first = aligned[np.arange(len(aligned)), np.minimum(widest - lengths, widest - 1)]
    negative = (first >= 0x80) & (lengths > 0)
    aligned[~inside & negative.reshape(-1, 1)] = 0xFF
    return _decimals(aligned, lengths, arrow, cursor, path)


def _decimals(data: Bytes, lengths: Ints, arrow: pa.DataType, cursor: _Cursor, path: str) -> pa.Array:
    """Big-endian two's complement of any width as decimals; one with too many digits is an error."""
    width, given = arrow.bit_width // 8, data.shape[1]
    sign = np.where(data[:, :1] >= 0x80, np.uint8(0xFF), np.uint8(0))
    if given < width:
        data = np.concatenate([np.broadcast_to(sign, (len(data), width - given)), data], axis=1)
    elif given > width:
        cut, data = data[:, : given - width], data[:, given - width :]
        fits = (cut == sign).all(axis=1) & ((data[:, 0] >= 0x80) == (sign[:, 0] == 0xFF))
        cursor.check(fits, path, lambda at: f"a decimal of {lengths[at]} bytes, more than {arrow.precision} digits")
    made = pa.Array.from_buffers(arrow, len(data), [None, pa.py_buffer(np.ascontiguousarray(data[:, ::-1]))])
    try:
        made.validate(full=True)
    except pa.ArrowInvalid as error:
        _raise_at_invalid(made, cursor, path, error)
    return made


def _raise_at_invalid(made: pa.Array, cursor: _Cursor, path: str, error: Exception) -> NoReturn:
    for at in range(len(made)):
        try:
            made.slice(at, 1).validate(full=True)
        except pa.ArrowInvalid:
            raise CorruptRecord(str(error), row=int(cursor.rows[at]), path=path) from error
    raise error


def _read_enum(type_: EnumType, cursor: _Cursor, path: str) -> pa.Array:
    index = cursor.varints(path)
    known = (index >= 0) & (index < len(type_.symbols))
    cursor.check(known, path, lambda at: f"symbol {index[at]} of {len(type_.symbols)} in {type_.full_name}")
    return pa.array(type_.symbols, pa.string()).take(pa.array(index))


def _read_union(type_: UnionType, cursor: _Cursor, path: str) -> pa.Array:
    choice = cursor.varints(path)
    known = (choice >= 0) & (choice < len(type_.branches))
    cursor.check(known, path, lambda at: f"branch {choice[at]} of a union of {len(type_.branches)}")
    branches = value_branches(type_)
    if not branches:
        return pa.nulls(len(cursor))
    columns = []
    for index, branch in branches:
        here = choice == index
        if here.all():
            columns.append(_read(branch, cursor, path))
            continue
        chosen = np.flatnonzero(here)
        part = cursor.part(chosen)
        values = _read(branch, part, path)
        cursor.advance(chosen, part)
        # Row i takes the value at its rank among the chosen, null where it was not chosen.
        rank = np.cumsum(here) - 1
        columns.append(values.take(pa.array(rank, mask=~here)))
    if len(branches) == 1:
        return columns[0]
    fields = [pa.field(n, c.type, True) for n, c in zip(branch_names(type_), columns, strict=True)]
    null = null_branch(type_)
    mask = None if null is None else pa.array(choice == null)
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _read_map(type_: MapType, cursor: _Cursor, path: str) -> pa.Array:
    def entries(part: _Cursor) -> list[pa.Array]:
        keys = _as_text(part.strings(f"{path}{{}}"), part, f"{path}{{}}")
        return [keys, _read(type_.values, part, f"{path}[]")]

    counts, columns = _read_blocks(cursor, [PrimitiveType("string"), type_.values], path, entries)
    arrow = type_to_arrow(type_, path)
    offsets = pa.array(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32))
    keys, items = columns or [pa.array([], arrow.key_type), pa.array([], arrow.item_type)]
    return pa.MapArray.from_arrays(offsets, keys, items, type=arrow)


def _listed(counts: Ints, items: list[pa.Array], arrow: pa.DataType, item_type: Callable[[], pa.DataType]) -> pa.Array:
    offsets = pa.array(np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int32))
    values = items[0] if items else pa.array([], item_type())
    return pa.ListArray.from_arrays(offsets, values, type=arrow)


def _read_blocks(cursor: _Cursor, types: Sequence[AvroType], path: str, read_item: ReadItem) -> Items:
    """Items of blocked lists: how many each row has, and the columns of all items in the order of rows.

    The first items of all rows are read at once, then the second ones, and so on. When only a few rows go on for long,
    their items are first found one by one and then read at once, or one list of a million would take a million steps.
    """
    counts = np.zeros(len(cursor), np.int64)
    left = np.zeros(len(cursor), np.int64)
    open_ = np.arange(len(cursor))
    sizeless = not any(smallest(type_) for type_ in types)
    owners: list[Ints] = []
    steps: list[list[pa.Array]] = []
    while len(open_):
        _begin_blocks(cursor, left, open_, sizeless=sizeless, path=path)
        open_ = open_[left[open_] > 0]
        if not len(open_):
            break
        if len(steps) >= _STEPS and len(open_) < _FEW_ROWS:
            part, owner = _walk(cursor, types, left, open_, path)
            open_ = open_[:0]
        else:
            part, owner = cursor.part(open_), open_
        steps.append(read_item(part))
        if len(open_):
            cursor.advance(open_, part)
            left[open_] -= 1
        owners.append(owner)
        counts += np.bincount(owner, minlength=len(counts))
    if not steps:
        return counts, []
    take = pa.array(np.argsort(np.concatenate(owners), kind="stable"))
    columns = [pa.concat_arrays([step[place] for step in steps]).take(take) for place in range(len(steps[0]))]
    return counts, columns


def _begin_blocks(cursor: _Cursor, left: Ints, open_: Ints, *, sizeless: bool, path: str) -> None:
    """Read the header of the next block in the rows that have no item left in theirs; 0 ends a list."""
    waiting = open_[left[open_] == 0]
    if not len(waiting):
        return
    part = cursor.part(waiting)
    announced = part.varints(path)
    sized = np.flatnonzero(announced < 0)
    if len(sized):
        # A negative count is followed by the block's size in bytes, for those who want to skip it.
        headed = part.part(sized)
        headed.varints(path)
        part.advance(sized, headed)
    # Compared before the sign is dropped: the lowest number has no opposite.
    room = np.full(len(part), part.budget.left) if sizeless else part.end - part.position
    fits = (announced <= room) & (announced >= -room)
    part.check(fits, path, lambda at: f"a block of {announced[at]} items where {max(room[at], 0)} can be at most")
    if sizeless:
        try:
            part.budget.spend(int(np.abs(announced).sum()))
        except ValueError as error:
            raise CorruptRecord(str(error), row=int(part.rows[0]), path=path) from error
    cursor.advance(waiting, part)
    left[waiting] = np.abs(announced)


def _walk(cursor: _Cursor, types: Sequence[AvroType], left: Ints, open_: Ints, path: str) -> tuple[_Cursor, Ints]:
    """Find the items of some rows up to the ends of their lists: a cursor at every item, and the rows they belong to."""
    data = cursor.data.data
    starts: list[int] = []
    found: list[int] = []
    for row in open_.tolist():
        before = len(starts)
        try:
            cursor.position[row] = walk_blocks(
                types,
                data,
                int(cursor.position[row]),
                int(cursor.end[row]),
                left=int(left[row]),
                starts=starts,
                budget=cursor.budget,
            )
        except ValueError as error:
            raise CorruptRecord(str(error), row=int(cursor.rows[row]), path=path) from error
        left[row] = 0
        found.append(len(starts) - before)
    owner = np.repeat(open_, found)
    return _Cursor(cursor.data, np.array(starts, np.int64), cursor.end[owner], cursor.rows[owner], cursor.budget), owner
