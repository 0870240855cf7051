"""Parses Avro schema text, by the rules and mostly with the messages of Java's parser, avro 1.12."""

from __future__ import annotations

import json
import re
from typing import Any, Final, NoReturn

from registry.formats.avro.model import (
    MISSING,
    PRIMITIVES,
    ArrayType,
    AvroType,
    EnumType,
    Field,
    FixedType,
    MapType,
    NamedType,
    PrimitiveType,
    RecordType,
    UnionType,
)
from registry.formats.avro.unread import Unread, closed, equal

__all__ = ["MAX_DEPTH", "SchemaParseError", "parse_text", "parse_value"]

MAX_DEPTH: Final = 128
"""The deepest nesting of types. Deeper ones are refused, because every later traversal is recursive."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SCHEMA_RESERVED: Final = frozenset(
    {"doc", "fields", "items", "name", "namespace", "size", "symbols", "values", "type", "aliases"}
)
_FIELD_RESERVED: Final = frozenset({"default", "doc", "name", "order", "type", "aliases"})
_ORDERS: Final = ("ascending", "descending", "ignore")


class SchemaParseError(ValueError):
    """The text is not an Avro schema; the message says where and why."""


def parse_text(text: str, names: dict[str, NamedType] | None = None, *, strict: bool = True) -> AvroType:
    """Parse JSON text. ``names`` has the types known before; those defined here are added to it.

    ``strict`` is for new schemas: names must be Avro names and defaults must fit their types. Stored schemas are read
    without it, because data was written with them.
    """
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise SchemaParseError("The schema is nested too deep") from None
    except ValueError as error:
        # Java accepts a bare primitive name without quotes too, and clients send it.
        if text.strip() in PRIMITIVES:
            return PrimitiveType(text.strip())
        raise SchemaParseError(f"The schema is not valid JSON: {error}") from error
    return parse_value(value, names, strict=strict)


def parse_value(value: Any, names: dict[str, NamedType] | None = None, *, strict: bool = True) -> AvroType:
    """Parse a schema from JSON values; see ``parse_text``."""
    return _Parser({} if names is None else names, strict).root(value)


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 200 else f"{text[:200]}..."


class _Parser:
    """Like Java's parser, it knows a type once it has read all of it. An unknown name may be defined later."""

    def __init__(self, names: dict[str, NamedType], strict: bool) -> None:
        self._names = names
        self._strict = strict
        self._fitting: dict[int, bool] = {}
        self._defaults: list[Field] = []
        self._open: list[Unread] = []

    def root(self, value: Any) -> AvroType:
        made = self.parse(value, None, 0)
        for unread in self._open:
            unread.definition = self._names.get(unread.full_name)
            if unread.definition is None:
                raise SchemaParseError(f'Undefined name: "{unread.full_name}"')
        if self._strict:
            for field in self._defaults:
                if not self._default_fits(field):
                    raise SchemaParseError(
                        f"Invalid default for field {field.name}: {_shown(field.default)} not a {_described(field.type)}"
                    )
        return closed(made) if self._open else made

    def parse(self, value: Any, namespace: str | None, depth: int) -> AvroType:
        if depth > MAX_DEPTH:
            raise SchemaParseError(f"The schema is nested too deep: more than {MAX_DEPTH} types")
        if isinstance(value, str):
            return self._find(value, namespace)
        if isinstance(value, list):
            return self._union(value, namespace, depth)
        if not isinstance(value, dict):
            raise SchemaParseError(f"Schema not yet supported: {_shown(value)}")
        kind = value.get("type")
        if not isinstance(kind, str):
            raise SchemaParseError(f"No type: {_shown(value)}")
        if kind in PRIMITIVES:
            return PrimitiveType(kind, props=_props(value, _SCHEMA_RESERVED))
        match kind:
            case "record" | "error":
                return self._record(value, namespace, depth, is_error=kind == "error")
            case "enum":
                return self._enum(value, namespace)
            case "fixed":
                return self._fixed(value, namespace)
            case "array" | "map":
                member = "items" if kind == "array" else "values"
                if member not in value:
                    raise SchemaParseError(f"{kind.capitalize()} has no {member} type: {_shown(value)}")
                inner = self.parse(value[member], namespace, depth + 1)
                props = _props(value, _SCHEMA_RESERVED)
                return ArrayType.of(inner, props) if kind == "array" else MapType.of(inner, props)
        raise SchemaParseError(
            f'Type {_shown(kind)} is not supported: a schema "type" must be a primitive type or one of "enum", "fixed", '
            '"record", "error", "array" or "map".'
        )

    def _find(self, name: str, namespace: str | None) -> AvroType:
        if name in PRIMITIVES:
            return PrimitiveType(name)
        full_name = f"{namespace}.{name}" if namespace and "." not in name else name
        type_ = self._names.get(full_name) or self._names.get(name)
        if type_ is not None:
            return type_
        space, _, last = full_name.rpartition(".")
        unread = Unread("record", last, space or None)
        self._open.append(unread)
        return unread

    def _union(self, value: list[Any], namespace: str | None, depth: int) -> UnionType:
        branches: list[AvroType] = []
        seen: set[str] = set()
        for item in value:
            branch = self.parse(item, namespace, depth + 1)
            if isinstance(branch, UnionType):
                raise SchemaParseError(f"Nested union: {_shown(value)}")
            name = branch.full_name if isinstance(branch, NamedType) else branch.kind
            if name in seen:
                raise SchemaParseError(f"Duplicate in union: {name}")
            seen.add(name)
            branches.append(branch)
        return UnionType("union", branches)

    def _record(self, value: dict[str, Any], namespace: str | None, depth: int, *, is_error: bool) -> RecordType:
        name, space = self._name(value, namespace)
        record = RecordType(
            "record", name, space, is_error=is_error, doc=_doc(value), aliases=_type_aliases(value, space)
        )
        members = value.get("fields")
        if not isinstance(members, list):
            raise SchemaParseError(f"Record has no fields: {_shown(value)}")
        seen: set[str] = set()
        for member in members:
            field = self._field(member, space, depth)
            if field.name in seen:
                raise SchemaParseError(f"Duplicate field {field.name} in record {record.full_name}")
            seen.add(field.name)
            record.fields.append(field)
        record.props = _props(value, _SCHEMA_RESERVED)
        self._defaults += [field for field in record.fields if field.has_default]
        self._define(record)
        return record

    def _field(self, value: Any, namespace: str | None, depth: int) -> Field:
        if not isinstance(value, dict):
            raise SchemaParseError(f"A field must be an object: {_shown(value)}")
        name = value.get("name")
        if not isinstance(name, str):
            raise SchemaParseError(f"No field name: {_shown(value)}")
        self._check_name(name)
        if "type" not in value:
            raise SchemaParseError(f"No field type: {_shown(value)}")
        type_ = self.parse(value["type"], namespace, depth + 1)
        order = value.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            raise SchemaParseError(f"Invalid order of field {name}: {_shown(order)} is none of {', '.join(_ORDERS)}")
        default = value.get("default", MISSING)
        if isinstance(default, str) and type_.kind in ("float", "double"):
            try:
                default = float(default)
            except ValueError:
                raise SchemaParseError(f"Invalid default for field {name}: {_shown(default)} is no number") from None
        aliases = _aliases(value)
        return Field(name, type_, _doc(value), default, order.lower(), aliases, _props(value, _FIELD_RESERVED))

    def _enum(self, value: dict[str, Any], namespace: str | None) -> EnumType:
        name, space = self._name(value, namespace)
        symbols = value.get("symbols")
        if not isinstance(symbols, list) or not all(isinstance(symbol, str) for symbol in symbols):
            raise SchemaParseError(f"Enum has no symbols: {_shown(value)}")
        seen: set[str] = set()
        for symbol in symbols:
            self._check_name(symbol)
            if symbol in seen:
                raise SchemaParseError(f"Duplicate enum symbol: {symbol}")
            seen.add(symbol)
        default = value.get("default")
        if default is not None and default not in seen:
            raise SchemaParseError(f"The Enum Default: {default} is not in the enum symbol set: {', '.join(symbols)}")
        props = _props(value, _SCHEMA_RESERVED | {"default"})
        enum = EnumType(
            "enum", name, space, symbols, default, doc=_doc(value), aliases=_type_aliases(value, space), props=props
        )
        self._define(enum)
        return enum

    def _fixed(self, value: dict[str, Any], namespace: str | None) -> FixedType:
        name, space = self._name(value, namespace)
        size = value.get("size")
        if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size < 1 << 31:
            raise SchemaParseError(f"Invalid or no size: {_shown(value)}")
        props = _props(value, _SCHEMA_RESERVED)
        fixed = FixedType("fixed", name, space, size, doc=_doc(value), aliases=_type_aliases(value, space), props=props)
        self._define(fixed)
        return fixed

    def _fits(self, type_: AvroType, value: Any) -> bool:
        """Whether ``value`` is a valid default for ``type_`` (Java's ``isValidDefault``: a union accepts any branch's)."""
        match type_:
            case Unread():
                # When Java read the name, it assumed a record.
                return isinstance(value, dict) and type_.definition is not None and self._fits(type_.definition, value)
            case UnionType():
                return any(self._fits(branch, value) for branch in type_.branches)
            case ArrayType():
                return isinstance(value, list) and all(self._fits(type_.items, item) for item in value)
            case MapType():
                return isinstance(value, dict) and all(self._fits(type_.values, item) for item in value.values())
            case RecordType():
                return isinstance(value, dict) and all(
                    self._fits(field.type, value[field.name]) if field.name in value else self._default_fits(field)
                    for field in type_.fields
                )
        return _fits_scalar(type_.kind, value)

    def _default_fits(self, field: Field) -> bool:
        """Whether a field that a default leaves out has a valid default itself. Checked once, and not recursively."""
        known = self._fitting.get(id(field))
        if known is None:
            self._fitting[id(field)] = False
            known = self._fitting[id(field)] = field.has_default and self._fits(field.type, field.default)
        return known

    def _name(self, value: dict[str, Any], namespace: str | None) -> tuple[str, str | None]:
        """Name and namespace. A dot in the name overrides ``namespace``; an empty namespace means none."""
        name = value.get("name")
        if not isinstance(name, str):
            raise SchemaParseError(f"No name in schema: {_shown(value)}")
        own_namespace = value.get("namespace")
        space = own_namespace if isinstance(own_namespace, str) else namespace
        if "." in name:
            space, _, name = name.rpartition(".")
        if self._strict and space:
            for part in space.split("."):
                self._check_name(part)
        self._check_name(name)
        return name, space or None

    def _check_name(self, name: str) -> None:
        if not self._strict:
            return
        if not name:
            raise SchemaParseError("Empty name")
        if _NAME.fullmatch(name) is None:
            problem = "Illegal initial character" if _NAME.match(name) is None else "Illegal character in"
            raise SchemaParseError(f"{problem}: {name}")

    def _define(self, named: NamedType) -> None:
        if named.full_name in PRIMITIVES:
            raise SchemaParseError(f"Schemas may not be named after primitives: {named.full_name}")
        known = self._names.setdefault(named.full_name, named)
        if known is not named and not equal(known, named):
            raise SchemaParseError(f"Can't redefine: {named.full_name}")


def _props(value: dict[str, Any], reserved: frozenset[str]) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name not in reserved}


def _doc(value: dict[str, Any]) -> str | None:
    doc = value.get("doc")
    return doc if isinstance(doc, str) else None


def _aliases(value: dict[str, Any]) -> tuple[str, ...]:
    aliases = value.get("aliases")
    if aliases is None:
        return ()
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        raise SchemaParseError(f"aliases not an array of strings: {_shown(aliases)}")
    return tuple(dict.fromkeys(aliases))


def _type_aliases(value: dict[str, Any], namespace: str | None) -> tuple[str, ...]:
    """Aliases as full names: an unqualified one is in its type's namespace, one with a leading dot in none."""
    full_names = [
        f"{namespace}.{alias}" if namespace and "." not in alias else alias.removeprefix(".")
        for alias in _aliases(value)
    ]
    return tuple(dict.fromkeys(full_names))


def _described(type_: AvroType) -> str:
    return type_.full_name if isinstance(type_, NamedType) else type_.kind


def _fits_scalar(kind: str, value: Any) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "int" | "long":
            bound = 1 << (31 if kind == "int" else 63)
            return isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound
        case "float" | "double":
            return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, str)
