"""Stepping over Avro values one at a time, to find where the items of a long list begin. Raises ValueError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from registry.formats.avro.model import ArrayType, AvroType, FixedType, MapType, PrimitiveType, RecordType, UnionType

__all__ = ["SIZELESS", "Budget", "has_sizeless_items", "smallest", "walk", "walk_blocks"]

_WIDTHS: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_STRING: Final = PrimitiveType("string")
SIZELESS: Final = 1 << 20
"""Items of no bytes that a batch, or a single record, may have."""


class Budget:
    """How many items of no bytes (null) may still come in a batch: nothing else bounds what a few bytes announce."""

    def __init__(self, items: int) -> None:
        self.left = items

    def spend(self, items: int) -> None:
        """Raises ValueError when there is not enough left."""
        if items > self.left:
            raise ValueError(f"a block of {items} items that have no bytes; {self.left} more of them are taken")
        self.left -= items


def smallest(type_: AvroType, within: tuple[int, ...] = ()) -> int:
    """The fewest bytes a value can have: 0 or 1, which is all that matters."""
    if isinstance(type_, RecordType):
        if id(type_) in within:
            # A record that holds itself without a union or a list between has no values at all.
            return 0
        return int(any(smallest(field.type, (*within, id(type_))) for field in type_.fields))
    if isinstance(type_, FixedType):
        return min(type_.size, 1)
    return min(_WIDTHS.get(type_.kind, 1), 1)


def has_sizeless_items(root: AvroType) -> bool:
    """Whether a list within the type has items of no bytes."""
    seen: set[int] = set()
    pending = [root]
    while pending:
        type_ = pending.pop()
        if id(type_) in seen:
            continue
        seen.add(id(type_))
        match type_:
            case ArrayType():
                if not smallest(type_.items):
                    return True
                pending.append(type_.items)
            case MapType():
                pending.append(type_.values)
            case UnionType():
                pending.extend(type_.branches)
            case RecordType():
                pending.extend(field.type for field in type_.fields)
    return False


def walk_blocks(
    types: Sequence[AvroType],
    data: memoryview,
    position: int,
    end: int,
    *,
    left: int,
    starts: list[int] | None,
    budget: Budget,
) -> int:
    """Step over the rest of a list, ``left`` items of whose block are to come; returns where it ends.

    An item is a value of each of ``types``; its place is added to ``starts``.
    """
    sizeless = not any(smallest(type_) for type_ in types)
    while True:
        for _ in range(left):
            if starts is not None:
                starts.append(position)
            for type_ in types:
                position = walk(type_, data, position, end, budget)
        left, position = _number(data, position, end)
        if left == 0:
            return position
        if left < 0:
            left = -left
            _, position = _number(data, position, end)
        if sizeless:
            budget.spend(left)
        elif left > max(end - position, 0):
            raise ValueError(f"a block of {left} items in {max(end - position, 0)} bytes")


def _number(data: memoryview, position: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if position >= end:
            raise ValueError("the record ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    raise ValueError("a number goes on after 10 bytes")


def walk(type_: AvroType, data: memoryview, position: int, end: int, budget: Budget) -> int:
    """Where the value of a type at ``position`` ends."""
    kind = type_.kind
    if kind in _WIDTHS:
        position += _WIDTHS[kind]
    elif kind in ("int", "long", "enum"):
        _, position = _number(data, position, end)
    elif kind in ("string", "bytes"):
        length, position = _number(data, position, end)
        if length < 0:
            raise ValueError(f"a length of {length}")
        position += length
    else:
        position = _step_into(type_, data, position, end, budget)
    if position > end:
        raise ValueError("the record ends within a value")
    return position


def _step_into(type_: AvroType, data: memoryview, position: int, end: int, budget: Budget) -> int:
    match type_:
        case FixedType():
            return position + type_.size
        case RecordType():
            for field in type_.fields:
                position = walk(field.type, data, position, end, budget)
            return position
        case UnionType():
            branch, position = _number(data, position, end)
            if not 0 <= branch < len(type_.branches):
                raise ValueError(f"branch {branch} of a union of {len(type_.branches)}")
            return walk(type_.branches[branch], data, position, end, budget)
        case ArrayType():
            return walk_blocks([type_.items], data, position, end, left=0, starts=None, budget=budget)
        case MapType():
            return walk_blocks([_STRING, type_.values], data, position, end, left=0, starts=None, budget=budget)
    raise ValueError(f"a value of kind {type_.kind}")
