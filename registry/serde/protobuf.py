"""Protobuf in Confluent framing as Arrow columns: Google's runtime parses, and each field is one pass over all messages.

A message is a struct; its fields in a oneof are nullable fields of it. An enum is a string. A scalar without presence has
its default where the message lacks it, as everywhere in Protobuf. Well-known types are what they stand for: a timestamp, a
duration, the value in a wrapper, JSON text for ``Struct``, ``Value`` and ``ListValue``.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from registry.serde.arrow_types import UnsupportedSchema
from registry.serde.errors import CorruptRecord
from registry.serde.framing import HEADER_SIZE, schema_of, unframe

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message

    from registry.formats.parsed import ParsedSchema
    from registry.formats.protobuf.schema import ProtobufSchema

__all__ = ["ANY_JSON", "WRAPPERS", "decode_protobuf", "map_entry", "protobuf_message", "protobuf_type"]

# The numbers of FieldDescriptor.TYPE_*.
_SCALARS: Final = {
    1: pa.float64(), 2: pa.float32(), 3: pa.int64(), 4: pa.uint64(), 5: pa.int32(), 6: pa.uint64(), 7: pa.uint32(),
    8: pa.bool_(), 9: pa.string(), 12: pa.binary(), 13: pa.uint32(), 15: pa.int32(), 16: pa.int64(), 17: pa.int32(),
    18: pa.int64(),
}  # fmt: skip
WRAPPERS: Final = frozenset(
    f"google.protobuf.{kind}Value"
    for kind in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
ANY_JSON: Final = frozenset(f"google.protobuf.{kind}" for kind in ("Struct", "Value", "ListValue"))
_KNOWN: Final = {
    "google.protobuf.Timestamp": pa.timestamp("us", "UTC"),
    "google.protobuf.Duration": pa.duration("us"),
    "google.type.Date": pa.date32(),
}
Resolve = Callable[[int], "ParsedSchema"]


def protobuf_type(schema: ProtobufSchema, message: str | None = None) -> pa.DataType:
    """The Arrow type of a message, the first of the schema by default. Raises UnsupportedSchema for one that contains itself."""
    return _message_type(schema.message_descriptor(message), ())


def decode_protobuf(values: pa.Array, resolve: Resolve, reader: ProtobufSchema, message: str | None = None) -> pa.Array:
    """Messages in Confluent framing as a column of a reader's message; null stays null.

    Fields are matched by number, as Protobuf does. ``resolve`` gives the schema of an id and is asked once for each; the
    record must be the same message by name. Raises CorruptRecord with the row, and UnknownSchema.
    """
    descriptor = reader.message_descriptor(message)
    parse = reader.message_class(message).FromString
    names: dict[bytes, str] = {}
    messages: list[Any] = []
    for row, data in enumerate(values.to_pylist()):
        if data is None:
            messages.append(None)
            continue
        end = 6 if data[5:6] == b"\x00" else _header_end(data, row)
        header = data[:end]
        if (name := names.get(header)) is None:
            name = names[header] = _message_name(header, resolve, row)
        if name != descriptor.full_name:
            raise CorruptRecord(f"the record is a message {name}, and {descriptor.full_name} is read", row=row)
        try:
            messages.append(parse(data[end:]))
        except Exception as error:  # DecodeError, whose class is that of the runtime at hand
            raise CorruptRecord(f"not a message {name}: {error}", row=row) from error
    try:
        return _structs(messages, descriptor, reader.message_class(message)())
    except (ValueError, OverflowError, pa.ArrowException) as error:
        raise CorruptRecord(f"a value of the message {descriptor.full_name} has no column: {error}") from error


def protobuf_message(data: bytes, resolve: Resolve) -> tuple[bytes, Message]:
    """A message in Confluent framing: its header (schema id and indexes of the message), and the message itself.

    Raises CorruptRecord, and UnknownSchema.
    """
    end = _header_end(data, 0)
    header = data[:end]
    name = _message_name(header, resolve, 0)
    schema: Any = schema_of(unframe(data)[0], resolve)
    message: Message = schema.message_class(name)()
    try:
        message.ParseFromString(data[end:])
    except Exception as error:  # DecodeError, whose class is that of the runtime at hand
        raise CorruptRecord(f"not a message {name}: {error}") from error
    return header, message


def _header_end(data: bytes, row: int) -> int:
    """Where the message begins: behind the schema's id and the indexes of the message."""
    count, at = _varint(data, HEADER_SIZE, row)
    for _ in range(count):
        _, at = _varint(data, at, row)
    return at


def _varint(data: bytes, at: int, row: int) -> tuple[int, int]:
    """A zigzag varint, and the byte after it."""
    value = shift = 0
    for position in range(at, min(at + 5, len(data))):
        value |= (data[position] & 0x7F) << shift
        if data[position] < 0x80:
            return (value >> 1) ^ -(value & 1), position + 1
        shift += 7
    raise CorruptRecord("the indexes of the message, behind the schema's id, are cut off", row=row)


