"""Converts Connect schemas to Protobuf files, and rows to messages."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from connect.converters.avro_style import scrubbed
from connect.converters.protobuf_style import (
    DATE_MESSAGE,
    DECIMAL_MESSAGE,
    DEFAULT_NAME,
    GENERALIZED_UNION,
    TAG,
    TIME_MESSAGE,
    TIMESTAMP_MESSAGE,
    TYPE,
    UNION,
    WRAPPERS,
    ProtobufStyle,
)
from connect.data.errors import DataError
from connect.data.schema import DATE, DECIMAL, PRECISION, TIME, TIMESTAMP, Schema, SchemaType

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

__all__ = ["message_writer", "proto_text"]

Fill = Callable[[Any, Any], None]
"""(message, value in the Python form of its schema)."""

_PLAIN: Final = {
    SchemaType.INT8: "int32",
    SchemaType.INT16: "int32",
    SchemaType.INT32: "int32",
    SchemaType.INT64: "int64",
    SchemaType.FLOAT32: "float",
    SchemaType.FLOAT64: "double",
    SchemaType.BOOLEAN: "bool",
    SchemaType.STRING: "string",
    SchemaType.BYTES: "bytes",
}
_LOGICAL: Final = {DECIMAL: DECIMAL_MESSAGE, DATE: DATE_MESSAGE, TIME: TIME_MESSAGE, TIMESTAMP: TIMESTAMP_MESSAGE}
_IMPORTS: Final = {
    DECIMAL_MESSAGE: "confluent/type/decimal.proto",
    DATE_MESSAGE: "google/type/date.proto",
    TIME_MESSAGE: "google/type/timeofday.proto",
    TIMESTAMP_MESSAGE: "google/protobuf/timestamp.proto",
    **dict.fromkeys(WRAPPERS, "google/protobuf/wrappers.proto"),
}
_WRAPPER_OF: Final = {
    "int32": "Int32Value",
    "int64": "Int64Value",
    "float": "FloatValue",
    "double": "DoubleValue",
    "bool": "BoolValue",
    "string": "StringValue",
    "bytes": "BytesValue",
    "uint32": "UInt32Value",
    "fixed32": "UInt32Value",
    "uint64": "UInt64Value",
    "fixed64": "UInt64Value",
}
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def proto_text(schema: Schema, style: ProtobufStyle) -> str:
    """The file with a struct's message. Raises DataError for what Protobuf can't express."""
    return _Writer(style).file(schema)


class _Writer:
    def __init__(self, style: ProtobufStyle) -> None:
        self._style, self._nameless = style, 0
        self._imports: set[str] = set()

    def file(self, schema: Schema) -> str:
        if schema.type is not SchemaType.STRUCT:
            raise DataError(
                f"Unsupported root schema of type {schema.type.name}: Protobuf has messages only (HoistField)"
            )
        package, _, name = (schema.name or "").rpartition(".")
        lines = self._message(self._checked(name) if name else self._default(), schema, "")
        head = ['syntax = "proto3";']
        if package:
            head.append(f"package {'.'.join(self._checked(part) for part in package.split('.'))};")
        head += [f'import "{path}";' for path in sorted(self._imports)]
        return "\n".join([*head, "", *lines, ""])

    def _default(self) -> str:
        self._nameless += 1
        return f"{DEFAULT_NAME}{self._nameless}"

    def _checked(self, name: str) -> str:
        made = scrubbed(name) if self._style.scrub else name
        if not _NAME.fullmatch(made):
            raise DataError(f"Protobuf does not allow the name {name!r}: scrub.invalid.names=true writes it otherwise")
        return made

    def _message(self, name: str, schema: Schema, indent: str) -> list[str]:
        inner = f"{indent}  "
        types: dict[str, tuple[Schema, list[str]]] = {}
        fields: list[str] = []
        tag = 0
        for member in schema.fields:
            if _is_union(member.schema):
                options = []
                for wrapped_field in member.schema.fields:
                    tag = _tag(wrapped_field.schema, tag)
                    options.append(
                        f"{inner}  {self._field(wrapped_field.name, wrapped_field.schema, tag, types, inner, label=False)}"
                    )
                name_of = re.sub(r"_\d+$", "", member.name) if self._style.index_unions else member.name
                fields += [f"{inner}oneof {self._checked(name_of)} {{", *options, f"{inner}}}"]
                continue
            tag = _tag(member.schema, tag)
            fields.append(f"{inner}{self._field(member.name, member.schema, tag, types, inner)}")
        nested = [line for _, lines in types.values() for line in lines]
        return [f"{indent}message {name} {{", *fields, *nested, f"{indent}}}"]

    def _field(
        self,
        name: str,
        schema: Schema,
        tag: int,
        types: dict[str, tuple[Schema, list[str]]],
        indent: str,
        *,
        label: bool = True,
    ) -> str:
        name = self._checked(name)
        prefix = ""
        if schema.type is SchemaType.ARRAY:
            assert schema.value_schema is not None
            if schema.value_schema.type is SchemaType.ARRAY:
                raise DataError(f"field {name!r}: Array cannot be nested in Protobuf")
            prefix, schema = "repeated ", schema.value_schema
        elif label and self._style.optional_nullables and schema.optional and schema.type is not SchemaType.MAP:
            prefix = "optional "
        kind = self._type(name, schema, types, indent, wraps=not prefix and label)
        meta = _meta(schema)
        if meta:
            self._imports.add("confluent/meta.proto")
            entries = ", ".join(f'{{ key: "{n}", value: "{v}" }}' for n, v in meta.items())
            return f"{prefix}{kind} {name} = {tag} [(confluent.field_meta) = {{ params: [ {entries} ] }}];"
        return f"{prefix}{kind} {name} = {tag};"

    def _type(
        self, name: str, schema: Schema, types: dict[str, tuple[Schema, list[str]]], indent: str, *, wraps: bool
    ) -> str:
        logical = _LOGICAL.get(schema.name or "")
        if logical is not None:
            self._imports.add(_IMPORTS[logical])
            return logical
        if schema.type is SchemaType.MAP:
            assert schema.key_schema is not None and schema.value_schema is not None
            key = self._type(name, schema.key_schema, types, indent, wraps=False)
            value = self._type(name, schema.value_schema, types, indent, wraps=False)
            if schema.key_schema.type not in _PLAIN or key in ("float", "double", "bytes"):
                raise DataError(f"field {name!r}: Protobuf has no maps with keys of {schema.key_schema.type.value}")
            if schema.value_schema.type in (SchemaType.ARRAY, SchemaType.MAP):
                raise DataError(f"field {name!r}: Protobuf has no maps of {schema.value_schema.type.value}s")
            return f"map<{key}, {value}>"
        if schema.type is SchemaType.ARRAY:
            raise DataError(f"field {name!r}: Array cannot be nested in Protobuf")
        if schema.type is SchemaType.STRUCT:
            return self._nested(name, schema, types, indent)
        if self._style.enum in schema.parameters:
            return self._enum(schema, types, indent)
        plain = schema.parameters.get(TYPE, _PLAIN[schema.type])
        if wraps and self._style.wrapper_nullables and schema.optional and plain in _WRAPPER_OF:
            self._imports.add("google/protobuf/wrappers.proto")
            return f"google.protobuf.{_WRAPPER_OF[plain]}"
        return plain

    def _nested(self, name: str, schema: Schema, types: dict[str, tuple[Schema, list[str]]], indent: str) -> str:
        last = (schema.name or "").rpartition(".")[2]
        type_name = self._checked(last) if last else self._default()
        if type_name == name:
            type_name += "Message"
        bare = schema.as_optional(False)
        if type_name in types and types[type_name][0].fields != bare.fields:
            raise DataError(f"two different structs are called {type_name!r} within one message")
        if type_name not in types:
            types[type_name] = (bare, self._message(type_name, bare, indent))
        return type_name

    def _enum(self, schema: Schema, types: dict[str, tuple[Schema, list[str]]], indent: str) -> str:
        name = self._checked(schema.parameters[self._style.enum] or "Enum")
        prefix = f"{self._style.enum}."
        symbols = {n.removeprefix(prefix): v for n, v in schema.parameters.items() if n.startswith(prefix)}
        lines = [f"{indent}  {self._checked(symbol)} = {int(number)};" for symbol, number in symbols.items()]
        types.setdefault(name, (schema, [f"{indent}enum {name} {{", *lines, f"{indent}}}"]))
        return name


def _tag(schema: Schema, last: int) -> int:
    tag = schema.parameters.get(TAG)
    return int(tag) if tag and tag.isdigit() else last + 1


def _meta(schema: Schema) -> dict[str, str]:
    """The facts about a field that Protobuf's type lacks."""
    if schema.name == DECIMAL:
        precision = {"precision": schema.parameters[PRECISION]} if PRECISION in schema.parameters else {}
        return {**precision, "scale": str(schema.scale)}
    if schema.type in (SchemaType.INT8, SchemaType.INT16):
        return {"connect.type": schema.type.value}
    return {}


