"""Logical types as the codecs see them: valid ones by name, everything else as the type beneath (as Java does)."""

from __future__ import annotations

import math
from typing import TypeGuard

from registry.formats.avro.model import AvroType, FixedType, UnionType

__all__ = ["branch_names", "decimal_of", "fits_digits", "logical_of", "null_branch", "value_branches"]

_BASES = {
    "date": ("int",),
    "time-millis": ("int",),
    "time-micros": ("long",),
    "timestamp-millis": ("long",),
    "timestamp-micros": ("long",),
    "timestamp-nanos": ("long",),
    "local-timestamp-millis": ("long",),
    "local-timestamp-micros": ("long",),
    "local-timestamp-nanos": ("long",),
    "uuid": ("string",),
    "decimal": ("bytes", "fixed"),
}


def logical_of(type_: AvroType) -> str | None:
    """The logical type that is in force, None for an unknown or misplaced one."""
    name = type_.logical_type
    if name is None or type_.kind not in _BASES.get(name, ()):
        return None
    return None if name == "decimal" and decimal_of(type_) is None else name


def decimal_of(type_: AvroType) -> tuple[int, int] | None:
    """Precision and scale of a valid decimal."""
    precision, scale = type_.props.get("precision"), type_.props.get("scale", 0)
    if not _is_int(precision) or not _is_int(scale) or precision < 1 or not 0 <= scale <= precision:
        return None
    if isinstance(type_, FixedType) and (type_.size == 0 or precision > _digits(type_.size)):
        return None
    return precision, scale


def _digits(size: int) -> int:
    """Decimal digits that any number of ``size`` bytes can hold."""
    return math.floor(math.log10(2) * (8 * size - 1))


def fits_digits(unscaled: int, precision: int) -> bool:
    """Whether a number has at most so many decimal digits."""
    bits = unscaled.bit_length()
    # A digit takes between three bits and four: a power of ten is raised only where it is no longer than the number.
    return bits <= 3 * precision or (bits <= 4 * precision and abs(unscaled) < 10**precision)


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def null_branch(union: UnionType) -> int | None:
    return next((index for index, branch in enumerate(union.branches) if branch.kind == "null"), None)


def value_branches(union: UnionType) -> list[tuple[int, AvroType]]:
    """The branches that are not null, with their index in the union."""
    return [(index, branch) for index, branch in enumerate(union.branches) if branch.kind != "null"]


def branch_names(union: UnionType) -> list[str]:
    """What the fields of the struct that stands for a union of several values are called: Confluent's names.

    The type for unnamed ones, the simple name for named ones, or the full name where two share a simple one.
    """
    branches = [branch for _, branch in value_branches(union)]
    simple = [getattr(branch, "name", branch.kind) for branch in branches]
    return [
        getattr(branch, "full_name", branch.kind) if simple.count(name) > 1 else name
        for branch, name in zip(branches, simple, strict=True)
    ]
