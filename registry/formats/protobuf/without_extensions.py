"""A file without extensions and custom options, which only some readers understand (``format=ignore_extensions``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from registry.formats.protobuf.elements import Enum, Field, Group, Message, OneOf, Option, ProtoFile, Service

__all__ = ["without_extensions"]


def without_extensions(file: ProtoFile) -> ProtoFile:
    """Remove custom options except Confluent's, ``extend`` and ``extensions``."""
    return ProtoFile(
        file.syntax,
        file.package,
        file.imports,
        file.public_imports,
        [_type(type_) for type_ in file.types],
        [_service(service) for service in file.services],
        [],
        _known_options(file.options),
    )


def _known_options(options: Sequence[Option]) -> list[Option]:
    return [option for option in options if not option.parenthesized or option.name.startswith("confluent.")]


def _type(type_: Message | Enum) -> Message | Enum:
    if isinstance(type_, Enum):
        constants = [replace(constant, options=_known_options(constant.options)) for constant in type_.constants]
        return Enum(type_.name, constants, _known_options(type_.options), type_.reserved)
    return Message(
        type_.name,
        [_type(inner) for inner in type_.types],
        _known_options(type_.options),
        type_.reserved,
        _fields(type_.fields),
        [_oneof(oneof) for oneof in type_.oneofs],
        [],
        [_group(group) for group in type_.groups],
        [],
    )


def _fields(fields: Sequence[Field]) -> list[Field]:
    return [replace(field, options=_known_options(field.options)) for field in fields]


def _group(group: Group) -> Group:
    return replace(group, fields=_fields(group.fields))


def _oneof(oneof: OneOf) -> OneOf:
    groups = [_group(group) for group in oneof.groups]
    return replace(oneof, fields=_fields(oneof.fields), groups=groups, options=_known_options(oneof.options))


def _service(service: Service) -> Service:
    rpcs = [replace(rpc, options=_known_options(rpc.options)) for rpc in service.rpcs]
    return replace(service, rpcs=rpcs, options=_known_options(service.options))
