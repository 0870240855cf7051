"""Names that are used before their definition, and types that are defined twice."""

from __future__ import annotations

from dataclasses import dataclass

from registry.formats.avro.model import (
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    MapType,
    NamedType,
    RecordType,
    UnionType,
)

__all__ = ["Unread", "closed", "equal"]


@dataclass(eq=False)
class Unread(NamedType):
    """A name that may be defined later."""

    definition: NamedType | None = None


def closed(root: AvroType) -> AvroType:
    """The schema with every name that was used before its definition replaced by the type."""
    made = _meant(root)
    pending, seen = [made], {id(made)}
    while pending:
        type_ = pending.pop()
        match type_:
            case ArrayType():
                type_.items = _meant(type_.items)
                parts = [type_.items]
            case MapType():
                type_.values = _meant(type_.values)
                parts = [type_.values]
            case UnionType():
                type_.branches = [_meant(branch) for branch in type_.branches]
                parts = type_.branches
            case RecordType():
                for field in type_.fields:
                    field.type = _meant(field.type)
                parts = [field.type for field in type_.fields]
            case _:
                parts = []
        for part in parts:
            if id(part) not in seen:
                seen.add(id(part))
                pending.append(part)
    return made


def _meant(type_: AvroType) -> AvroType:
    return type_.definition if isinstance(type_, Unread) and type_.definition is not None else type_


def equal(left: AvroType, other: AvroType) -> bool:
    """Whether Java considers two types equal and permits a second definition: docs and aliases are ignored."""
    if left is other:
        return True
    if type(left) is not type(other) or left.kind != other.kind or left.props != other.props:
        return False
    if isinstance(left, NamedType) and isinstance(other, NamedType) and left.full_name != other.full_name:
        return False
    match left, other:
        case ArrayType(), ArrayType():
            return equal(left.items, other.items)
        case MapType(), MapType():
            return equal(left.values, other.values)
        case UnionType(), UnionType():
            pairs = [*zip(left.branches, other.branches, strict=False)]
            return len(left.branches) == len(other.branches) and all(equal(*pair) for pair in pairs)
        case FixedType(), FixedType():
            return left.size == other.size
        case EnumType(), EnumType():
            return left.symbols == other.symbols
        case RecordType(), RecordType():
            fields = [*zip(left.fields, other.fields, strict=False)]
            return len(left.fields) == len(other.fields) and all(_equal_fields(*pair) for pair in fields)
    return not isinstance(left, Unread)


def _equal_fields(left: Field, other: Field) -> bool:
    said = [(field.name, field.order, field.props, repr(field.default)) for field in (left, other)]
    return said[0] == said[1] and equal(left.type, other.type)
