"""Writes the parts of a file in Confluent's layout: the canonical text of a Protobuf schema."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from registry.formats.protobuf.elements import (
    MAX_TAG,
    Constant,
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
from registry.formats.protobuf.names import SCALARS

__all__ = ["write_text"]

_ESCAPES: Final = str.maketrans(
    {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v", "\\": "\\\\", "'": "\\'",
     '"': '\\"'}
)  # fmt: skip


def write_text(file: ProtoFile) -> str:
    """The file as text without comments, with messages before enums, otherwise unchanged."""
    out = []
    if file.syntax is not None:
        out.append(f'syntax = "{file.syntax}";\n')
    if file.package is not None:
        out.append(f"package {file.package};\n")
    groups = [
        [*(f'import "{path}";\n' for path in file.imports), *(f'import public "{p}";\n' for p in file.public_imports)],
        [_option_line(option) for option in file.options],
        _types(file.types),
        [_extend(extend) for extend in file.extends],
        [_service(service) for service in file.services],
    ]
    for group in groups:
        if group:
            out += ["\n", *group]
    return "".join(out)


def _block(head: str, *groups: list[str]) -> str:
    """A head with braces, and an empty line before each nonempty group."""
    inner = "".join("\n" + "".join(_indented(part) for part in group) for group in groups if group)
    return f"{head} {{{inner}}}\n"


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.rstrip("\n").split("\n"))


def _types(types: Sequence[Message | Enum]) -> list[str]:
    messages = [_message(type_) for type_ in types if isinstance(type_, Message)]
    return messages + [_enum(type_) for type_ in types if isinstance(type_, Enum)]


def _message(message: Message) -> str:
    return _block(
        f"message {message.name}",
        [_reserved(reserved) for reserved in message.reserved],
        [_option_line(option) for option in message.options],
        [_field(field) for field in message.fields],
        [_oneof(oneof) for oneof in message.oneofs],
        [_group(group) for group in message.groups],
        [_extensions(extensions) for extensions in message.extensions],
        [_extend(extend) for extend in message.extends],
        _types(message.types),
    )


def _enum(enum: Enum) -> str:
    rest = [*(_option_line(option) for option in enum.options), *(_constant(constant) for constant in enum.constants)]
    reserved = [_reserved(item) for item in enum.reserved]
    # After reserved numbers the constants follow without an empty line.
    return _block(f"enum {enum.name}", [*reserved, *rest])


def _constant(constant: Constant) -> str:
    return f"{constant.name} = {constant.tag}{_options(constant.options)};\n"


def _oneof(oneof: OneOf) -> str:
    return _block(
        f"oneof {oneof.name}",
        [_option_line(option) for option in oneof.options],
        [_field(field) for field in oneof.fields],
        [_group(group) for group in oneof.groups],
    )


def _group(group: Group) -> str:
    label = f"{group.label} " if group.label else ""
    return _block(f"{label}group {group.name} = {group.tag}", [_field(field) for field in group.fields])


def _extend(extend: Extend) -> str:
    return _block(f"extend {extend.name}", [_field(field) for field in extend.fields])


def _service(service: Service) -> str:
    return _block(
        f"service {service.name}",
        [_option_line(option) for option in service.options],
        [_rpc(rpc) for rpc in service.rpcs],
    )


def _rpc(rpc: Rpc) -> str:
    request = f"{'stream ' if rpc.request_streaming else ''}{rpc.request}"
    response = f"{'stream ' if rpc.response_streaming else ''}{rpc.response}"
    options = "".join(_indented(_option_line(option)) for option in rpc.options)
    return f"rpc {rpc.name} ({request}) returns ({response}){f' {{{chr(10)}{options}}}' if options else ''};\n"


def _spans(values: Sequence[str | int | Range]) -> str:
    return ", ".join(_span(value) for value in values)


def _span(value: str | int | Range) -> str:
    if isinstance(value, Range):
        return f"{value.first} to {value.last if value.last < MAX_TAG else 'max'}"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _reserved(reserved: Reserved) -> str:
    return f"reserved {_spans(reserved.values)};\n"


def _extensions(extensions: Extensions) -> str:
    return f"extensions {_spans(extensions.values)}{_options(extensions.options)};\n"


def _field(field: Field) -> str:
    options = list(field.options)
    if field.default is not None:
        options.append(Option("default", _kind_of_default(field.type), field.default))
    if field.json_name is not None:
        options.append(Option("json_name", "string", field.json_name))
    label = f"{field.label} " if field.label else ""
    return f"{label}{field.type} {field.name} = {field.tag}{_options(options)};\n"


def _kind_of_default(type_: str) -> OptionKind:
    if type_ == "bool":
        return "boolean"
    if type_ == "string":
        return "string"
    return "number" if type_ in SCALARS else "enum"


def _option_line(option: Option) -> str:
    return f"option {_option(option)};\n"


def _options(options: Sequence[Option]) -> str:
    return f" {_bracketed(options)}" if options else ""


def _bracketed(values: Sequence[Any]) -> str:
    if len(values) == 1:
        return f"[{_value(values[0])}]"
    return "[\n" + _listed(values) + "]"


def _listed(values: Sequence[Any]) -> str:
    last = len(values) - 1
    return "".join(_indented(_value(value) + ("," if index < last else "")) for index, value in enumerate(values))


def _option(option: Option) -> str:
    name = f"({option.name})" if option.parenthesized else option.name
    match option.kind:
        case "string":
            return f'{name} = "{str(option.value).translate(_ESCAPES)}"'
        case "option":
            return f"{name}.{_option(option.value)}"
        case "map":
            return f"{name} = {{\n{_map(option.value)}}}"
        case "list":
            return f"{name} = {_bracketed(option.value)}"
    return f"{name} = {option.value}"


def _map(values: dict[str, Any]) -> str:
    last = len(values) - 1
    return "".join(
        _indented(f"{name}: {_value(value)}{',' if index < last else ''}")
        for index, (name, value) in enumerate(values.items())
    )


def _value(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if isinstance(value, dict):
        return f"{{\n{_map(value)}}}"
    if isinstance(value, list):
        return "[\n" + _listed(value) + "]"
    if isinstance(value, Option):
        return _option(value)
    assert isinstance(value, Primitive)
    return value.value