def _message_name(header: bytes, resolve: Resolve, row: int) -> str:
    try:
        schema_id, rest = unframe(header)
    except CorruptRecord as error:
        error.row = row
        raise
    schema = schema_of(schema_id, resolve, row)
    if schema.schema_type != "PROTOBUF":
        raise CorruptRecord(
            f"the schema with the id {schema_id} is of type {schema.schema_type}, not PROTOBUF", row=row
        )
    count, at = _varint(bytes(rest), 0, row)
    indexes = []
    for _ in range(count):
        index, at = _varint(bytes(rest), at, row)
        indexes.append(index)
    try:
        return str(schema.message_at(indexes))  # type: ignore[attr-defined]
    except IndexError as error:
        raise CorruptRecord(f"{error}, whose id is {schema_id}", row=row) from error


def _message_type(message: Descriptor, within: tuple[str, ...]) -> pa.DataType:
    if message.full_name in _KNOWN:
        return _KNOWN[message.full_name]
    if message.full_name in ANY_JSON:
        return pa.string()
    if message.full_name in WRAPPERS:
        return _SCALARS[message.fields_by_name["value"].type]
    if message.full_name in within:
        raise UnsupportedSchema(f"the message {message.full_name} contains itself, which columns cannot")
    within = (*within, message.full_name)
    return pa.struct([pa.field(field.name, _field_type(field, within)) for field in message.fields])


def _field_type(field: FieldDescriptor, within: tuple[str, ...]) -> pa.DataType:
    if (entry := map_entry(field)) is not None:
        return pa.map_(_value_type(entry["key"], within), pa.field("value", _value_type(entry["value"], within)))
    type_ = _value_type(field, within)
    return pa.list_(pa.field("item", type_)) if field.is_repeated else type_


def _value_type(field: FieldDescriptor, within: tuple[str, ...] = ()) -> pa.DataType:
    if field.message_type is not None:
        return _message_type(field.message_type, within)
    return pa.string() if field.enum_type is not None else _SCALARS[field.type]


def map_entry(field: FieldDescriptor) -> Mapping[str, FieldDescriptor] | None:
    """The fields ``key`` and ``value`` of a map's entries; None for other fields."""
    message = field.message_type
    return message.fields_by_name if message is not None and message.GetOptions().map_entry else None


def _structs(messages: Sequence[Any], descriptor: Descriptor, empty: Any) -> pa.Array:
    """A column of messages of a kind, some of which may be None; ``empty`` stands in for those below their null."""
    missing = [message is None for message in messages]
    mask = pa.array(missing) if any(missing) else None
    filled = [empty if message is None else message for message in messages] if mask is not None else messages
    fields = [pa.field(field.name, _field_type(field, ())) for field in descriptor.fields]
    if not fields:
        return pa.array([None if gone else {} for gone in missing], pa.struct([]))
    columns = [_field(filled, field) for field in descriptor.fields]
    return pa.StructArray.from_arrays(columns, fields=fields, mask=mask)


def _field(messages: Sequence[Any], field: FieldDescriptor) -> pa.Array:
    name = field.name
    if (entry := map_entry(field)) is not None:
        maps = [getattr(message, name) for message in messages]
        keys = _values([key for entries in maps for key in entries], entry["key"])
        values = _values([entries[key] for entries in maps for key in entries], entry["value"])
        return pa.MapArray.from_arrays(_offsets(map(len, maps)), keys, values)
    if field.is_repeated:
        lists = list(map(attrgetter(name), messages))
        return pa.ListArray.from_arrays(_offsets(map(len, lists)), _values(list(chain.from_iterable(lists)), field))
    if field.has_presence:
        return _values([getattr(message, name) if message.HasField(name) else None for message in messages], field)
    return _values(list(map(attrgetter(name), messages)), field)


def _values(values: list[Any], field: FieldDescriptor) -> pa.Array:
    """Values of a field, None among them where they are missing."""
    if field.enum_type is not None:
        names = {value.number: value.name for value in reversed(field.enum_type.values)}
        return pa.array([None if v is None else names.get(v, str(v)) for v in values], pa.string())
    message = field.message_type
    if message is None:
        return pa.array(values, _SCALARS[field.type])
    kind = message.full_name
    if kind in WRAPPERS:
        return pa.array([None if v is None else v.value for v in values], _value_type(field))
    if kind in ANY_JSON:
        return pa.array([None if v is None else _json(v) for v in values], pa.string())
    if kind == "google.type.Date":
        return pa.array([None if v is None else dt.date(v.year, v.month, v.day) for v in values], pa.date32())
    if kind in _KNOWN:
        microseconds = [None if v is None else v.seconds * 1_000_000 + v.nanos // 1000 for v in values]
        return pa.array(microseconds, pa.int64()).cast(_KNOWN[kind])
    from google.protobuf.message_factory import GetMessageClass

    return _structs(values, message, GetMessageClass(message)())


def _json(message: Any) -> str:
    from google.protobuf.json_format import MessageToJson

    return str(MessageToJson(message, indent=None))


def _offsets(lengths: Iterable[int]) -> pa.Array:
    return pa.array(accumulate(lengths, initial=0), pa.int32())