def _is_union(schema: Schema) -> bool:
    if schema.type is not SchemaType.STRUCT:
        return False
    return (schema.name or "").startswith(UNION) or GENERALIZED_UNION in schema.parameters


# -- rows


def message_writer(schema: Schema, descriptor: Descriptor, style: ProtobufStyle) -> Fill:
    """A function that fills a message with a struct's values. Setting a field that the message lacks is an error."""
    members: list[tuple[str, Fill]] = []
    for member in schema.fields:
        if _is_union(member.schema):
            inner = message_writer(member.schema, descriptor, style)
            members.append((member.name, inner))
            continue
        name = scrubbed(member.name) if style.scrub else member.name
        field = descriptor.fields_by_name.get(name)
        if field is None:
            members.append((member.name, _missing(name, descriptor.full_name)))
        else:
            members.append((member.name, _field_writer(member.schema, field, style)))

    def fill(message: Any, value: Any) -> None:
        for name, write in members:
            item = value.get(name)
            if item is not None:
                write(message, item)

    return fill


def _missing(name: str, message_name: str) -> Fill:
    def fail(message: Any, value: Any) -> None:  # noqa: ARG001
        raise DataError(f"message {message_name} has no field {name!r}")

    return fail


def _field_writer(schema: Schema, field: FieldDescriptor, style: ProtobufStyle) -> Fill:
    name = field.name
    if schema.type is SchemaType.ARRAY:
        assert schema.value_schema is not None
        if field.message_type is None:
            convert = _converter(schema.value_schema, field)
            return lambda message, value: getattr(message, name).extend([convert(item) for item in value])
        put = _message_filler(schema.value_schema, field.message_type, style)

        def add(message: Any, value: Any) -> None:
            items = getattr(message, name)
            for item in value:
                put(items.add(), item)

        return add
    if schema.type is SchemaType.MAP:
        return _map_writer(schema, field, style)
    if field.message_type is not None:
        put = _message_filler(schema, field.message_type, style)

        def fill(message: Any, value: Any) -> None:
            inner = getattr(message, name)
            inner.SetInParent()
            put(inner, value)

        return fill
    convert = _converter(schema, field)
    return lambda message, value: setattr(message, name, convert(value))


