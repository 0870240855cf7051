"""Normalizes a file as Confluent does: full names, members ordered by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import Any, Final, TypeVar

from registry.formats.protobuf.elements import (
    Enum,
    Extend,
    Extensions,
    Field,
    Group,
    Message,
    OneOf,
    Option,
    OptionKind,
    Primitive,
    ProtoFile,
    Range,
    Reserved,
    Rpc,
    Service,
)
from registry.formats.protobuf.names import SCALARS, Names, map_parts

__all__ = ["UnknownType", "as_map", "normalized"]

Scope = tuple[str, ...]
V = TypeVar("V")
_LAST: Final = (1 << 31) - 1


class UnknownType(ValueError):
    """A field or call names a type that neither the file nor its imports define."""


def normalized(file: ProtoFile, names: Names) -> ProtoFile:
    """Raises UnknownType. The result is only for writing: defaults and JSON names are among the options."""
    return _Normalizer(names).file(file)


class _Normalizer:
    def __init__(self, names: Names) -> None:
        self._names = names

    def file(self, file: ProtoFile) -> ProtoFile:
        return ProtoFile(
            syntax="proto3" if file.syntax == "proto3" else None,
            package=file.package,
            imports=sorted(set(file.imports)),
            public_imports=sorted(set(file.public_imports)),
            options=self._options(file.options, ()),
            types=self._types(file.types, ()),
            extends=self._extends(file.extends, ()),
            services=[self._service(service) for service in file.services],
        )

    def _resolved(self, name: str, scope: Scope) -> str:
        full_name = self._names.resolve(name, scope)
        if full_name is None:
            raise UnknownType(f"Could not resolve type: {name}")
        return f".{full_name}"

    def _types(self, types: Sequence[Message | Enum], scope: Scope) -> list[Message | Enum]:
        # Messages keep their order, because clients send their indexes.
        return [
            self._message(type_, (*scope, type_.name)) if isinstance(type_, Message) else self._enum(type_, scope)
            for type_ in types
            if not (isinstance(type_, Message) and type_.is_map_entry)
        ]

    def _message(self, message: Message, scope: Scope) -> Message:
        oneofs = [
            OneOf(
                oneof.name,
                self._fields(oneof.fields, scope),
                self._groups(oneof.groups, scope),
                self._options(oneof.options, scope),
            )
            for oneof in message.oneofs
            if oneof.fields
        ]
        extensions = [
            Extensions([_single(value)], self._options(item.options, scope))
            for item in message.extensions
            for value in item.values
        ]
        return Message(
            message.name,
            types=self._types(message.types, scope),
            options=self._options(message.options, scope),
            reserved=_in_order(message.reserved),
            fields=self._fields(message.fields, scope),
            oneofs=sorted(oneofs, key=lambda oneof: oneof.fields[0].tag),
            extensions=sorted(extensions, key=lambda item: _start(item.values[0])),
            groups=self._groups(message.groups, scope),
            extends=self._extends(message.extends, scope),
        )

    def _enum(self, enum: Enum, outer: Scope) -> Enum:
        scope = (*outer, enum.name)
        constants = [replace(constant, options=self._options(constant.options, scope)) for constant in enum.constants]
        return Enum(
            enum.name,
            sorted(constants, key=lambda constant: (constant.tag, constant.name)),
            self._options(enum.options, scope),
            _in_order(enum.reserved),
        )

    def _groups(self, groups: Sequence[Group], scope: Scope) -> list[Group]:
        made = [replace(group, fields=self._fields(group.fields, scope)) for group in groups]
        return sorted(made, key=lambda group: group.tag)

    def _extends(self, extends: Sequence[Extend], scope: Scope) -> list[Extend]:
        """One block for each extended message."""
        by_extendee: dict[str, list[Field]] = {}
        for extend in extends:
            name = self._resolved(extend.name, scope)
            if extend.fields:
                by_extendee.setdefault(name, []).extend(extend.fields)
        return [Extend(name, self._fields(fields, scope)) for name, fields in by_extendee.items()]

    def _fields(self, fields: Sequence[Field], scope: Scope) -> list[Field]:
        return sorted((self._field(field, scope) for field in fields), key=lambda field: field.tag)

    def _field(self, field: Field, scope: Scope) -> Field:
        type_, label = field.type, field.label
        if type_ not in SCALARS and map_parts(type_) is None:
            type_ = self._resolved(type_, scope)
            known = self._names.type(type_)
            if known is not None and known.map_type is not None:
                type_ = known.map_type
        if (parts := map_parts(type_)) is not None:
            key, value = parts
            resolved = self._names.resolve(value, scope)
            label = None
            if resolved is not None:
                type_ = f"map<{key}, .{resolved}>"
        options = list(field.options)
        if field.default is not None:
            options.append(Option("default", _kind_of_default(type_), field.default))
        if field.json_name is not None:
            options.append(Option("json_name", "string", field.json_name))
        return Field(label, type_, field.name, field.tag, self._options(options, scope))

    def _service(self, service: Service) -> Service:
        rpcs = [
            Rpc(
                rpc.name,
                self._resolved(rpc.request, ()),
                self._resolved(rpc.response, ()),
                rpc.request_streaming,
                rpc.response_streaming,
                self._options(rpc.options, ()),
            )
            for rpc in service.rpcs
        ]
        return Service(service.name, rpcs, self._options(service.options, ()))

    # -- options

    def _options(self, options: Sequence[Option], scope: Scope) -> list[Option]:
        """Options by name; an option set in several parts is merged."""
        groups: dict[str, list[Option]] = {}
        named = [self._named(option, scope) for option in options]
        for option in sorted(named, key=lambda option: option.name):
            groups.setdefault(option.name, []).append(option)
        collected: list[Option] = []
        for name, group in groups.items():
            field = self._names.extension(name)
            if field is not None and field.label != "repeated":
                first = group[0]
                for other in group[1:]:
                    first = self._merged(field, first, as_map(other), scope)
                group = [first]
            collected += [self._written(option, scope) for option in group]
        return collected

    def _named(self, option: Option, scope: Scope) -> Option:
        if option.parenthesized and (name := self._names.resolve_extension(option.name, scope)) is not None:
            return as_map(replace(option, name=name))
        return option

    def _merged(self, field: Field, left: Option, other: Option, scope: Scope) -> Option:
        if left.kind != "map" or other.kind != "map":
            return other
        return replace(other, value=self._merged_maps(field, left.value, other.value, scope))

    def _merged_maps(self, field: Field, left: dict[str, Any], other: dict[str, Any], scope: Scope) -> dict[str, Any]:
        container = self._message_of(field, scope)
        made = dict(left)
        for name, value in other.items():
            inner = None if container is None else _field_of(container, name)
            made[name] = self._merged_values(inner, made[name], value, scope) if name in made else value
        return made

    def _merged_values(self, field: Field | None, left: Any, other: Any, scope: Scope) -> Any:
        if field is not None and field.label != "repeated":
            both = isinstance(left, dict) and isinstance(other, dict)
            if both and self._message_of(field, scope) is not None:
                return self._merged_maps(field, left, other, scope)
            return other
        values: list[Any] = []
        for value in (left, other):
            values += [item for item in (value if isinstance(value, list) else [value]) if item not in values]
        return values

    def _message_of(self, field: Field, scope: Scope) -> Message | None:
        name = self._names.resolve(field.type, scope)
        known = None if name is None else self._names.type(name)
        return known.type if known is not None and isinstance(known.type, Message) else None

    def _written(self, option: Option, scope: Scope) -> Option:
        """The option with its value normalized."""
        match option.kind:
            case "number":
                return replace(option, value=_number(str(option.value)))
            case "option":
                return replace(option, value=self._written(option.value, scope))
            case "map":
                return replace(option, value=self._map(option.value, scope))
            case "list":
                return replace(option, value=[self._value(value, scope) for value in option.value])
        return option

    def _map(self, values: dict[str, Any], scope: Scope) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        for name, value in values.items():
            if value == []:
                continue
            if name.startswith("[") and name.endswith("]"):
                resolved = self._names.resolve_extension(name[1:-1], scope)
                name = name if resolved is None else f"[{resolved}]"
            merged.setdefault(name, self._value(value, scope))
        return {name: merged[name] for name in sorted(merged)}

    def _value(self, value: Any, scope: Scope) -> Any:
        if isinstance(value, dict):
            return self._map(value, scope)
        if isinstance(value, list):
            return self._value(value[0], scope) if len(value) == 1 else [self._value(item, scope) for item in value]
        if isinstance(value, Primitive) and value.kind == "number":
            return Primitive("number", _number(value.value))
        if isinstance(value, Option):
            return self._written(value, scope)
        return value


def as_map(option: Option) -> Option:
    """``(a).b.c = 1`` as ``(a) = {b: {c: 1}}``."""
    return replace(option, kind="map", value=_inner_map(option.value)) if option.kind == "option" else option


def _inner_map(option: Option) -> dict[str, Any]:
    if option.kind in ("boolean", "enum", "number"):
        return {option.name: Primitive(option.kind, option.value)}
    return {option.name: _inner_map(option.value) if option.kind == "option" else option.value}


def _field_of(message: Message, name: str) -> Field | None:
    every = [*message.fields, *(field for oneof in message.oneofs for field in oneof.fields)]
    return next((field for field in every if field.name == name), None)


def _kind_of_default(type_: str) -> OptionKind:
    kinds: dict[str, OptionKind] = {"bool": "boolean", "string": "string"}
    return kinds.get(type_, "number" if type_ in SCALARS else "enum")


def _single(value: V) -> V | int:
    """A range of one number becomes that number."""
    return value.first if isinstance(value, Range) and value.first == value.last else value


def _start(value: str | int | Range) -> int:
    return value.first if isinstance(value, Range) else value if isinstance(value, int) else _LAST


def _java_text(value: str | int | Range) -> str:
    return f"{value.first}..{value.last}" if isinstance(value, Range) else str(value)


def _in_order(reserved: Sequence[Reserved]) -> list[Reserved]:
    values = [value for item in reserved for value in item.values]
    key: Callable[[str | int | Range], tuple[int, str]] = lambda value: (_start(value), _java_text(value))  # noqa: E731
    return [Reserved([_single(value)]) for value in sorted(values, key=key)]


def _number(text: str) -> str:
    """A number in the format of Java's ``DecimalFormat``: hex and octal become decimal, with three decimal places."""
    plain = text.removeprefix("-").removeprefix("+")
    sign = "-" if text.startswith("-") else ""
    try:
        if plain.lower().startswith("0x"):
            return sign + str(int(plain, 16))
        if plain.isdecimal():
            whole = int(plain, 8) if len(plain) > 1 and plain.startswith("0") else int(plain)
            return sign + str(whole)
        rounded = Decimal(plain).quantize(Decimal("0.001"), ROUND_HALF_EVEN)
    except (ValueError, InvalidOperation):
        return text
    shown = f"{rounded:f}".rstrip("0").rstrip(".") if rounded.is_finite() else plain
    return sign + shown
