"""Debezium's CloudEventsConverter: change events in CloudEvents' structured mode, as JSON or Avro.

Source: debezium.io, "Exporting CloudEvents", and recorded output of Debezium 3.5's class (``RecordCloudEvents.java``).
"""

from __future__ import annotations

import base64
import binascii
import datetime as dt
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from connect.api import (
    Converted,
    Converter,
    ConverterContext,
    DataError,
    Field,
    Problem,
    Schema,
    SchemaType,
    config,
    family,
    key,
    one_of,
)
from connect.api.names import adjuster
from connect.converters.apicurio import ApicurioAvroConverterConfig
from connect.converters.avro import AvroConverter, AvroConverterConfig
from connect.converters.json import JsonConfig, JsonConverter
from connect.converters.registry_schemas import HEADER_SIZE
from connect.data.defaults import with_default
from connect.data.json_text import json_texts
from connect.data.structs import struct_of
from tidegate.kit.config import parse, validate
from tidegate.kit.logs import get_logger

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["CloudEventsConfig", "CloudEventsConverter"]

logger = get_logger(__name__)

_TYPES: Final = one_of("json", "avro", ignore_case=True)
_MEMBERS: Final = ("id", "source", "specversion", "type")
"""The mandatory attributes of a CloudEvent."""
_SUFFIX: Final = "CloudEvents.Envelope"
_TEXT: Final = Schema(SchemaType.STRING)
_MEDIA_TYPES: Final = {"json": "application/json", "avro": "application/avro"}
_TRANSACTION: Final = ("id", "total_order", "data_collection_order")
_SMALL_NUMBERS: Final = (SchemaType.INT8, SchemaType.INT16, SchemaType.INT32)
_SOURCES: Final = {"id", "type", "traceparent", "dataSchemaName"}
_EPOCH: Final = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


class _Maker(NamedTuple):
    """The parts that depend on the connector of an event."""

    id_fields: tuple[str, ...]
    """Fields of ``source`` that form the event's id, after the connector's name."""
    data: tuple[str, ...]
    """Fields of the envelope that form the event's data; empty means all."""


_MAKERS: Final = {
    "postgresql": _Maker(("lsn", "txId", "sequence"), ("before", "after")),
    "mysql": _Maker(("file", "pos"), ("before", "after")),
    "mariadb": _Maker(("file", "pos"), ()),
}