def _map_writer(schema: Schema, field: FieldDescriptor, style: ProtobufStyle) -> Fill:
    assert schema.value_schema is not None
    name = field.name
    if field.message_type is None or not field.message_type.GetOptions().map_entry:
        raise DataError(f"field {name!r} is no map")
    value_field = field.message_type.fields_by_name["value"]
    put = (
        None
        if value_field.message_type is None
        else _message_filler(schema.value_schema, value_field.message_type, style)
    )
    convert = _converter(schema.value_schema, value_field)

    def fill(message: Any, value: Any) -> None:
        entries = getattr(message, name)
        for key, item in value.items() if isinstance(value, dict) else value:
            if put is not None:
                put(entries[key], item)
            else:
                entries[key] = convert(item)

    return fill


def _converter(schema: Schema, field: FieldDescriptor) -> Callable[[Any], Any]:
    enum = field.enum_type
    if enum is None or schema.type is not SchemaType.STRING:
        return lambda value: value

    def number(value: str) -> int:
        symbol = enum.values_by_name.get(value)
        if symbol is None:
            raise DataError(f"enum {enum.name} has no {value!r}: {', '.join(enum.values_by_name)}")
        return int(symbol.number)

    return number


def _message_filler(schema: Schema, descriptor: Descriptor, style: ProtobufStyle) -> Fill:
    kind = descriptor.full_name
    if kind in _FILLERS:
        return lambda message, value: _FILLERS[kind](schema, message, value)
    if kind in WRAPPERS:
        return lambda message, value: setattr(message, "value", value)
    return message_writer(schema, descriptor, style)


def _fill_decimal(schema: Schema, message: Any, value: Any) -> None:
    number = int(value.scaleb(schema.scale, decimal.Context(prec=100)))
    message.value = number.to_bytes((number + (number < 0)).bit_length() // 8 + 1, "big", signed=True)
    message.precision = len(str(abs(number)))
    message.scale = schema.scale


def _fill_date(schema: Schema, message: Any, value: Any) -> None:  # noqa: ARG001
    message.year, message.month, message.day = value.year, value.month, value.day


def _fill_time(schema: Schema, message: Any, value: Any) -> None:  # noqa: ARG001
    message.hours, message.minutes, message.seconds = value.hour, value.minute, value.second
    message.nanos = value.microsecond * 1000


def _fill_timestamp(schema: Schema, message: Any, value: Any) -> None:  # noqa: ARG001
    import datetime as dt

    whole = value - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    message.seconds = whole // dt.timedelta(seconds=1)
    message.nanos = whole % dt.timedelta(seconds=1) // dt.timedelta(microseconds=1) * 1000


_FILLERS: Final[dict[str, Callable[[Schema, Any, Any], None]]] = {
    DECIMAL_MESSAGE: _fill_decimal,
    DATE_MESSAGE: _fill_date,
    TIME_MESSAGE: _fill_time,
    TIMESTAMP_MESSAGE: _fill_timestamp,
}
