"""Rows of Spark as keys and values of records: which columns become what, and the schemas that they are written with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from broker.client.columns import HEADERS_TYPE
from pyspark_tidegate.types import spark_arrow
from pyspark_tidegate.write_formats import WRITTEN, WrittenFormat
from pyspark_tidegate.write_options import WriteOptions
from registry.client import Incompatible, NotFound, RegistryClient
from registry.formats.json_schema.schema import JsonSchema
from registry.serde import SerializationError, encode_json, subject_name
from tidegate.kit.errors import UsageError

__all__ = ["Encoder", "Layout", "Outgoing", "WriteSchema", "layout_of", "write_schema"]

_RECORD: Final = ("key", "value", "topic", "partition", "headers", "timestamp")
_OF_A_READ: Final = ("offset", "timestampType")
"""Columns of a DataFrame that was read from a topic; a write passes them over, as Spark's sink does."""


@dataclass(frozen=True)
class Layout:
    """The columns of a DataFrame by their use in a record; None: the record has none."""

    value: pa.DataType
    whole_row: bool
    """Whether all columns are fields of the value; otherwise the column ``value`` is."""
    key: pa.DataType | None
    topic: bool
    partition: bool
    headers: bool
    timestamp: bool


class WriteSchema(NamedTuple):
    """The schema of keys or values in a topic, registered."""

    text: str
    id: int
    references: tuple[tuple[str, str], ...] = ()
    """Names and texts of the schemas that it refers to."""


class Outgoing(NamedTuple):
    """Records of one topic, in columns."""

    topic: str
    keys: pa.Array | None
    values: pa.Array
    partitions: pa.Array | None
    timestamps_ms: pa.Array | None
    headers: pa.Array | None


def layout_of(options: WriteOptions, schema: pa.Schema) -> Layout:
    """The use of each column. Raises UsageError for columns and options that don't fit one another."""
    names = schema.names
    if "value" not in names:
        if options.value_format in ("binary", "string"):
            raise UsageError(
                f"value.format {options.value_format} needs a column value; the columns are {', '.join(names)} "
                "(value.format=avro, protobuf, json-schema and json make a record of all columns)"
            )
        return _with_topic(
            options,
            Layout(pa.struct(list(schema)), True, _key_of_fields(options, pa.struct(list(schema))), *[False] * 4),
        )
    strange = [name for name in names if name not in (*_RECORD, *_OF_A_READ)]
    if strange:
        raise UsageError(
            f"there is a column value, and the column {strange[0]} beside it has no use: records have {', '.join(_RECORD)} "
            "(put fields of the value into the column value, with struct())"
        )
    value = schema.field("value").type
    key = _key_of_fields(options, value)
    if key is not None and "key" in names:
        raise UsageError("there is a column key, and the option key.fields: the key is one of the two")
    if key is None and "key" in names:
        key = schema.field("key").type
    for side, type_, format_ in (("value", value, options.value_format), ("key", key, options.key_format)):
        if format_ == "binary" and type_ is not None and not _is_bytes(type_):
            raise UsageError(
                f"the {side} is {type_}: {side}.format binary takes binary and string, avro and json take any type"
            )
    extra = {name: name in names for name in ("topic", "partition", "headers", "timestamp")}
    if extra["headers"] and not _can_cast(schema.field("headers").type, HEADERS_TYPE):
        raise UsageError(
            f"the column headers is {schema.field('headers').type}: it must be array<struct<key: string, value: binary>>"
        )
    if extra["timestamp"] and not pa.types.is_timestamp(schema.field("timestamp").type):
        raise UsageError(f"the column timestamp is {schema.field('timestamp').type}: it must be a timestamp")
    return _with_topic(options, Layout(value, False, key, **extra))


def _with_topic(options: WriteOptions, layout: Layout) -> Layout:
    for format_, type_ in ((options.value_format, layout.value), (options.key_format, layout.key)):
        if format_ == "json" and type_ is not None:
            encode_json(pa.array([], type_))  # raises for a type that JSON lacks
    if not options.topic and not layout.topic:
        raise UsageError("no topic is given: set the option topic, or make a column topic beside the column value")
    return layout


def _key_of_fields(options: WriteOptions, value: pa.DataType) -> pa.DataType | None:
    if not options.key_fields:
        return None
    fields = []
    for name in options.key_fields:
        at = value.get_field_index(name) if pa.types.is_struct(value) else -1
        if at < 0:
            raise UsageError(f"the option key.fields names {name}, and the value is {value}")
        fields.append(value.field(at))
    return pa.struct(fields) if options.key_is_record else fields[0].type


def _is_bytes(type_: pa.DataType) -> bool:
    return type_ in (pa.binary(), pa.string(), pa.large_binary(), pa.large_string())


def _can_cast(type_: pa.DataType, target: pa.DataType) -> bool:
    try:
        pa.array([], type_).cast(target)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return False
    return True


