"""Converts a Protobuf message type to a Connect schema, and messages to rows."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from connect.converters.protobuf_style import (
    DATE_MESSAGE,
    DECIMAL_MESSAGE,
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
from connect.data.schema import DECIMAL, PRECISION, Field, Schema, SchemaType

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

__all__ = ["MessageForm", "message_form"]

Read = Callable[[Any], Any]
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_SMALL: Final = {"int8": SchemaType.INT8, "int16": SchemaType.INT16}
_DEPTH: Final = 50
# The numbers of FieldDescriptor.TYPE_*, which distinguish more types than Python's types do.
_TYPES: Final[dict[int, tuple[SchemaType, str | None]]] = {
    1: (SchemaType.FLOAT64, None),
    2: (SchemaType.FLOAT32, None),
    3: (SchemaType.INT64, None),
    4: (SchemaType.INT64, "uint64"),
    5: (SchemaType.INT32, None),
    6: (SchemaType.INT64, "fixed64"),
    7: (SchemaType.INT64, "fixed32"),
    8: (SchemaType.BOOLEAN, None),
    9: (SchemaType.STRING, None),
    12: (SchemaType.BYTES, None),
    13: (SchemaType.INT64, "uint32"),
    15: (SchemaType.INT32, "sfixed32"),
    16: (SchemaType.INT64, "sfixed64"),
    17: (SchemaType.INT32, "sint32"),
    18: (SchemaType.INT64, "sint64"),
}


class MessageForm(NamedTuple):
    """How messages of one type are read."""

    schema: Schema
    read: Read
    """Converts a message to the Python form of the schema."""


def message_form(
    descriptor: Descriptor, style: ProtobufStyle, meta: Mapping[str, Mapping[str, str]], *, depth: int = 0
) -> MessageForm:
    """How messages of a type are read; ``meta`` has the parameters of fields (``confluent.field_meta``) by full name.

    Raises DataError for recursive messages, which have no columns.
    """
    if depth > _DEPTH:
        raise DataError(f"Protobuf message {descriptor.full_name} contains itself; columns cannot hold recursion")
    fields: list[Field] = []
    reads: list[tuple[str, Read]] = []
    for oneof in descriptor.oneofs:
        if _is_synthetic(oneof):
            continue
        members = [
            (oneof_field.name, *_member(oneof_field, style, meta, depth, in_oneof=True)) for oneof_field in oneof.fields
        ]
        if style.flatten_unions:
            fields += [Field(name, schema) for name, schema, _ in members]
            reads += [(name, read) for name, _, read in members]
            continue
        name = f"{oneof.name}_{oneof.index}" if style.index_unions else oneof.name
        bears = oneof.name if style.generalized else f"{UNION}.{oneof.full_name if style.enhanced else oneof.name}"
        parameters = {GENERALIZED_UNION: oneof.name} if style.generalized else {}
        inner = [Field(member, schema) for member, schema, _ in members]
        fields.append(Field(name, Schema.struct(inner, name=bears, optional=True, parameters=parameters)))
        reads.append((name, _oneof_reader(oneof.name, [(member, read) for member, _, read in members])))
    for oneof_field in descriptor.fields:
        if oneof_field.containing_oneof is not None and not _is_synthetic(oneof_field.containing_oneof):
            continue
        schema, read = _member(oneof_field, style, meta, depth)
        fields.append(Field(oneof_field.name, schema))
        reads.append((oneof_field.name, read))
    name = descriptor.full_name if style.enhanced else descriptor.name

    def read_message(message: Any) -> dict[str, Any]:
        return {name: read(message) for name, read in reads}

    return MessageForm(Schema.struct(fields, name=name), read_message)


def _is_synthetic(oneof: Any) -> bool:
    """Whether it only represents ``optional``."""
    return len(oneof.fields) == 1 and oneof.name == f"_{oneof.fields[0].name}"


def _oneof_reader(name: str, members: list[tuple[str, Read]]) -> Read:
    def read(message: Any) -> Any:
        chosen = message.WhichOneof(name)
        return (
            None
            if chosen is None
            else {member: read(message) if member == chosen else None for member, read in members}
        )

    return read


def _member(
    field: FieldDescriptor,
    style: ProtobufStyle,
    meta: Mapping[str, Mapping[str, str]],
    depth: int,
    *,
    in_oneof: bool = False,
) -> tuple[Schema, Read]:
    parameters = meta.get(field.full_name, {})
    name = field.name
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        schema, read = _map(field, style, meta, depth)
    elif _is_repeated(field):
        inner, item = _value(field, style, meta, parameters, depth)
        schema = Schema.array(inner.as_optional(), optional=True)

        def read(message: Any) -> Any:
            return [item(value) for value in getattr(message, name)]
    else:
        schema, item = _value(field, style, meta, parameters, depth)
        if field.has_presence:

            def read(message: Any) -> Any:
                return item(getattr(message, name)) if message.HasField(name) else None

            schema = schema.as_optional()
        else:

            def read(message: Any) -> Any:
                return item(getattr(message, name))

    import dataclasses

    optional = schema.optional or in_oneof or not (style.optional_nullables or style.wrapper_nullables)
    made = dataclasses.replace(schema, optional=optional, parameters={**schema.parameters, TAG: str(field.number)})
    return made, read


def _is_repeated(field: FieldDescriptor) -> bool:
    return bool(field.is_repeated)


def _map(
    field: FieldDescriptor, style: ProtobufStyle, meta: Mapping[str, Mapping[str, str]], depth: int
) -> tuple[Schema, Read]:
    name, entry = field.name, field.message_type
    assert entry is not None
    key_schema, _ = _value(entry.fields_by_name["key"], style, meta, {}, depth)
    value_schema, item = _value(entry.fields_by_name["value"], style, meta, {}, depth)
    schema = Schema.map(key_schema, value_schema.as_optional(), optional=True)
    return schema, lambda message: [(key, item(value)) for key, value in getattr(message, name).items()]


def _value(
    field: FieldDescriptor,
    style: ProtobufStyle,
    meta: Mapping[str, Mapping[str, str]],
    parameters: Mapping[str, str],
    depth: int,
) -> tuple[Schema, Read]:
    """The schema of a field's value, and its reader."""
    if field.message_type is not None:
        return _message(field.message_type, style, meta, parameters, depth)
    if field.enum_type is not None:
        return _enum(field.enum_type, style)
    kind, type_name = _TYPES[field.type]
    kind = _SMALL.get(parameters.get("connect.type", ""), kind) if kind is SchemaType.INT32 else kind
    schema = Schema(kind, parameters={TYPE: type_name} if type_name else {})
    if type_name in ("uint64", "fixed64"):  # as in Java, the upper half is negative
        return schema, lambda value: value - (1 << 64) if value >= 1 << 63 else value
    return schema, lambda value: value


