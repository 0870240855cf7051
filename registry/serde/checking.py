"""Steps over single Avro values with all checks, before fastavro reads them and to locate the items of long lists.

fastavro accepts a symbol or branch of -1 as the last one, any byte but 0 as true, and rounds a decimal with too many
digits; it crashes with 20,000 nested records, and produces any number of nulls from a few bytes. A type's check is
compiled once, to a function that returns the end of a value or raises Malformed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

from registry.formats.avro.model import (
    ArrayType,
    AvroType,
    EnumType,
    FixedType,
    MapType,
    RecordType,
    UnionType,
)
from registry.serde.logical import decimal_of, fits_digits, logical_of

__all__ = ["SIZELESS", "Budget", "Check", "Malformed", "block", "check_of", "find_items", "number", "smallest", "span"]

SIZELESS: Final = 1 << 20
"""The most zero-byte items in a batch, or in a single record."""

MAX_DEPTH: Final = 300
"""The deepest nesting of records, arrays and maps in a single value."""

_WIDTHS: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_ITEM: Final = ("[]",)
_ENTRY: Final = ("{}", "[]")
"""Path elements for an item of an array, and for the key and the value of a map."""
_DAYS: Final = {"time-millis": 86_400_000, "time-micros": 86_400_000_000}

Check = Callable[[bytes, int, int, "Budget"], int]
"""Takes data, the position of a value, the end of its record and the remaining budget; returns the value's end."""


