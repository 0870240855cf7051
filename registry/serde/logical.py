"""Logical types for the codecs: valid ones by name; for all others the underlying type applies (as in Java)."""

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
    """The effective logical type; None for an unknown or misplaced one."""
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
    """Whether a number has at most this many decimal digits."""
    bits = unscaled.bit_length()
    # A digit takes between three and four bits: a power of ten is computed only if it is not longer than the number.
    return bits <= 3 * precision or (bits <= 4 * precision and abs(unscaled) < 10**precision)


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def null_branch(union: UnionType) -> int | None:
    return next((index for index, branch in enumerate(union.branches) if branch.kind == "null"), None)


def value_branches(union: UnionType) -> list[tuple[int, AvroType]]:
    """The branches that are not null, with their index in the union."""
    return [(index, branch) for index, branch in enumerate(union.branches) if branch.kind != "null"]


def branch_names(union: UnionType) -> list[str]:
    """The field names of the struct that represents a union of several types; they are Confluent's.

    It is the type for unnamed types and the simple name for named ones, or the full name if two share a simple name.
    """
    branches = [branch for _, branch in value_branches(union)]
    simple = [getattr(branch, "name", branch.kind) for branch in branches]
    return [
        getattr(branch, "full_name", branch.kind) if simple.count(name) > 1 else name
        for branch, name in zip(branches, simple, strict=True)
    ]
