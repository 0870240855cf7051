"""Writes Avro types as schema text with Java Avro's member order and number format, so that equal schemas have equal
text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

from registry.formats.avro.model import (
    MISSING,
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
from registry.formats.json_text import write_json

__all__ = ["normalized", "write_text"]


def write_text(root: AvroType, known: Iterable[str] = ()) -> str:
    """The text that Java's ``Schema.toString`` produces. Types in ``known`` are written as names, not definitions."""
    return write_json(_value(root, None, set(known)))


def _value(type_: AvroType, namespace: str | None, known: set[str]) -> Any:
    match type_:
        case UnionType():
            return [_value(branch, namespace, known) for branch in type_.branches]
        case ArrayType():
            return {"type": "array", "items": _value(type_.items, namespace, known), **type_.props}
        case MapType():
            return {"type": "map", "values": _value(type_.values, namespace, known), **type_.props}
        case NamedType():
            return _named_value(type_, namespace, known)
    return {"type": type_.kind, **type_.props} if type_.props else type_.kind


def _named_value(type_: NamedType, namespace: str | None, known: set[str]) -> Any:
    if type_.full_name in known:
        return _qualified(type_.full_name, type_.namespace, type_.name, namespace)
    known.add(type_.full_name)
    value: dict[str, Any] = {"type": type_.kind, "name": type_.name}
    if type_.namespace != namespace:
        value["namespace"] = type_.namespace or ""
    if type_.doc is not None:
        value["doc"] = type_.doc
    match type_:
        case RecordType():
            value["type"] = "error" if type_.is_error else "record"
            value["fields"] = [_field_value(field, type_.namespace, known) for field in type_.fields]
        case EnumType():
            value["symbols"] = type_.symbols
            if type_.default is not None:
                value["default"] = type_.default
        case FixedType():
            value["size"] = type_.size
    value.update(type_.props)
    if type_.aliases:
        value["aliases"] = [_alias(alias, type_.namespace) for alias in type_.aliases]
    return value


def _field_value(field: Field, namespace: str | None, known: set[str]) -> dict[str, Any]:
    value: dict[str, Any] = {"name": field.name, "type": _value(field.type, namespace, known)}
    if field.doc is not None:
        value["doc"] = field.doc
    if field.has_default:
        value["default"] = field.default
    if field.order != "ascending":
        value["order"] = field.order
    if field.aliases:
        value["aliases"] = list(field.aliases)
    value.update(field.props)
    return value


def _qualified(full_name: str, own_namespace: str | None, name: str, namespace: str | None) -> str:
    return name if own_namespace == namespace else full_name


def _alias(full_name: str, namespace: str | None) -> str:
    own_namespace, _, name = full_name.rpartition(".")
    return _qualified(full_name, own_namespace or None, name, namespace)


def normalized(root: AvroType) -> AvroType:
    """The same schema in normal form: attributes and aliases sorted, empty docs removed."""
    return _Normalizer().visit(root)


class _Normalizer:
    def __init__(self) -> None:
        self._done: dict[int, AvroType] = {}

    def visit(self, type_: AvroType) -> AvroType:
        if (done := self._done.get(id(type_))) is not None:
            return done
        props = _sorted_props(type_)
        match type_:
            case UnionType():
                return UnionType("union", [self.visit(branch) for branch in type_.branches])
            case ArrayType():
                return ArrayType.of(self.visit(type_.items), props)
            case MapType():
                return MapType.of(self.visit(type_.values), props)
            case NamedType():
                named = dataclasses.replace(
                    type_, props=props, doc=type_.doc or None, aliases=tuple(sorted(type_.aliases))
                )
                self._done[id(type_)] = named
                if isinstance(named, RecordType):
                    named.is_error = False
                    named.fields = [self._field(field) for field in named.fields]
                return named
        return dataclasses.replace(type_, props=props)

    def _field(self, field: Field) -> Field:
        return dataclasses.replace(
            field,
            type=self.visit(field.type),
            default=_default(field.type, _sorted_value(field.default)) if field.has_default else MISSING,
            aliases=tuple(sorted(field.aliases)),
            props={name: _sorted_value(field.props[name]) for name in sorted(field.props)},
        )


def _default(type_: AvroType, value: Any) -> Any:
    """A number in the form of its default's type: Java writes 3.0 for a double."""
    match type_:
        case ArrayType() if isinstance(value, list):
            return [_default(type_.items, item) for item in value]
        case MapType() if isinstance(value, dict):
            return {name: _default(type_.values, item) for name, item in value.items()}
    if type_.kind in ("float", "double") and isinstance(value, int) and abs(value) < 1 << 1000:
        return float(value)
    return value


def _sorted_props(type_: AvroType) -> dict[str, Any]:
    """Attributes by name; the logical type and a decimal's precision and scale come first."""
    first = ["logicalType"] if type_.logical_type is not None else []
    if type_.logical_type == "decimal":
        first += ["precision"] if "precision" in type_.props else []
        first += ["scale"] if type_.props.get("scale") else []
    ordered = [*first, *(name for name in sorted(type_.props) if name not in first)]
    return {name: _sorted_value(type_.props[name]) for name in ordered}


def _sorted_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted_value(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_sorted_value(item) for item in value]
    return value