class Malformed(ValueError):
    """The problem, and the path of its field."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = ""

    def within(self, outer: str) -> None:
        """Prefix the path with an enclosing field, list or map."""
        joint = "." if self.path and not self.path.startswith(("[", "{")) else ""
        self.path = f"{outer}{joint}{self.path}"


class Budget:
    """The remaining budget: zero-byte items (null), which nothing else limits, and depth."""

    __slots__ = ("depth", "left")

    def __init__(self, items: int = SIZELESS) -> None:
        self.left = items
        self.depth = 0

    def spend(self, items: int) -> None:
        if items > self.left:
            raise Malformed(f"a block of {items} items that have no bytes; {self.left} more of them are taken")
        self.left -= items

    def enter(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise Malformed(f"nested deeper than {MAX_DEPTH} types")


def smallest(type_: AvroType, known: dict[int, int] | None = None) -> int:
    """The minimum size of a value: 0, or 1 for anything larger."""
    if isinstance(type_, RecordType):
        known = {} if known is None else known
        if id(type_) not in known:
            # A record that contains itself without a union or a list in between has no values at all.
            known[id(type_)] = 0
            known[id(type_)] = max((smallest(field.type, known) for field in type_.fields), default=0)
        return known[id(type_)]
    if isinstance(type_, FixedType):
        return min(type_.size, 1)
    return min(_WIDTHS.get(type_.kind, 1), 1)


def number(data: bytes, position: int, end: int) -> tuple[int, int]:
    """A zigzag number and its end."""
    value = shift = 0
    while shift < 70:
        if position >= end:
            raise Malformed("the record ends within a number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                raise Malformed("a number is wider than 64 bits")
            return (value >> 1) ^ -(value & 1), position
        shift += 7
    raise Malformed("a number goes on after 10 bytes")


def span(data: bytes, position: int, end: int) -> tuple[int, int]:
    """The start and end of length-prefixed bytes."""
    length, position = number(data, position, end)
    if length < 0:
        raise Malformed(f"a length of {length}")
    if length > end - position:
        raise Malformed(f"a length of {length} where {end - position} bytes are left")
    return position, position + length


def block(data: bytes, position: int, end: int, budget: Budget, *, sizeless: bool) -> tuple[int, int]:
    """The number of items in the next block of a list (0 at its end), and the start of the first one."""
    count, position = number(data, position, end)
    if count < 0:
        count = -count
        _, position = number(data, position, end)
    if sizeless:
        budget.spend(count)
    elif count > end - position:
        raise Malformed(f"a block of {count} items where {end - position} can be at most")
    return count, position


@lru_cache(maxsize=1000)
def check_of(type_: AvroType) -> Check:
    """The check of a type. Types compare by identity; checks live as long as their schema."""
    return _compiled(type_, {})


def _compiled(type_: AvroType, known: dict[int, list[Check]]) -> Check:
    match type_:
        case RecordType():
            return _record(type_, known)
        case UnionType():
            return _union([_compiled(branch, known) for branch in type_.branches])
        case ArrayType():
            return _blocks([_compiled(type_.items, known)], _ITEM, sizeless=not smallest(type_.items))
        case MapType():
            return _blocks([_text, _compiled(type_.values, known)], _ENTRY, sizeless=False)
        case EnumType():
            return _enum(type_)
        case FixedType() if logical_of(type_) == "decimal":
            return _fixed_decimal(type_, type_.size)
        case FixedType():
            return _width(type_.size)
    if type_.kind == "boolean":
        return _boolean
    if type_.kind in _WIDTHS:
        return _width(_WIDTHS[type_.kind])
    logical = logical_of(type_)
    if type_.kind in ("int", "long"):
        return _whole(31 if type_.kind == "int" else 63, _DAYS.get(logical or ""))
    if type_.kind == "string":
        return _text
    return _decimal(type_) if logical == "decimal" else lambda data, position, end, _: span(data, position, end)[1]


def _record(type_: RecordType, known: dict[int, list[Check]]) -> Check:
    recursive = id(type_) in known
    cell = known.setdefault(id(type_), [])
    if recursive:
        # Used recursively or again: its check is looked up when it runs.
        return lambda data, position, end, budget: cell[0](data, position, end, budget)  # noqa: PLW0108 - not there yet
    fields = [(field.name, _compiled(field.type, known)) for field in type_.fields]

    def check(data: bytes, position: int, end: int, budget: Budget) -> int:
        budget.enter()
        name = ""
        try:
            for name, field in fields:  # noqa: B007 - told when it fails
                position = field(data, position, end, budget)
        except Malformed as error:
            error.within(name)
            raise
        budget.depth -= 1
        return position

    cell.append(check)
    return check


def _union(branches: list[Check]) -> Check:
    def check(data: bytes, position: int, end: int, budget: Budget) -> int:
        branch, position = number(data, position, end)
        if not 0 <= branch < len(branches):
            raise Malformed(f"branch {branch} of a union of {len(branches)}")
        return branches[branch](data, position, end, budget)

    return check


def _blocks(checks: Sequence[Check], paths: Sequence[str], *, sizeless: bool) -> Check:
    def check(data: bytes, position: int, end: int, budget: Budget) -> int:
        budget.enter()
        while True:
            count, position = block(data, position, end, budget, sizeless=sizeless)
            if not count:
                budget.depth -= 1
                return position
            for _ in range(count):
                path = ""
                try:
                    for path, item in zip(paths, checks, strict=True):  # noqa: B007 - told when it fails
                        position = item(data, position, end, budget)
                except Malformed as error:
                    error.within(path)
                    raise

    return check


def _enum(type_: EnumType) -> Check:
    count = len(type_.symbols)

    def check(data: bytes, position: int, end: int, _: Budget) -> int:
        symbol, position = number(data, position, end)
        if not 0 <= symbol < count:
            raise Malformed(f"symbol {symbol} of {count} in {type_.full_name}")
        return position

    return check


def _width(width: int) -> Check:
    def check(_: bytes, position: int, end: int, __: Budget) -> int:
        if position + width > end:
            raise Malformed(f"the record ends within the {width} bytes of the value")
        return position + width

    return check


def _boolean(data: bytes, position: int, end: int, _: Budget) -> int:
    if position >= end:
        raise Malformed("the record ends within the 1 bytes of the value")
    if data[position] > 1:
        raise Malformed(f"a boolean of {data[position]}")
    return position + 1


def _whole(bits: int, day: int | None) -> Check:
    limit = 1 << bits

    def check(data: bytes, position: int, end: int, _: Budget) -> int:
        value, position = number(data, position, end)
        if not -limit <= value < limit:
            raise Malformed(f"{value} is no int")
        if day is not None and not 0 <= value < day:
            raise Malformed(f"{value} is no time of day")
        return position

    return check


def _text(data: bytes, position: int, end: int, _: Budget) -> int:
    start, position = span(data, position, end)
    try:
        str(data[start:position], "utf-8")
    except UnicodeDecodeError as error:
        raise Malformed(f"not UTF-8: {error}") from error
    return position


def _decimal(type_: AvroType) -> Check:
    def check(data: bytes, position: int, end: int, _: Budget) -> int:
        start, position = span(data, position, end)
        _check_digits(type_, data[start:position])
        return position

    return check


def _fixed_decimal(type_: AvroType, size: int) -> Check:
    width = _width(size)

    def check(data: bytes, position: int, end: int, budget: Budget) -> int:
        end = width(data, position, end, budget)
        _check_digits(type_, data[position:end])
        return end

    return check


def _check_digits(type_: AvroType, data: bytes) -> None:
    precision = (decimal_of(type_) or (0, 0))[0]
    if not fits_digits(int.from_bytes(data, "big", signed=True), precision):
        raise Malformed(f"a decimal of {len(data)} bytes, more than {precision} digits")


def find_items(
    types: Sequence[AvroType], data: bytes, position: int, left: int, budget: Budget
) -> tuple[list[int], int]:
    """The starts of the remaining items of a list, with ``left`` in the current block, and the end of the list.

    ``data`` is the record up to its end; an item is a value of each of ``types``.
    """
    checks, end = [check_of(type_) for type_ in types], len(data)
    paths = _ENTRY if len(types) > 1 else _ITEM
    sizeless = not any(smallest(type_) for type_ in types)
    starts: list[int] = []
    while True:
        for _ in range(left):
            starts.append(position)
            path = ""
            try:
                for path, check in zip(paths, checks, strict=True):  # noqa: B007 - told when it fails
                    position = check(data, position, end, budget)
            except Malformed as error:
                error.within(path)
                raise
        left, position = block(data, position, end, budget, sizeless=sizeless)
        if not left:
            return starts, position
