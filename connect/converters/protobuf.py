"""Protobuf in Confluent's framing, with schemas in a schema registry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from connect.api import Converted, Converter, ConverterContext, DataError, Schema, config, key
from connect.converters.protobuf_reading import MessageForm, message_form
from connect.converters.protobuf_style import ProtobufStyle
from connect.converters.protobuf_writing import message_writer, proto_text
from connect.converters.registry_schemas import HEADER_SIZE, RegistryConverterConfig, RegistrySchemas, runs_of

if TYPE_CHECKING:
    import pyarrow as pa

    from registry.formats.protobuf.schema import ProtobufSchema

__all__ = ["ProtobufConverter", "ProtobufConverterConfig"]

_VARINT_BYTES = 5


@config
class ProtobufConverterConfig(RegistryConverterConfig):
    """Keys of ProtobufConverter, in addition to those for the registry."""

    enhanced: bool = key(
        "enhanced.protobuf.schema.support",
        default=False,
        doc="Whether structs and enums bear the full names of messages, with their package.",
    )
    scrub: bool = key(
        "scrub.invalid.names",
        default=False,
        doc="Whether names that Protobuf does not allow are written with _ in place of what it does not.",
    )
    int_enums: bool = key("int.for.enums", default=False, doc="Whether enums are read as numbers.")
    optional_nullables: bool = key(
        "optional.for.nullables",
        default=False,
        doc="Whether optional fields are written, and read, as fields with the label optional.",
    )
    optional_proto2: bool = key(
        "optional.for.proto2", default=True, importance="low", doc="Accepted: optional fields of proto2 are optional."
    )
    wrapper_nullables: bool = key(
        "wrapper.for.nullables",
        default=False,
        doc="Whether optional fields are written as wrapper messages, which can be missing.",
    )
    index_unions: bool = key(
        "generate.index.for.unions",
        default=True,
        importance="low",
        doc="Whether the field that stands for a oneof has a number at the end of its name.",
    )
    flatten_unions: bool = key(
        "flatten.unions",
        default=False,
        importance="low",
        doc="Whether the members of a oneof are fields of the message's struct.",
    )
    generalized: bool = key(
        "generalized.sum.type.support",
        default=False,
        doc="Whether enums and unions appear under names that are the same for Avro, JSON Schema and Protobuf.",
    )

    @property
    def style(self) -> ProtobufStyle:
        return ProtobufStyle(
            enhanced=self.enhanced,
            scrub=self.scrub,
            int_enums=self.int_enums,
            optional_nullables=self.optional_nullables,
            wrapper_nullables=self.wrapper_nullables,
            index_unions=self.index_unions,
            flatten_unions=self.flatten_unions,
            generalized=self.generalized,
        )


class _Target(NamedTuple):
    header: bytes
    """Framing, id and message indexes: everything before the message."""
    message: Any
    fill: Any


class ProtobufConverter(Converter):
    """Works row by row: Protobuf's own library encodes and decodes messages."""

    config_class = ProtobufConverterConfig
    config: ProtobufConverterConfig

    def __init__(self, config: Any, context: ConverterContext) -> None:
        super().__init__(config, context)
        self._registry = RegistrySchemas(self.config, context, "Protobuf")
        self._style = self.config.style
        self._targets: dict[tuple[str, Schema], _Target] = {}
        self._sources: dict[tuple[int, tuple[int, ...]], tuple[Any, MessageForm]] = {}

    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        import pyarrow as pa

        if values.null_count == len(values):
            return pa.nulls(len(values), pa.binary())
        what = self._registry.what(topic)
        if schema is None:
            raise DataError(f"{what} has no schema, so it cannot be Protobuf; use JsonConverter for such data")
        with self._registry.translating(topic):
            target = self._target(topic, schema)
        written: list[bytes | None] = []
        for row, value in enumerate(values.to_pylist(maps_as_pydicts="strict")):
            if value is None:
                written.append(None)
                continue
            message = target.message()
            try:
                target.fill(message, value)
                written.append(target.header + message.SerializeToString())
            except (DataError, TypeError, ValueError) as error:
                raise DataError(f"{what} does not fit its Protobuf schema: {error}", rows=[row]) from error
        return pa.array(written, pa.binary())

    def _target(self, topic: str, schema: Schema) -> _Target:
        known = self._targets.get((topic, schema))
        if known is None:
            from registry.formats.protobuf.schema import ProtobufSchema

            form = ProtobufSchema.parse(proto_text(schema, self._style))
            target = self._registry.target(topic, form)
            if not isinstance(target.schema, ProtobufSchema):
                raise DataError(f"schema {target.id} of the registry is {target.schema.schema_type}, not PROTOBUF")
            name = form.message_at([])
            indexes = _indexes_in(target.schema, name)
            descriptor = target.schema.message_descriptor(target.schema.message_at(indexes))
            header = b"\0" + target.id.to_bytes(4, "big") + _written_indexes(indexes)
            message = target.schema.message_class(descriptor.full_name)
            known = _Target(header, message, message_writer(schema, descriptor, self._style))
            if len(self._targets) >= self.config.cache_size:
                self._targets.clear()
            self._targets[topic, schema] = known
        return known

    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        import pyarrow as pa

        what = self._registry.what(topic)
        converted: list[Converted] = []
        for start, length, schema_id in runs_of(data, what):
            if schema_id is None:
                converted.append(Converted(None, pa.nulls(length, pa.string())))
            else:
                converted += self._run(topic, data.slice(start, length), start, schema_id)
        return converted

    def _run(self, topic: str, rows: pa.Array, start: int, schema_id: int) -> Iterator[Converted]:
        """Rows of one schema, split where the message type changes."""
        import pyarrow as pa
        from google.protobuf.message import DecodeError

        what = self._registry.what(topic)
        form: MessageForm | None = None
        made: list[Any] = []
        for row, data in enumerate(rows.to_pylist()):
            if data is None:
                made.append(None)
                continue
            try:
                indexes, body = _read_indexes(data)
                with self._registry.translating(topic):
                    message_class, source = self._source(schema_id, indexes)
                message = message_class.FromString(data[body:])
                value = source.read(message)
            except (DataError, DecodeError, ValueError, OverflowError, IndexError) as error:
                raise DataError(f"{what} is not as its Protobuf schema says: {error}", rows=[start + row]) from error
            if form is not None and source.schema is not form.schema:
                yield Converted(form.schema, pa.array(made, form.schema.arrow_type))
                made = []
            form = source
            made.append(value)
        if form is None:
            yield Converted(None, pa.nulls(len(made), pa.string()))
        else:
            yield Converted(form.schema, pa.array(made, form.schema.arrow_type))

    def _source(self, schema_id: int, indexes: tuple[int, ...]) -> tuple[Any, MessageForm]:
        key = (schema_id, indexes)
        if key not in self._sources:
            from registry.formats.protobuf.schema import ProtobufSchema

            schema = self._registry.client.any_schema(schema_id)
            if not isinstance(schema, ProtobufSchema):
                raise DataError(f"schema {schema_id} of the registry is {schema.schema_type}, not PROTOBUF")
            name = schema.message_at(indexes)
            form = message_form(schema.message_descriptor(name), self._style, _field_meta(schema))
            if len(self._sources) >= self.config.cache_size:
                self._sources.clear()
            self._sources[key] = (schema.message_class(name), form)
        return self._sources[key]

    def close(self) -> None:
        self._registry.close()


