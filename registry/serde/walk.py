"""Stepping over Avro values one at a time, to find where the items of a long list begin. Raises ValueError."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from registry.formats.avro.model import ArrayType, AvroType, FixedType, MapType, PrimitiveType, RecordType, UnionType

__all__ = ["SIZELESS", "Budget", "must_be_walked", "smallest", "walk", "walk_blocks"]

_WIDTHS: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_STRING: Final = PrimitiveType("string")
SIZELESS: Final = 1 << 20
"""Items of no bytes that a batch, or a single record, may have."""


MAX_DEPTH: Final = 300
"""Types within types that a walk goes down."""


class Budget:
    """What bytes may still ask for: items of no bytes (null), which nothing else bounds, and depth."""

    def __init__(self, items: int) -> None:
        self.left = items
        self.depth = 0

    def spend(self, items: int) -> None:
        """Raises ValueError when there is not enough left."""
        if items > self.left:
            raise ValueError(f"a block of {items} items that have no bytes; {self.left} more of them are taken")
        self.left -= items


def smallest(type_: AvroType, known: dict[int, int] | None = None) -> int:
    """The fewest bytes a value can have: 0 or 1, which is all that matters."""
    if isinstance(type_, RecordType):
        known = {} if known is None else known
        if id(type_) not in known:
            # A record that holds itself without a union or a list between has no values at all.
            known[id(type_)] = 0
            known[id(type_)] = max((smallest(field.type, known) for field in type_.fields), default=0)
        return known[id(type_)]
    if isinstance(type_, FixedType):
        return min(type_.size, 1)
    return min(_WIDTHS.get(type_.kind, 1), 1)


def must_be_walked(type_: AvroType, known: dict[int, bool] | None = None) -> bool:
    """Whether few bytes can ask for much: a list of items of no bytes, or a record that holds itself."""
    known = {} if known is None else known
    match type_:
        case ArrayType():
            return not smallest(type_.items) or must_be_walked(type_.items, known)
        case MapType():
            return must_be_walked(type_.values, known)
        case UnionType():
            return any(must_be_walked(branch, known) for branch in type_.branches)
        case RecordType():
            if id(type_) not in known:
                # Met again while it is being looked at, it holds itself.
                known[id(type_)] = True
                known[id(type_)] = any(must_be_walked(field.type, known) for field in type_.fields)
            return known[id(type_)]
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
        budget.depth += 1
        if budget.depth > MAX_DEPTH:
            raise ValueError(f"nested deeper than {MAX_DEPTH} types")
        position = _step_into(type_, data, position, end, budget)
        budget.depth -= 1
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
