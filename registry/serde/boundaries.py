"""Where each record of a block ends: a program for the schema that only steps over values, made once.

It runs ten times as fast as the checks, and checks nothing but the end of the data. Whoever decodes the records finds what is
wrong in them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from registry.formats.avro.model import ArrayType, AvroType, EnumType, FixedType, MapType, RecordType, UnionType
from registry.serde.checking import smallest

__all__ = ["record_ends"]

_MOST_LINES: Final = 3_000
_DEEPEST: Final = 12
_WIDTHS: Final = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_Ends = Callable[[bytes, int], list[int]]


def record_ends(type_: AvroType, data: bytes, rows: int) -> list[int] | None:
    """The start of the first of ``rows`` values, and the end of each; None where the schema or the data needs the checks."""
    program = _program(type_)
    if program is None:
        return None
    try:
        ends = program(data, rows)
    except (IndexError, ValueError):
        return None
    return ends if ends[-1] == len(data) else None


@lru_cache(maxsize=1000)
def _program(type_: AvroType) -> _Ends | None:
    source = _Source()
    try:
        source.value(type_, 2, ())
    except _Unsuited:
        return None
    head = ["def ends(d, rows):", " p, made, size = 0, [0], len(d)", " add = made.append", " for _ in range(rows):"]
    tail = ["  if p > size: raise ValueError", "  add(p)", " return made"]
    names: dict[str, _Ends] = {}
    # No text of the schema gets into the program: its lines are those below, and numbers.
    exec("\n".join([*head, *source.lines, *tail]), names)  # noqa: S102
    return names["ends"]


class _Unsuited(Exception):
    """A schema that contains itself, or is too large or deep."""


class _Source:
    """Lines that move the position ``p`` in the bytes ``d``; the first argument of each method is the lines' indent."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def _add(self, indent: int, *lines: str) -> None:
        self.lines += [" " * indent + line for line in lines]
        if len(self.lines) > _MOST_LINES or indent > 4 * _DEEPEST:
            raise _Unsuited

    def _number(self, indent: int) -> None:
        """A number into ``n``, still in zigzag form."""
        self._add(indent, "n = d[p]; p += 1")
        self._add(
            indent, "if n > 127:", " n &= 127; s = 7", " while d[p] > 127:", "  n |= (d[p] & 127) << s; s += 7; p += 1"
        )
        self._add(indent, "  if s > 63: raise ValueError")
        self._add(indent, " n |= d[p] << s; p += 1")

    def value(self, type_: AvroType, indent: int, around: tuple[int, ...]) -> None:
        match type_:
            case RecordType():
                if id(type_) in around:
                    raise _Unsuited
                for field in type_.fields:
                    self.value(field.type, indent, (*around, id(type_)))
                self._add(indent, "pass")
            case UnionType():
                self._union(type_, indent, around)
            case ArrayType():
                self._blocks([type_.items], indent, around)
            case MapType():
                self._blocks([None, type_.values], indent, around)
            case FixedType():
                self._add(indent, f"p += {type_.size:d}")
            case EnumType():
                self._skipped_number(indent)
            case _ if type_.kind in _WIDTHS:
                self._add(indent, f"p += {_WIDTHS[type_.kind]:d}")
            case _ if type_.kind in ("int", "long"):
                self._skipped_number(indent)
            case _:
                self._sized(indent)

    def _skipped_number(self, indent: int) -> None:
        self._add(indent, "while d[p] > 127: p += 1", "p += 1")

    def _sized(self, indent: int) -> None:
        self._number(indent)
        self._add(indent, "if n & 1: raise ValueError", "p += n >> 1")

    def _union(self, type_: UnionType, indent: int, around: tuple[int, ...]) -> None:
        """Branches are numbers below 64, or the schema is unsuited."""
        if not 0 < len(type_.branches) < 64:
            raise _Unsuited
        self._add(indent, "b = d[p]; p += 1")
        for number, branch in enumerate(type_.branches):
            self._add(indent, f"{'if' if number == 0 else 'elif'} b == {2 * number:d}:")
            self.value(branch, indent + 1, around)
        self._add(indent, "else: raise ValueError")

    def _blocks(self, types: list[AvroType | None], indent: int, around: tuple[int, ...]) -> None:
        """Blocks of items; None stands for the text of a map's key."""
        if not any(each is None or smallest(each) for each in types):
            raise _Unsuited  # nothing would limit their number
        self._add(indent, "while True:")
        self._number(indent + 1)
        count = f"c{indent:d}"
        self._add(indent + 1, "if not n: break", f"{count} = n >> 1")
        self._add(indent + 1, "if n & 1:", f" {count} += 1", " while d[p] > 127: p += 1", " p += 1")
        self._add(indent + 1, f"if {count} > size - p: raise ValueError", f"for _{indent:d} in range({count}):")
        for each in types:
            if each is None:
                self._sized(indent + 2)
            else:
                self.value(each, indent + 2, around)