def _indexes_in(schema: ProtobufSchema, name: str) -> list[int]:
    """The index path of a message by name; the first message if the schema has another name for it."""
    try:
        return schema.message_indexes(name)
    except KeyError:
        return [0]


def _field_meta(schema: ProtobufSchema) -> dict[str, dict[str, str]]:
    """The parameters in ``confluent.field_meta`` by the full name of the field."""
    from registry.formats.protobuf.elements import Message

    meta: dict[str, dict[str, str]] = {}

    def visit(messages: Sequence[Any], prefix: str) -> None:
        for message in messages:
            if not isinstance(message, Message):
                continue
            name = f"{prefix}{message.name}"
            fields = [*message.fields, *(oneof_field for oneof in message.oneofs for oneof_field in oneof.fields)]
            for oneof_field in fields:
                parameters = _parameters(oneof_field.options)
                if parameters:
                    meta[f"{name}.{oneof_field.name}"] = parameters
            visit(message.types, f"{name}.")

    package = schema.file.package
    visit(schema.file.messages, f"{package}." if package else "")
    return meta


def _parameters(options: Sequence[Any]) -> dict[str, str]:
    for option in options:
        if option.name == "confluent.field_meta" and isinstance(option.value, Mapping):
            entries = option.value.get("params") or []
            entries = entries if isinstance(entries, list) else [entries]
            return {
                str(e["key"]): str(e["value"]) for e in entries if isinstance(e, Mapping) and {"key", "value"} <= set(e)
            }
        if option.name == "confluent.field_meta" and getattr(option.value, "name", "") == "params":
            return _parameters([type(option)("confluent.field_meta", "map", {"params": option.value.value})])
    return {}


def _written_indexes(indexes: Sequence[int]) -> bytes:
    """The count and each index as zigzag numbers; a single zero byte means the first message."""
    if list(indexes) == [0]:
        return b"\0"
    return b"".join(_varint(number << 1) for number in (len(indexes), *indexes))


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 0x7F:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _read_indexes(data: bytes) -> tuple[tuple[int, ...], int]:
    """The message indexes of a framed message, and the start of the message."""
    count, at = _number(data, HEADER_SIZE)
    if count == 0:
        return (0,), at
    if not 0 < count <= len(data) - at:
        raise DataError(f"{count} message indexes in {len(data)} bytes")
    indexes = []
    for _ in range(count):
        index, at = _number(data, at)
        indexes.append(index)
    return tuple(indexes), at


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    for position in range(at, min(at + _VARINT_BYTES, len(data))):
        value |= (data[position] & 0x7F) << shift
        if data[position] < 0x80:
            return (value >> 1) ^ -(value & 1), position + 1
        shift += 7
    raise DataError("message indexes are cut off")