@config
class CloudEventsConfig:
    """Keys of CloudEventsConverter."""

    serializer: str = key(
        "serializer.type", default="json", check=_TYPES, importance="high", doc="The format of events: json or avro."
    )
    data_serializer: str = key(
        "data.serializer.type",
        default="json",
        check=_TYPES,
        importance="high",
        doc="The format of an event's data: json or avro. Data in Avro is bytes, base64 in events that are JSON.",
    )
    json: dict[str, str] = family("json.", doc="Keys of JsonConverter for events and data that are JSON.")
    avro: dict[str, str] = family(
        "avro.", doc="Keys of AvroConverter for events and data that are Avro; avro.schema.registry.url is needed."
    )
    tracing: bool = key(
        "opentelemetry.tracing.attributes.enable",
        default=False,
        importance="high",
        doc="Refused if true: a converter here does not see the headers that hold the trace.",
    )
    extensions: bool = key(
        "extension.attributes.enable",
        default=True,
        importance="high",
        doc="Whether the operation, the fields of source and those of the transaction become attributes (iodebezium...).",
    )
    adjustment: str = key(
        "schema.name.adjustment.mode",
        default="avro",
        check=one_of("none", "avro", "avro_unicode", ignore_case=True),
        importance="low",
        doc="How the name of the event's schema is made to fit Avro's rules: none, avro or avro_unicode.",
    )
    schema_name: str | None = key(
        "schema.cloudevents.name",
        default=None,
        importance="low",
        doc="The name of the event's schema. By default it is made of the names of the connector and the database.",
    )
    data_name_from_header: bool = key(
        "schema.data.name.source.header.enable",
        default=False,
        importance="low",
        doc="Whether the name of the data's schema comes from a header; refused where metadata.source says so too.",
    )
    metadata: list[str] = key(
        "metadata.source",
        default=["value", "id:generate", "type:generate", "traceparent:header", "dataSchemaName:generate"],
        importance="high",
        doc="Where metadata come from: value, then id, type, traceparent and dataSchemaName, each with generate. "
        "header is refused where it has an effect.",
    )

    def problems(self) -> Iterator[Problem]:
        yield from self._nested("json.", JsonConfig, self.json)
        yield from self._metadata_problems()
        if self.tracing:
            yield Problem(
                "opentelemetry.tracing.attributes.enable",
                "traceparent is in a header of the record, which a converter here does not see: set it to false",
            )
        if self.serializer.lower() == "avro" and self.data_serializer.lower() == "json":
            yield Problem(
                "data.serializer.type",
                "Cannot use 'application/json' data content type within Avro events: set data.serializer.type=avro",
            )
        elif self.is_avro:
            yield from self._nested("avro.", ApicurioAvroConverterConfig, self.avro)
            if not self.avro.get("schema.registry.url"):
                yield Problem(
                    "avro.schema.registry.url",
                    "Need URL(s) for schema registry instances for CloudEvents when using Apache Avro",
                )

    @property
    def is_avro(self) -> bool:
        """Whether a part of events is Avro."""
        return "avro" in (self.serializer.lower(), self.data_serializer.lower())

    @staticmethod
    def _nested(prefix: str, cls: type, values: dict[str, str]) -> Iterator[Problem]:
        for result in validate(cls, values):
            name = result.key.name
            for error in result.errors:
                yield Problem(prefix + name, error.replace(f" {name}:", f" {prefix}{name}:"))

    def _metadata_problems(self) -> Iterator[Problem]:
        name = "metadata.source"
        first, *more = (item.lower() for item in self.metadata or [""])
        if first not in ("value", "header"):
            yield Problem(name, f"Global metadata source can't be {first!r}: it should be value")
        sources = dict.fromkeys(_SOURCES, first)
        for item, written in zip(more, self.metadata[1:], strict=True):
            member, source = written.partition(":")[0], item.partition(":")[2]
            if member not in _SOURCES:
                yield Problem(name, f"Field `{member}` is not allowed to set custom source")
            elif source not in ("header", "generate"):
                yield Problem(name, f"Field source `{source}` is not valid: it should be generate")
            sources[member] = source
        named = [member for member in ("id", "type") if sources[member] == "header"]
        if self.data_name_from_header and sources["dataSchemaName"] == "header":
            named.append("dataSchemaName")
        if first == "header" or named:
            what = ", ".join(named) if first != "header" else "all metadata"
            yield Problem(
                name,
                f"{what} would come from headers of the record, which a converter here does not see: use value and generate",
            )