def write_schema(
    options: WriteOptions, client: RegistryClient, topic: str, type_: pa.DataType, side: str
) -> WriteSchema:
    """The schema that values of a type are written with, and its id.

    The option's schema, else with use.latest.version the newest of the subject, else derived from the type. Registers it
    where that is allowed; otherwise it must be registered. Raises UsageError that names the subject.
    """
    text = options.value_schema if side == "value" else options.key_schema
    strategy = options.value_strategy if side == "value" else options.key_strategy
    message = options.value_message if side == "value" else options.key_message
    format_name = options.value_format if side == "value" else options.key_format
    format_ = WRITTEN[format_name]
    # Every member may be null: in Spark that changes with the query, and each change would be another schema, and other keys.
    derived = format_.parse(text, {}) if text else format_.derived(spark_arrow(type_), side.capitalize())
    subject = subject_name(topic, is_key=side == "key", schema=derived, by=strategy)
    try:
        if options.latest:
            newest = client.version(subject)
            if newest.schema_type != format_.schema_type:
                right = next(name for name, other in WRITTEN.items() if other.schema_type == newest.schema_type)
                raise UsageError(
                    f"the newest schema of the subject {subject} is of type {newest.schema_type}: {side}.format must be {right}, "
                    f"it is {format_name}"
                )
            schema, schema_id = client.any_parsed(newest), newest.id
        elif options.register:
            schema, schema_id = derived, client.register(subject, derived)
        else:
            schema, schema_id = derived, client.id_of(subject, derived)
    except NotFound as error:
        wish = "has no version" if options.latest else f"does not have the schema of the {side}, {derived.canonical}"
        raise UsageError(f"the subject {subject} {wish}: register it, or set auto.register.schemas=true") from error
    except Incompatible as error:
        raise UsageError(
            f"the schema of the {side} is not compatible with the subject {subject}: {error} (use.latest.version=true writes "
            "with the newest schema that the subject has)"
        ) from error
    try:
        lost = _lost(type_, format_.columns(schema, message))
        if lost:
            raise UsageError(
                f"the schema {schema_id} of the subject {subject} has no field {lost}, which the {side} has"
            )
        format_.encode(schema, pa.array([], type_), schema_id, message)
    except SerializationError as error:
        raise UsageError(f"the {side} does not fit the schema {schema_id} of the subject {subject}: {error}") from error
    # References of Avro schemas are written out in it.
    references = () if format_name == "avro" else tuple(getattr(schema, "references", {}).items())
    return WriteSchema(schema.resolved, schema_id, references)


def _lost(type_: pa.DataType, written: pa.DataType, path: str = "") -> str:
    """The first field of a type that another type lacks; empty: there is none."""
    if pa.types.is_struct(type_) and pa.types.is_struct(written):
        for field in (type_.field(i) for i in range(type_.num_fields)):
            here, at = f"{path}.{field.name}" if path else field.name, written.get_field_index(field.name)
            if at < 0:
                return here
            if lost := _lost(field.type, written.field(at).type, here):
                return lost
    if pa.types.is_list(type_) and pa.types.is_list(written):
        return _lost(type_.value_type, written.value_type, f"{path}[]")
    if pa.types.is_map(type_) and pa.types.is_map(written):
        return _lost(type_.item_type, written.item_type, f"{path}[]")
    return ""


class Encoder:
    """Makes records of batches of rows. A topic's schemas are asked for when its first row comes, unless they are known."""

    def __init__(
        self,
        options: WriteOptions,
        layout: Layout,
        known: dict[tuple[str, str], WriteSchema],
        client: RegistryClient | None,
    ) -> None:
        self._options, self._layout, self._client = options, layout, client
        self._known = dict(known)
        self._parsed: dict[tuple[str, str], tuple[Any, int]] = {}
        self._json = {
            side: JsonSchema.parse(text, strict=False) if text else None
            for side, text in (("value", options.value_schema), ("key", options.key_schema))
            if "json" in (options.value_format, options.key_format)
        }
        """The schemas that plain JSON is checked against."""

    def encode(self, batch: pa.RecordBatch) -> Iterator[Outgoing]:
        """Raises UnencodableValue with the row and the field of the first value that does not fit the schema."""
        layout = self._layout
        for topic, rows in self._by_topic(batch):
            value = rows.to_struct_array() if layout.whole_row else rows.column("value")
            yield Outgoing(
                topic,
                None if layout.key is None else self._side(topic, "key", self._key(rows, value)),
                self._side(topic, "value", value),
                rows.column("partition").cast(pa.int32()) if layout.partition else None,
                pc.cast(rows.column("timestamp"), pa.timestamp("ms"), safe=False).cast(pa.int64())
                if layout.timestamp
                else None,
                rows.column("headers").cast(HEADERS_TYPE) if layout.headers else None,
            )

    def _by_topic(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        if self._options.topic:
            yield self._options.topic, batch
            return
        names = batch.column("topic").cast(pa.string())
        if names.null_count:
            raise UsageError("a row has no topic: its column topic is null")
        for name in names.unique().to_pylist():
            yield name, batch.filter(pc.equal(names, name))

    def _key(self, rows: pa.RecordBatch, value: pa.Array) -> pa.Array:
        fields = self._options.key_fields
        if not fields:
            return rows.column("key")
        # Of a null value the fields are null too, which they need not be below it.
        columns = [pc.struct_field(value, name) for name in fields]
        return pa.StructArray.from_arrays(columns, names=list(fields)) if self._options.key_is_record else columns[0]

    def _side(self, topic: str, side: str, column: pa.Array) -> pa.Array:
        options = self._options
        name, message = (
            (options.value_format, options.value_message)
            if side == "value"
            else (options.key_format, options.key_message)
        )
        if name == "json":
            return encode_json(column, self._json[side])
        if name not in WRITTEN:
            return column if _is_bytes(column.type) else column.cast(pa.string())
        schema, schema_id = self._schema(topic, side, WRITTEN[name])
        return WRITTEN[name].encode(schema, column, schema_id, message)

    def _schema(self, topic: str, side: str, format_: WrittenFormat) -> tuple[Any, int]:
        parsed = self._parsed.get((topic, side))
        if parsed is None:
            known = self._known.get((topic, side))
            if known is None:
                assert self._client is not None
                type_ = self._layout.value if side == "value" else self._layout.key
                known = write_schema(self._options, self._client, topic, type_, side)
            parsed = self._parsed[topic, side] = format_.parse(known.text, dict(known.references)), known.id
        return parsed
