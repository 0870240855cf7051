"""Arrow columns as Protobuf in Confluent framing. Google's runtime builds and serializes a message for each row."""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from registry.formats.protobuf.schema import ProtobufSchema
from registry.serde.arrow_types import UnsupportedSchema
from registry.serde.errors import UnencodableValue
from registry.serde.framing import header
from registry.serde.protobuf import ANY_JSON, WRAPPERS, map_entry

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor

__all__ = ["encode_protobuf", "protobuf_schema_of"]

_IDENTIFIER: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND: Final = dt.timedelta(microseconds=1)
_TIMESTAMP, _DURATION, _DATE = "google.protobuf.Timestamp", "google.protobuf.Duration", "google.type.Date"
_IMPORTS: Final = {
    _TIMESTAMP: "google/protobuf/timestamp.proto",
    _DURATION: "google/protobuf/duration.proto",
    _DATE: "google/type/date.proto",
}
_SCALARS: Final[tuple[tuple[Callable[[pa.DataType], bool], str], ...]] = (
    (pa.types.is_boolean, "bool"),
    (pa.types.is_uint64, "uint64"),
    (pa.types.is_uint32, "uint32"),
    (pa.types.is_int64, "int64"),
    (pa.types.is_integer, "int32"),
    (pa.types.is_float64, "double"),
    (pa.types.is_floating, "float"),
    (lambda t: pa.types.is_string(t) or pa.types.is_large_string(t), "string"),
    (lambda t: pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_fixed_size_binary(t), "bytes"),
    (pa.types.is_timestamp, _TIMESTAMP),
    (pa.types.is_duration, _DURATION),
    (pa.types.is_date, _DATE),
)
_KEYS: Final = ("bool", "uint64", "uint32", "int64", "int32", "string")
Convert = Callable[[Any], Any]


def protobuf_schema_of(type_: pa.DataType, name: str = "Record") -> ProtobufSchema:
    """A proto3 schema with a message for values of a struct type, fields numbered in their order.

    Scalars are ``optional``, so that null differs from the default. Nested structs are nested messages. Raises
    UnsupportedSchema for a type that Protobuf lacks, decimals and lists of lists among them.
    """
    if not pa.types.is_struct(type_):
        raise UnsupportedSchema(f"Protobuf has messages only, and the value is {type_}: make it a struct")
    used: set[str] = set()
    body = list(_message(type_, name, "", used))
    imports = [f'import "{_IMPORTS[kind]}";' for kind in sorted(used)]
    return ProtobufSchema.parse("\n".join(['syntax = "proto3";', *imports, *body]))


def _message(type_: pa.DataType, name: str, path: str, used: set[str]) -> Iterator[str]:
    names = {field.name for field in type_}
    yield f"message {name} {{"
    for number, field in enumerate(type_, start=1):
        here = f"{path}.{field.name}" if path else field.name
        if not _IDENTIFIER.fullmatch(field.name):
            raise UnsupportedSchema(
                f"Protobuf has no field name {field.name!r}: rename it to letters, digits and _", path=here
            )
        kind, label, inner = field.type, "", field.type
        if pa.types.is_map(kind):
            key = _scalar(kind.key_type, here, used)
            if key not in _KEYS:
                raise UnsupportedSchema(f"a map with keys of {kind.key_type}; Protobuf has none", path=here)
            inner = kind.item_type
        elif _is_list(kind):
            label, inner = "repeated ", kind.value_type
        if pa.types.is_struct(inner):
            text = f"{field.name[:1].upper()}{field.name[1:]}"
            while text in names:
                text += "_"
            names.add(text)
            yield from _message(inner, text, here, used)
        else:
            text = _scalar(inner, here, used)
            label = label or ("" if pa.types.is_map(kind) or text in _IMPORTS else "optional ")
        if pa.types.is_map(kind):
            text = f"map<{key}, {text}>"
        yield f"{label}{text} {field.name} = {number};"
    yield "}"


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_))


def _scalar(type_: pa.DataType, path: str, used: set[str]) -> str:
    for matches, text in _SCALARS:
        if matches(type_):
            if text in _IMPORTS:
                used.add(text)
            return text
    hint = ": cast it to STRING or DOUBLE" if pa.types.is_decimal(type_) else ""
    raise UnsupportedSchema(f"Arrow type {type_} has no Protobuf type here{hint}", path=path)


def encode_protobuf(column: pa.Array, schema: ProtobufSchema, schema_id: int, message: str | None = None) -> pa.Array:
    """Every row of a struct column as a message in Confluent framing, and a null row as null.

    Fields are matched by name. A null is a field that is not set. Raises UnencodableValue with the row and the field of the
    first value that does not fit.
    """
    descriptor = schema.message_descriptor(message)
    prefix = header(schema_id) + _indexes(schema.message_indexes(descriptor.full_name))
    build = _builder(descriptor)
    encoded: list[bytes | None] = []
    for row, value in enumerate(column.to_pylist()):
        if value is None:
            encoded.append(None)
            continue
        try:
            encoded.append(prefix + build(value).SerializeToString())
        except UnencodableValue as error:
            error.row = row
            raise
        except (
            Exception
        ) as error:  # EncodeError for a required field of proto2, whose class is that of the runtime at hand
            raise UnencodableValue(str(error), row=row) from error
    return pa.array(encoded, pa.binary())