def _enum(enum: Any, style: ProtobufStyle) -> tuple[Schema, Read]:
    parameters = {style.enum: enum.name}
    parameters |= {f"{style.enum}.{value.name}": str(value.number) for value in enum.values}
    name = enum.full_name if style.enhanced else enum.name
    if style.int_enums:
        return Schema(SchemaType.INT32, name=name, optional=True, parameters=parameters), lambda value: value
    names = {value.number: value.name for value in reversed(enum.values)}
    schema = Schema(SchemaType.STRING, name=name, optional=True, parameters=parameters)
    return schema, lambda value: names.get(value, f"UNKNOWN_ENUM_VALUE_{enum.name}_{value}")


def _message(
    message: Descriptor,
    style: ProtobufStyle,
    meta: Mapping[str, Mapping[str, str]],
    parameters: Mapping[str, str],
    depth: int,
) -> tuple[Schema, Read]:
    kind = message.full_name
    if kind == DECIMAL_MESSAGE:
        return _decimal(parameters)
    if kind == DATE_MESSAGE:
        return Schema.date(optional=True), lambda date: dt.date(date.year, date.month, date.day)
    if kind == TIME_MESSAGE:
        return Schema.time(optional=True), _read_time
    if kind == TIMESTAMP_MESSAGE:
        return Schema.timestamp(optional=True), _read_timestamp
    if kind in WRAPPERS:
        return Schema(WRAPPERS[kind], optional=True), lambda wrapped: wrapped.value
    form = message_form(message, style, meta, depth=depth + 1)
    return form.schema.as_optional(), form.read


def _decimal(parameters: Mapping[str, str]) -> tuple[Schema, Read]:
    scale = int(parameters.get("scale", "0"))
    precision = parameters.get("precision")
    more = {PRECISION: precision} if precision else {}
    schema = Schema(SchemaType.BYTES, True, DECIMAL, 1, parameters={"scale": str(scale), **more})
    context = decimal.Context(prec=100)

    def read(message: Any) -> decimal.Decimal:
        number = int.from_bytes(message.value, "big", signed=True)
        # A field without a scale uses that of each value; a column has one scale.
        return decimal.Decimal(number).scaleb(-(scale if "scale" in parameters else message.scale), context)

    return schema, read


def _read_time(message: Any) -> dt.time:
    return dt.time(message.hours, message.minutes, message.seconds, message.nanos // 1_000_000 * 1000)


def _read_timestamp(message: Any) -> dt.datetime:
    return _EPOCH + dt.timedelta(seconds=message.seconds, milliseconds=message.nanos // 1_000_000)