class CloudEventsConverter(Converter):
    """A record that is not a change event is written as empty bytes, as in Debezium."""

    config_class = CloudEventsConfig
    config: CloudEventsConfig

    def __init__(self, config: Any, context: ConverterContext) -> None:
        super().__init__(config, context)
        settings = self.config
        self._form, self._data_form = settings.serializer.lower(), settings.data_serializer.lower()
        self._with_schemas = settings.json.get("schemas.enable", "true").strip().lower() == "true"
        self._json = JsonConverter(parse(JsonConfig, {**settings.json, "schemas.enable": "false"}), context)
        self._json_data = JsonConverter(parse(JsonConfig, settings.json), context)
        self._avro = self._avro_converter() if settings.is_avro else None
        self._adjusted = adjuster(settings.adjustment.lower())
        self._warned = False

    def _avro_converter(self) -> Converter:
        # The original writes keys like values: one converter serves both sides.
        context = ConverterContext(is_key=False, connector=self.context.connector, rehearsals=self.context.rehearsals)
        return AvroConverter(parse(AvroConverterConfig, self.config.avro), context)

    # -- writing

    def from_connect(self, topic: str, schema: Schema | None, values: pa.Array) -> pa.Array:
        import pyarrow as pa

        if values.null_count == len(values):
            return pa.nulls(len(values), pa.binary())
        if schema is None or schema.type is not SchemaType.STRUCT or not (schema.name or "").endswith("Envelope"):
            if not self._warned:
                self._warned = True
                logger.warning("records that are no change events are written as tombstones", topic=topic)
            return pa.nulls(len(values), pa.binary())
        events = _Events(schema, values)
        written = [
            self._written(topic, events.part(start, end), origin)
            if origin is not None
            else pa.nulls(end - start, pa.binary())
            for origin, start, end in events.runs()
        ]
        return pa.concat_arrays(written)

    def _written(self, topic: str, events: _Events, origin: _Origin) -> pa.Array:
        import pyarrow as pa

        maker = _MAKERS.get(origin.connector)
        if maker is None:
            known = ", ".join(_MAKERS)
            raise DataError(
                f'No usable CloudEvents converters for connector type "{origin.connector}"; there are: {known}'
            )
        members = events.members(origin, maker, _MEDIA_TYPES[self._data_form])
        data_schema, data = events.data(origin, maker)
        extensions = events.extensions() if self.config.extensions else []
        name = self._adjusted(self.config.schema_name or f"{origin.name}.{origin.database}.{_SUFFIX}")
        if self._data_form == "json":
            return self._written_json(topic, name, [*members, *extensions], data_schema, data)
        assert self._avro is not None
        data_topic = f"{topic}-data" if self._form == "avro" else topic
        encoded = self._avro.from_connect(data_topic, data_schema, data)
        ids = [int.from_bytes(value[1:HEADER_SIZE]) for value in encoded.to_pylist()]
        # Consumers must not see a user and a password in the address.
        base = re.sub(r"//[^/@,]*@", "//", self.config.avro["schema.registry.url"])
        uris = pa.array([f"{base}/schemas/ids/{schema_id}" for schema_id in ids], pa.string())
        parts = [*members, _Part(Field("dataschema", _TEXT), uris), *extensions]
        parts.append(_Part(Field("data", Schema(SchemaType.BYTES)), encoded))
        event, column = _struct(name, parts)
        return (self._avro if self._form == "avro" else self._json).from_connect(topic, event, column)

    def _written_json(
        self, topic: str, name: str, parts: Sequence[_Part], data_schema: Schema, data: pa.Array
    ) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        event, column = _struct(name, parts)
        around = self._json.from_connect(topic, event, column).cast(pa.string())
        inside = (self._json_data if self._with_schemas else self._json).from_connect(topic, data_schema, data)
        begin = pc.utf8_slice_codeunits(around, 0, -1)
        return pc.binary_join_element_wise(begin, ',"data":', inside.cast(pa.string()), "}", "").cast(pa.binary())

    # -- reading

    def to_connect(self, topic: str, data: pa.Array) -> Sequence[Converted]:
        if self._form == "json":
            return [self._read_json(topic, data)]
        assert self._avro is not None
        converted: list[Converted] = []
        for run in self._avro.to_connect(topic, data):
            converted += self._read_avro(topic, run)
        return converted

    def _read_json(self, topic: str, data: pa.Array) -> Converted:
        import pyarrow as pa

        texts = []
        for row, raw in enumerate(data.to_pylist()):
            try:
                texts.append(None if raw is None else self._read_event(topic, raw))
            except DataError as error:
                raise DataError(str(error), rows=[row]) from error
        return Converted(None, pa.array(texts, pa.string()))

    def _read_event(self, topic: str, raw: bytes) -> str:
        try:
            event = orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise DataError(f"a record of {topic} is not JSON: {error}") from error
        _check_members(event, event.keys() if isinstance(event, dict) else (), topic)
        if "data" not in event:
            raise DataError(f"a CloudEvent of {topic} has no data")
        data = event["data"]
        if self._data_form == "avro":
            data = self._read_avro_data(topic, data)
        elif self._with_schemas:
            data = orjson.Fragment(self._read_json_data(topic, orjson.dumps(data)))
        return orjson.dumps({**event, "data": data}).decode()

    def _read_json_data(self, topic: str, raw: bytes) -> str:
        import pyarrow as pa

        (run,) = self._json_data.to_connect(topic, pa.array([raw], pa.binary()))
        return _payload(run)

    def _read_avro_data(self, topic: str, data: Any) -> Any:
        import pyarrow as pa

        assert self._avro is not None
        try:
            raw = base64.b64decode(data, validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise DataError(f"the data of a CloudEvent of {topic} should be base64 of Avro") from None
        (run,) = self._avro.to_connect(topic, pa.array([raw], pa.binary()))
        return orjson.Fragment(_payload(run))

    def _read_avro(self, topic: str, run: Converted) -> Iterator[Converted]:
        assert self._avro is not None
        schema = run.schema
        if schema is None:
            yield run
            return
        name = self.config.schema_name
        is_event = schema.name == name if name else (schema.name or "").endswith(_SUFFIX)
        _check_members(schema.name, schema.field_names if is_event else (), topic)
        data_index = schema.field_names.index("data") if "data" in schema.field_names else -1
        if data_index < 0 or schema.fields[data_index].schema.type is not SchemaType.BYTES:
            raise DataError(f"a CloudEvent of {topic} has no data that is bytes")
        start = 0
        for part in self._avro.to_connect(f"{topic}-data", run.values.field(data_index)):
            rows = run.values.slice(start, len(part.values))
            start += len(part.values)
            columns = [
                part.values if i == data_index else rows.field(i)  # the data instead of their bytes
                for i in range(len(schema.fields))
            ]
            inner = part.schema or Schema(SchemaType.STRING, optional=True)
            fields = [Field("data", inner) if i == data_index else field for i, field in enumerate(schema.fields)]
            made = Schema.struct(
                fields, name=schema.name, version=schema.version, doc=schema.doc, parameters=schema.parameters
            )
            yield Converted(made, struct_of(made, columns, rows))

    def close(self) -> None:
        if self._avro is not None:
            self._avro.close()


class _Part(NamedTuple):
    """A field of an event with its column."""

    field: Field
    column: pa.Array


class _Origin(NamedTuple):
    """The origin of events."""

    connector: str
    name: str
    database: str


class _Events:
    """Change events of one schema."""

    def __init__(self, schema: Schema, values: pa.Array) -> None:
        self._schema, self._values = schema, values
        self._source_schema = schema.field("source").schema
        if self._source_schema.type is not SchemaType.STRUCT:
            raise DataError(f"source of {schema.name} is {self._source_schema.type.value}, and should be a struct")
        self._source = values.field(schema.field_names.index("source"))

    def part(self, start: int, end: int) -> _Events:
        return _Events(self._schema, self._values.slice(start, end - start))

    def runs(self) -> Iterator[tuple[_Origin | None, int, int]]:
        """Adjacent rows of one origin; None for rows without a value."""
        there = self._values.is_valid().to_pylist()
        rows = zip(there, *(self._of_source(name) for name in ("connector", "name", "db")), strict=True)
        origins = [_Origin(*(str(part) for part in parts)) if is_there else None for is_there, *parts in rows]
        start = 0
        for origin, members in itertools.groupby(origins):
            end = start + len(list(members))
            yield origin, start, end
            start = end

    def _of_source(self, name: str) -> list[Any]:
        schema, column = self._source_column(name)
        return ["null" if value is None else value for value in with_default(schema, column).to_pylist()]

    def _source_column(self, name: str) -> tuple[Schema, pa.Array]:
        schema = self._source_schema.field(name).schema
        return schema, self._source.field(self._source_schema.field_names.index(name))

    def members(self, origin: _Origin, maker: _Maker, media_type: str) -> list[_Part]:
        """The attributes of every CloudEvent of Debezium."""
        import pyarrow as pa

        rows = len(self._values)
        columns = [self._of_source(name) for name in maker.id_fields]
        ids = [
            ";".join([f"name:{origin.name}", *(f"{n}:{v}" for n, v in zip(maker.id_fields, row, strict=True))])
            for row in zip(*columns, strict=True)
        ]
        made: dict[str, Sequence[str]] = {
            "id": ids,
            "source": [f"/debezium/{origin.connector}/{origin.name}"] * rows,
            "specversion": ["1.0"] * rows,
            "type": [f"io.debezium.connector.{origin.connector}.DataChangeEvent"] * rows,
            "time": [_time(ms) for ms in self._of_source("ts_ms")],
            "datacontenttype": [media_type] * rows,
        }
        return [_Part(Field(name, _TEXT), pa.array(column, pa.string())) for name, column in made.items()]

    def extensions(self) -> Iterator[_Part]:
        """The operation, the fields of the source and those of the transaction, which are null outside of a
        transaction.
        """
        import pyarrow as pa

        op = self._values.field(self._schema.field_names.index("op"))
        yield _Part(Field(_attribute("op"), _TEXT), op)
        for member in self._source_schema.fields:
            schema, column = self._source_column(member.name)
            extension = _extension_schema(schema)
            yield _Part(
                Field(_attribute(member.name), extension), with_default(schema, column).cast(extension.arrow_type)
            )
        block = self._transaction()
        for name in _TRANSACTION:
            column = block.get(name, pa.nulls(len(self._values), pa.string()))
            yield _Part(Field(_attribute(f"tx{name}"), _TEXT.as_optional()), column.cast(pa.string()))

    def _transaction(self) -> dict[str, pa.Array]:
        import pyarrow.compute as pc

        if "transaction" not in self._schema.field_names:
            return {}
        schema = self._schema.field("transaction").schema
        return {name: pc.struct_field(self._values, ["transaction", name]) for name in schema.field_names}

    def data(self, origin: _Origin, maker: _Maker) -> tuple[Schema, pa.Array]:
        names = maker.data or self._schema.field_names
        parts = [
            _Part(self._schema.field(name), self._values.field(self._schema.field_names.index(name))) for name in names
        ]
        return _struct(f"io.debezium.connector.{origin.connector}.Data", parts)


def _struct(name: str, parts: Iterable[_Part]) -> tuple[Schema, pa.Array]:
    fields, columns = zip(*parts, strict=True)
    schema = Schema.struct(fields, name=name)
    return schema, struct_of(schema, columns, None)


def _extension_schema(schema: Schema) -> Schema:
    """CloudEvents has no 64-bit numbers, so they become text."""
    if schema.type is SchemaType.BOOLEAN:
        kind = SchemaType.BOOLEAN
    elif schema.type in _SMALL_NUMBERS:
        kind = SchemaType.INT32
    elif schema.type in (SchemaType.STRING, SchemaType.INT64):
        kind = SchemaType.STRING
    else:
        raise DataError(
            f"Source field of type {schema.type.value.upper()} cannot be converted into CloudEvents extension attribute."
        )
    return Schema(kind, optional=schema.optional)


def _attribute(name: str) -> str:
    return "iodebezium" + re.sub(r"[^A-Za-z0-9]", "", name)


def _time(ms: Any) -> str:
    try:
        moment = _EPOCH + dt.timedelta(milliseconds=ms)
    except (OverflowError, TypeError):
        raise DataError(f"ts_ms of an event's source is {ms}, and should be a time in the years 1 to 9999") from None
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z".zfill(24)


def _check_members(event: Any, names: Iterable[str], topic: str) -> None:
    if missing := [name for name in _MEMBERS if name not in set(names)]:
        raise DataError(
            f"A deserialized record's value is not a CloudEvent: a record of {topic} has no {', '.join(missing)}; it is "
            f"{str(event)[:100]}"
        )


def _payload(run: Converted) -> str:
    """A value as JSON without a schema, decimals as numbers."""
    if run.schema is None:
        return run.values[0].as_py() or "null"
    return json_texts(run.schema, run.values, numeric_decimals=True)[0].as_py() or "null"