def _indexes(path: list[int]) -> bytes:
    """The message's indexes in its file as zigzag varints, their count first; a zero stands for the first message."""
    if path == [0]:
        return b"\0"
    return b"".join(_varint(number << 1) for number in (len(path), *path))


def _varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*made, number])


def _builder(descriptor: Descriptor) -> Callable[[Mapping[str, Any]], Any]:
    """The function that makes a message of a row."""
    from google.protobuf.message_factory import GetMessageClass

    message = GetMessageClass(descriptor)
    fields = [(field.name, _field(field)) for field in descriptor.fields]

    def members(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
        for name, convert in fields:
            member = value.get(name)
            if member is not None:
                try:
                    made = member if convert is None else convert(member)
                except UnencodableValue as error:
                    error.path = f"{name}.{error.path}" if error.path else name
                    raise
                except (TypeError, ValueError, OverflowError) as error:
                    raise UnencodableValue(str(error), path=name) from error
                yield name, made

    def build(value: Mapping[str, Any]) -> Any:
        made = dict(members(value))
        try:
            return message(**made)
        except (TypeError, ValueError, OverflowError) as error:
            raise UnencodableValue(str(error), path=_misfit(message, made)) from error

    return build


def _misfit(message: Callable[..., Any], members: Mapping[str, Any]) -> str:
    """The field that the message does not take."""
    for name, member in members.items():
        try:
            message(**{name: member})
        except (TypeError, ValueError, OverflowError):
            return name
    return ""


def _field(field: FieldDescriptor) -> Convert | None:
    """The conversion of a field's values from Python's to Protobuf's; None: there is nothing to convert."""
    entry = map_entry(field)
    if entry is not None:
        keys, items = _value(entry["key"]), _present(_value(entry["value"]), "a map")
        return lambda pairs: {key if keys is None else keys(key): items(item) for key, item in pairs}
    convert = _value(field)
    if field.is_repeated:
        item_of = _present(convert, "a list")
        return lambda items: [item_of(item) for item in items]
    return convert


def _present(convert: Convert | None, container: str) -> Convert:
    def checked(item: Any) -> Any:
        if item is None:
            raise ValueError(f"a null in {container}, which Protobuf has not")
        return item if convert is None else convert(item)

    return checked


def _value(field: FieldDescriptor) -> Convert | None:
    if field.enum_type is not None:
        return lambda text: _enum_number(field.enum_type, text)
    if field.message_type is None:
        return _whole if field.cpp_type in (1, 2, 3, 4) else None  # the integers
    return _of_message(field.message_type)


def _whole(value: Any) -> Any:
    """Decimals without fraction are numbers: Spark has no other type for those of 64 bits without sign."""
    if isinstance(value, decimal.Decimal):
        if value != value.to_integral_value():
            raise ValueError(f"{value} is no whole number")
        return int(value)
    return value


def _enum_number(enum: Any, text: Any) -> int:
    known = enum.values_by_name.get(text)
    if known is not None:
        return int(known.number)
    try:
        return int(text)  # a number that the reader's schema had no name for
    except (TypeError, ValueError):
        raise ValueError(f"{text!r} is no value of {enum.full_name} ({', '.join(enum.values_by_name)})") from None


def _of_message(descriptor: Descriptor) -> Convert:
    from google.protobuf.json_format import Parse
    from google.protobuf.message_factory import GetMessageClass

    name, message = descriptor.full_name, GetMessageClass(descriptor)
    if name in (_TIMESTAMP, _DURATION):
        since = _since_epoch if name == _TIMESTAMP else _microseconds

        def instant(value: Any) -> Any:
            seconds, microseconds = divmod(since(value), 1_000_000)
            if name == _DURATION and seconds < 0 and microseconds:  # both have the same sign in a duration
                seconds, microseconds = seconds + 1, microseconds - 1_000_000
            return message(seconds=seconds, nanos=microseconds * 1000)

        return instant
    if name == _DATE:
        return lambda value: message(year=value.year, month=value.month, day=value.day)
    if name in WRAPPERS:
        inner = _value(descriptor.fields_by_name["value"])
        return lambda value: message(value=value if inner is None else inner(value))
    if name in ANY_JSON:
        return lambda value: Parse(value, message())
    return _builder(descriptor)


def _since_epoch(value: Any) -> int:
    """Microseconds; a time without a zone is taken for UTC."""
    if not isinstance(value, dt.datetime):
        raise TypeError(f"{value!r} is no time")
    return _microseconds((value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)) - _EPOCH)


def _microseconds(value: Any) -> int:
    if not isinstance(value, dt.timedelta):
        raise TypeError(f"{value!r} is no duration")
    return value // _MICROSECOND
