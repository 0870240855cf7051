"""Converts the parts of a file to a descriptor, and descriptors to message classes that encode and decode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from registry.formats.protobuf.elements import (
    MAX_TAG,
    Enum,
    Extend,
    Field,
    Group,
    Label,
    Message,
    Option,
    ProtoFile,
    Range,
    Reserved,
    Service,
)
from registry.formats.protobuf.known import GOOGLE_FILES, KNOWN_FILES, google_descriptor, known_file
from registry.formats.protobuf.names import Names, map_parts
from registry.formats.protobuf.normalize import UnknownType

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

__all__ = ["descriptor_of", "pool_of"]

_TYPES: Final = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7, "bool": 8, "string": 9,
    "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16, "sint32": 17, "sint64": 18,
}  # fmt: skip
_GROUP, _MESSAGE, _ENUM = 10, 11, 14
_LABELS: Final[dict[Label | None, int]] = {None: 1, "optional": 1, "required": 2, "repeated": 3}
Scope = tuple[str, ...]


def descriptor_of(path: str, file: ProtoFile, names: Names) -> FileDescriptorProto:
    """The descriptor of a file; raises UnknownType. Options that are extensions are left out."""
    return _Describer(path, file, names).file()


def pool_of(path: str, file: ProtoFile, dependencies: Mapping[str, ProtoFile]) -> DescriptorPool:
    """A pool with the file and its dependencies.

    Raises UnknownType, or TypeError for a file that no runtime accepts.
    """
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    known: set[str] = set()

    def add(path: str, file: ProtoFile | None) -> None:
        if path in known:
            return
        known.add(path)
        described = _known_descriptor(path) if file is None else descriptor_of(path, file, Names(file, dependencies))
        for needed in described.dependency:
            if needed not in dependencies and needed not in KNOWN_FILES:
                raise UnknownType(f"{path} imports {needed}, which is not among the references")
            add(needed, dependencies.get(needed))
        pool.Add(described)

    add(path, file)
    return pool


@cache
def _known_descriptor(path: str) -> FileDescriptorProto:
    if path in GOOGLE_FILES:
        return google_descriptor(path)
    file = known_file(path)
    return descriptor_of(path, file, Names(file, {}))


class _Describer:
    def __init__(self, path: str, file: ProtoFile, names: Names) -> None:
        self._path, self._file, self._names = path, file, names
        self._proto3 = file.syntax == "proto3"
        self._used: dict[str, None] = {}

    def file(self) -> FileDescriptorProto:
        from google.protobuf.descriptor_pb2 import FileDescriptorProto

        file = self._file
        made = FileDescriptorProto(name=self._path, package=file.package or "")
        if self._proto3:
            made.syntax = "proto3"
        for type_ in file.types:
            if isinstance(type_, Message):
                self._message(made.message_type.add(), type_, (type_.name,))
            else:
                self._enum(made.enum_type.add(), type_)
        self._extends(made.extension, file.extends, ())
        for service in file.services:
            self._service(made.service.add(), service)
        _set_options(made.options, file.options)
        imports = [*file.imports, *file.public_imports]
        # As in Confluent, names may be used without importing their file.
        made.dependency.extend(dict.fromkeys((*imports, *self._used)))
        made.public_dependency.extend(list(made.dependency).index(path) for path in file.public_imports)
        return made

    def _message(self, made: DescriptorProto, message: Message, scope: Scope) -> None:
        made.name = message.name
        for field in message.fields:
            self._field(made, made.field.add(), field, scope)
        for oneof in message.oneofs:
            index = len(made.oneof_decl)
            declared = made.oneof_decl.add(name=oneof.name)
            _set_options(declared.options, oneof.options)
            for field in oneof.fields:
                added = made.field.add()
                self._field(made, added, field, scope)
                added.oneof_index = index
            for group in oneof.groups:
                self._group(made, group, scope).oneof_index = index
        for group in message.groups:
            self._group(made, group, scope)
        for type_ in message.types:
            if isinstance(type_, Message):
                self._message(made.nested_type.add(), type_, (*scope, type_.name))
            else:
                self._enum(made.enum_type.add(), type_)
        for item in message.extensions:
            for value in item.values:
                first, last = _span(value)
                made.extension_range.add(start=first, end=last + 1)
        self._extends(made.extension, message.extends, scope)
        for first, last in _spans(message.reserved):
            made.reserved_range.add(start=first, end=last + 1)
        made.reserved_name.extend(_reserved_names(message.reserved))
        _set_options(made.options, message.options)
        # proto3's optional fields are oneofs with one field; they come after the others.
        for added in made.field:
            if added.proto3_optional:
                added.oneof_index = len(made.oneof_decl)
                made.oneof_decl.add(name=f"_{added.name}")

    def _field(self, holder: DescriptorProto | None, made: FieldDescriptorProto, field: Field, scope: Scope) -> None:
        made.name, made.number = field.name, field.tag
        made.label = _LABELS[field.label]  # type: ignore[assignment]
        parts = map_parts(field.type)
        if parts is not None and holder is not None:
            made.label = 3  # type: ignore[assignment]
            entry = holder.nested_type.add(name=_entry_name(field.name))
            entry.options.map_entry = True
            for number, (name, type_) in enumerate(zip(("key", "value"), parts, strict=True), 1):
                inner = entry.field.add(name=name, number=number, label=1)
                self._type(inner, type_, (*scope, entry.name))
            prefix = f".{self._file.package}" if self._file.package else ""
            made.type = _MESSAGE  # type: ignore[assignment]
            made.type_name = f"{prefix}.{'.'.join((*scope, entry.name))}"
        else:
            self._type(made, field.type, scope)
        if self._proto3 and field.label == "optional":
            made.proto3_optional = True
        if field.default is not None:
            made.default_value = field.default
        if field.json_name is not None:
            made.json_name = field.json_name
        _set_options(made.options, field.options)

    def _type(self, made: FieldDescriptorProto, type_: str, scope: Scope) -> None:
        if type_ in _TYPES:
            made.type = _TYPES[type_]  # type: ignore[assignment]
            return
        made.type_name, is_enum = self._resolved(type_, scope)
        made.type = _ENUM if is_enum else _MESSAGE  # type: ignore[assignment]

    def _resolved(self, name: str, scope: Scope) -> tuple[str, bool]:
        full_name = self._names.resolve(name, scope)
        known = None if full_name is None else self._names.type(full_name)
        if full_name is None or known is None:
            raise UnknownType(f"Could not resolve type: {name}")
        if known.file is not None:
            self._used[known.file] = None
        return f".{full_name}", isinstance(known.type, Enum)

    def _group(self, holder: DescriptorProto, group: Group, scope: Scope) -> FieldDescriptorProto:
        inner = holder.nested_type.add(name=group.name)
        for field in group.fields:
            self._field(inner, inner.field.add(), field, (*scope, group.name))
        made = holder.field.add(name=group.name.lower(), number=group.tag, label=_LABELS[group.label], type=_GROUP)
        prefix = f".{self._file.package}" if self._file.package else ""
        made.type_name = f"{prefix}.{'.'.join((*scope, group.name))}"
        return made

    def _extends(self, made: Any, extends: Iterable[Extend], scope: Scope) -> None:
        for extend in extends:
            extendee, _ = self._resolved(extend.name, scope)
            for field in extend.fields:
                added = made.add()
                self._field(None, added, field, scope)
                added.extendee = extendee

    def _enum(self, made: Any, enum: Enum) -> None:
        made.name = enum.name
        for constant in enum.constants:
            _set_options(made.value.add(name=constant.name, number=constant.tag).options, constant.options)
        for first, last in _spans(enum.reserved):
            made.reserved_range.add(start=first, end=last)
        made.reserved_name.extend(_reserved_names(enum.reserved))
        _set_options(made.options, enum.options)

    def _service(self, made: Any, service: Service) -> None:
        made.name = service.name
        for rpc in service.rpcs:
            method = made.method.add(name=rpc.name)
            method.input_type, _ = self._resolved(rpc.request, ())
            method.output_type, _ = self._resolved(rpc.response, ())
            method.client_streaming, method.server_streaming = rpc.request_streaming, rpc.response_streaming
            _set_options(method.options, rpc.options)
        _set_options(made.options, service.options)


def _entry_name(field: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in field.split("_")) + "Entry"


def _span(value: str | int | Range) -> tuple[int, int]:
    if isinstance(value, Range):
        return value.first, min(value.last, MAX_TAG)
    return (value, value) if isinstance(value, int) else (0, 0)


def _spans(reserved: Sequence[Reserved]) -> list[tuple[int, int]]:
    return [_span(value) for item in reserved for value in item.values if not isinstance(value, str)]


def _reserved_names(reserved: Sequence[Reserved]) -> list[str]:
    return [value for item in reserved for value in item.values if isinstance(value, str)]


def _set_options(made: Any, options: Sequence[Option]) -> None:
    """Set Google's own options; a value of the wrong type is left out."""
    for option in options:
        field = None if option.parenthesized else made.DESCRIPTOR.fields_by_name.get(option.name)
        if field is None or field.message_type is not None or field.is_repeated:
            continue
        try:
            if field.enum_type is not None:
                setattr(made, option.name, field.enum_type.values_by_name[option.value].number)
            elif option.kind == "boolean":
                setattr(made, option.name, option.value == "true")
            elif option.kind == "number":
                setattr(made, option.name, int(option.value))
            else:
                setattr(made, option.name, option.value)
        except (TypeError, ValueError, KeyError):
            continue
