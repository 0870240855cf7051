"""Column types from the catalog, and the parameters that ``column.propagate.source.type`` adds for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

__all__ = ["ColumnType", "character_length", "precision_and_scale", "source_parameters"]


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type from the catalog; for a domain, the type that it restricts. ``element`` is an array's element type."""

    name: str
    modifier: int = -1
    labels: tuple[str, ...] = ()
    element: str | None = None
    declared: str = ""
    """The declared type's name: for a domain, the domain's own."""


def precision_and_scale(modifier: int) -> tuple[int, int] | None:
    """From a numeric's type modifier; None where it has none."""
    if modifier < 4:
        return None
    packed = modifier - 4
    return packed >> 16, ((packed & 0x7FF) ^ 1024) - 1024


def character_length(column: ColumnType) -> int | None:
    """The most characters that a column holds; None where its type has no limit."""
    length, _ = _length_and_scale(column.name, column.modifier)
    return length if column.name in ("varchar", "bpchar") and column.modifier > 4 else None


def source_parameters(name: str, column: ColumnType) -> dict[str, str]:
    """The schema parameters that ``column.propagate.source.type`` adds."""
    length, scale = _length_and_scale(column.element or column.name, column.modifier)
    declared = (column.declared or column.name).upper()
    made = {"__debezium.source.column.type": declared, "__debezium.source.column.length": str(length)}
    if scale is not None:
        made["__debezium.source.column.scale"] = str(scale)
    return made | {"__debezium.source.column.name": name}


_LENGTHS: Final = {
    "int2": (5, 0), "int4": (10, 0), "int8": (19, 0), "oid": (10, 0), "float4": (8, 8), "float8": (17, 17), "bool": (1, 0),
    "char": (1, 0), "date": (13, 0), "interval": (49, 6),
}  # fmt: skip
_CLOCKS: Final = {"time": 8, "timetz": 14, "timestamp": 22, "timestamptz": 28}


def _length_and_scale(name: str, modifier: int) -> tuple[int, int | None]:
    if name in _LENGTHS:
        return _LENGTHS[name]
    if name in _CLOCKS:
        digits = modifier if modifier >= 0 else 6
        return _CLOCKS[name] + (digits + 1 if digits else 0), digits
    if name == "numeric":
        return precision_and_scale(modifier) or (0, None)
    if name in ("varchar", "bpchar") and modifier > 4:
        return modifier - 4, 0
    if name in ("bit", "varbit") and modifier > 0:
        return modifier, 0
    return 2147483647, 0
