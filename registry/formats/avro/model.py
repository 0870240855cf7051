"""Avro schemas as values, with names resolved.

A named type is a single object however often it is used. So recursive schemas are cycles; compare with ``is``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

__all__ = [
    "MISSING",
    "PRIMITIVES",
    "ArrayType",
    "AvroType",
    "EnumType",
    "Field",
    "FixedType",
    "MapType",
    "NamedType",
    "PrimitiveType",
    "RecordType",
    "UnionType",
    "named_types",
]

PRIMITIVES: Final = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})


class _Missing:
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
"""The default of a field without one (``None`` is the default ``null``)."""


@dataclass(eq=False)
class AvroType:
    """Any type. ``kind`` is Avro's name for it; ``props`` are attributes that the specification does not define."""

    kind: str
    props: dict[str, Any] = field(default_factory=dict, kw_only=True)

    @property
    def logical_type(self) -> str | None:
        """The ``logicalType`` as written, valid for this type or not."""
        value = self.props.get("logicalType")
        return value if isinstance(value, str) else None


@dataclass(eq=False)
class PrimitiveType(AvroType):
    pass


@dataclass(eq=False)
class ArrayType(AvroType):
    items: AvroType

    @staticmethod
    def of(items: AvroType, props: dict[str, Any]) -> ArrayType:
        return ArrayType("array", items, props=props)


@dataclass(eq=False)
class MapType(AvroType):
    values: AvroType

    @staticmethod
    def of(values: AvroType, props: dict[str, Any]) -> MapType:
        return MapType("map", values, props=props)


@dataclass(eq=False)
class UnionType(AvroType):
    branches: list[AvroType]


@dataclass(eq=False)
class NamedType(AvroType):
    """A record, enum or fixed. ``aliases`` are full names."""

    name: str
    namespace: str | None
    doc: str | None = field(default=None, kw_only=True)
    aliases: tuple[str, ...] = field(default=(), kw_only=True)

    @property
    def full_name(self) -> str:
        return f"{self.namespace}.{self.name}" if self.namespace else self.name


@dataclass(eq=False)
class FixedType(NamedType):
    size: int


@dataclass(eq=False)
class EnumType(NamedType):
    symbols: list[str]
    default: str | None = None


@dataclass(eq=False)
class Field:
    name: str
    type: AvroType
    doc: str | None = None
    default: Any = MISSING
    order: str = "ascending"
    aliases: tuple[str, ...] = ()
    props: dict[str, Any] = field(default_factory=dict)

    @property
    def has_default(self) -> bool:
        return self.default is not MISSING


@dataclass(eq=False)
class RecordType(NamedType):
    fields: list[Field] = field(default_factory=list)
    is_error: bool = False

    def field(self, name: str) -> Field | None:
        return next((field_ for field_ in self.fields if field_.name == name), None)


def named_types(root: AvroType) -> Iterator[NamedType]:
    """Every named type within ``root``, outermost first, each once."""
    seen: set[int] = set()
    pending = [root]
    while pending:
        type_ = pending.pop()
        if id(type_) in seen:
            continue
        seen.add(id(type_))
        if isinstance(type_, NamedType):
            yield type_
        match type_:
            case ArrayType():
                pending.append(type_.items)
            case MapType():
                pending.append(type_.values)
            case UnionType():
                pending.extend(reversed(type_.branches))
            case RecordType():
                pending.extend(reversed([field_.type for field_ in type_.fields]))
