"""Converts a descriptor to the parts of a file, for schemas registered as descriptors and for the known files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from registry.formats.protobuf.elements import (
    Constant,
    Enum,
    Extend,
    Extensions,
    Field,
    Label,
    Message,
    OneOf,
    Option,
    OptionKind,
    ProtoFile,
    Range,
    Reserved,
    Rpc,
    Service,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        EnumDescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
        ServiceDescriptorProto,
    )

__all__ = ["file_of"]

_SCALARS: Final = {
    1: "double", 2: "float", 3: "int64", 4: "uint64", 5: "int32", 6: "fixed64", 7: "fixed32", 8: "bool", 9: "string",
    12: "bytes", 13: "uint32", 15: "sfixed32", 16: "sfixed64", 17: "sint32", 18: "sint64",
}  # fmt: skip
_LABELS: Final[dict[int, Label]] = {1: "optional", 2: "required", 3: "repeated"}


def file_of(described: FileDescriptorProto) -> ProtoFile:
    """The parts of a file with this descriptor."""
    public = set(described.public_dependency)
    weak = set(described.weak_dependency)
    file = ProtoFile(described.syntax or None, described.package or None)
    for index, path in enumerate(described.dependency):
        if index in public:
            file.public_imports.append(path)
        elif index not in weak:
            file.imports.append(path)
    proto3 = described.syntax == "proto3"
    file.types = [
        *(_message(message, proto3) for message in described.message_type),
        *(_enum(enum) for enum in described.enum_type),
    ]
    file.services = [_service(service) for service in described.service]
    file.extends = _extends(described.extension, proto3)
    file.options = _options(described.options)
    return file


def _message(described: DescriptorProto, proto3: bool) -> Message:
    made = Message(described.name)
    oneofs = [OneOf(oneof.name, [], [], _options(oneof.options)) for oneof in described.oneof_decl]
    for field in described.field:
        if field.HasField("oneof_index") and not field.proto3_optional:
            member = _field(field, proto3)
            member.label = None
            oneofs[field.oneof_index].fields.append(member)
        else:
            made.fields.append(_field(field, proto3))
    made.oneofs = [oneof for oneof in oneofs if oneof.fields]
    made.types = [
        *(_message(message, proto3) for message in described.nested_type),
        *(_enum(enum) for enum in described.enum_type),
    ]
    ranges = [Range(span.start, span.end - 1) for span in described.reserved_range]
    made.reserved = [Reserved([span]) for span in ranges] + [Reserved([name]) for name in described.reserved_name]
    made.extensions = [
        Extensions([Range(span.start, span.end - 1)], _options(span.options)) for span in described.extension_range
    ]
    made.extends = _extends(described.extension, proto3)
    made.options = _options(described.options)
    return made


def _field(described: FieldDescriptorProto, proto3: bool) -> Field:
    label: Label | None = _LABELS[described.label]
    if proto3 and label == "optional" and not described.proto3_optional:
        label = None
    type_ = _SCALARS.get(described.type, described.type_name)
    made = Field(label, type_, described.name, described.number, _options(described.options))
    if described.HasField("default_value"):
        made.default = described.default_value
    if described.HasField("json_name") and described.json_name != _camel(described.name):
        made.json_name = described.json_name
    return made


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _enum(described: EnumDescriptorProto) -> Enum:
    constants = [Constant(value.name, value.number, _options(value.options)) for value in described.value]
    reserved = [Reserved([Range(span.start, span.end)]) for span in described.reserved_range]
    reserved += [Reserved([name]) for name in described.reserved_name]
    return Enum(described.name, constants, _options(described.options), reserved)


def _extends(described: Any, proto3: bool) -> list[Extend]:
    by_extendee: dict[str, Extend] = {}
    for field in described:
        by_extendee.setdefault(field.extendee, Extend(field.extendee, [])).fields.append(_field(field, proto3))
    return list(by_extendee.values())


def _service(described: ServiceDescriptorProto) -> Service:
    rpcs = [
        Rpc(
            method.name,
            method.input_type,
            method.output_type,
            method.client_streaming,
            method.server_streaming,
            _options(method.options),
        )
        for method in described.method
    ]
    return Service(described.name, rpcs, _options(described.options))


def _options(described: Any) -> list[Option]:
    """Options with a single plain value. Other options can't be written without their definitions."""
    options = []
    for field, value in described.ListFields():
        if field.is_extension or field.message_type is not None:
            continue
        for item in value if field.is_repeated else [value]:
            kind, text = _plain(field, item)
            options.append(Option(field.name, kind, text))
    return options


def _plain(field: Any, value: Any) -> tuple[OptionKind, str]:
    if field.enum_type is not None:
        return "enum", str(field.enum_type.values_by_number[value].name)
    if isinstance(value, bool):
        return "boolean", str(value).lower()
    return ("string" if isinstance(value, str) else "number"), str(value)
