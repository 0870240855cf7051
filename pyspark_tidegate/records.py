"""Records of an offset range as Arrow batches with Spark's columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from broker.client.blocking import BatchConsumer
from pyspark_tidegate.offsets import OffsetRange, config_of
from pyspark_tidegate.options import Options
from pyspark_tidegate.types import converted, projected, spark_arrow
from registry.client import AvroSchema, NotFound, RegistryClient
from registry.serde import Origin, SerializationError, arrow_type, decode_columns
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from broker.client.columns import Columns

__all__ = ["HEADERS", "Side", "arrow_schema", "read", "reader_schema"]

HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_MOST_BYTES: Final = 16 << 20
"""Of one fetch."""
_WAIT_MS: Final = 500
_PATIENCE: Final = 120
"""So many fetches in a row without a record or progress, a minute, are an error: the range ends before the log's end."""


class Side:
    """Keys or values of the records: as bytes, as text, or decoded into the reader's schema."""

    def __init__(self, format: str, schema: str, topic: str) -> None:  # noqa: A002 - the option's own name
        self.format, self.schema, self._topic = format, schema, topic

    @property
    def type(self) -> pa.DataType:
        if self.format == "avro":
            return spark_arrow(arrow_type(AvroSchema.parse(self.schema, strict=False)))
        return pa.string() if self.format == "string" else pa.binary()


def reader_schema(options: Options, topics: list[str], side: str) -> str:
    """The Avro schema that keys or values are read as: that of the option, else the newest of the topics' subject.

    Raises UsageError where topics have different ones: ``value.schema`` then says which.
    """
    given = options.value_schema if side == "value" else options.key_schema
    if given:
        return given
    with RegistryClient.from_properties(options.registry) as client:
        try:
            schemas = {topic: client.version(f"{topic}-{side}") for topic in topics}
        except NotFound as error:
            missing = next(topic for topic in topics if f"{topic}-{side}" not in client.subjects())
            raise UsageError(
                f"the registry has no subject {missing}-{side}: the option {side}.schema says as what {missing} is read, or "
                f"{side}.format=binary"
            ) from error
        kinds = {schema.schema_type for schema in schemas.values()} - {"AVRO"}
        if kinds:
            raise UsageError(
                f"the subject of {', '.join(schemas)} is {kinds.pop()}: {side}.format avro reads Avro only"
            )
        parsed = {topic: client.parsed(schema).resolved for topic, schema in schemas.items()}
    if len(set(parsed.values())) != 1:
        named = ", ".join(f"{topic}-{side}" for topic in parsed) or "no topic"
        raise UsageError(f"{named} have different schemas: the option {side}.schema says as which one they are read")
    return next(iter(parsed.values()))


def arrow_schema(options: Options, key: Side, value: Side) -> pa.Schema:
    """Columns of the data source: those of Spark's Kafka source, but for timestampType; ``error`` with value.errors=null."""
    fields = [
        pa.field("key", key.type),
        pa.field("value", value.type),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
    ]
    if options.include_headers:
        fields.append(pa.field("headers", HEADERS))
    if options.keep_errors:
        fields += [pa.field("error", pa.string()), pa.field("bytes", pa.binary())]
    return pa.schema(fields)


def read(options: Options, key: Side, value: Side, part: OffsetRange, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The records of the range, a batch for each that a fetch brought, with the columns of ``target``. Raises SerializationError that names topic, partition,
    offset and field of the first value that can't be decoded, and UsageError where the log lacks offsets of the range."""
    decoder = _Decoder(options, target, key, value)
    config = config_of(options).with_properties({"auto.offset.reset": "none", "enable.auto.commit": "false"})
    position, idle = part.start, 0
    with decoder, BatchConsumer(config) as consumer:
        consumer.assign([(part.topic, part.partition)])
        consumer.seek((part.topic, part.partition), part.start)
        while position < part.stop:
            before = position
            for fetched in consumer.fetch(_WAIT_MS, _MOST_BYTES):
                position = max(position, fetched.next_offset)
                columns = fetched.columns()
                if len(columns):
                    yield from decoder.batches(columns, part)
            idle = idle + 1 if position == before else 0
            if idle > _PATIENCE:
                raise UsageError(
                    f"{part.topic}-{part.partition} has no record or end after offset {position}, and {part.stop} is to come"
                )


class _Decoder:
    def __init__(self, options: Options, target: pa.Schema, key: Side, value: Side) -> None:
        self._options, self._target, self._key, self._value = options, target, key, value
        self._names = arrow_schema(options, key, value).names
        needed = "avro" in (key.format, value.format)
        self._client = RegistryClient.from_properties(options.registry) if needed else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()

    def batches(self, columns: Columns, part: OffsetRange) -> Iterator[pa.RecordBatch]:
        inside = pc.and_(pc.greater_equal(columns.offsets, part.start), pc.less(columns.offsets, part.stop))
        rows = pc.indices_nonzero(inside)
        if not len(rows):
            return

        def chosen(column: pa.Array) -> pa.Array:
            return column if len(rows) == len(column) else column.take(rows)

        offsets, values = chosen(columns.offsets), chosen(columns.values)
        made, errors = self._side(self._value, values, offsets, part, keep=self._options.keep_errors)
        keys, _ = self._side(self._key, chosen(columns.keys), offsets, part, keep=False)
        count = len(offsets)
        arrays: list[Any] = [
            keys,
            made,
            pa.repeat(pa.scalar(part.topic), count),
            pa.repeat(pa.scalar(part.partition, pa.int32()), count),
            offsets,
            chosen(columns.timestamps_ms).cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC")),
        ]
        if self._options.include_headers:
            headers = columns.headers
            arrays.append(
                pa.nulls(count, HEADERS) if headers is None else _null_if_empty(chosen(headers).cast(HEADERS))
            )
        if self._options.keep_errors:
            failed = pc.is_valid(errors)
            arrays += [errors, pc.if_else(failed, values, pa.scalar(None, pa.binary()))]
        by_name = dict(zip(self._names, arrays, strict=True))
        yield pa.RecordBatch.from_arrays(
            [projected(by_name[field.name], field.type) for field in self._target], names=self._target.names
        )

    def _side(
        self, side: Side, column: pa.Array, offsets: pa.Array, part: OffsetRange, *, keep: bool
    ) -> tuple[pa.Array, pa.Array]:
        """The column in Spark's type, and for each row the reason why it could not be decoded."""
        none = pa.nulls(len(column), pa.string())
        if side.format == "binary":
            return column.cast(pa.binary()), none
        if side.format == "string":
            return _text(column, offsets, part), none
        assert self._client is not None
        reader = AvroSchema.parse(side.schema, strict=False)
        try:
            return _joined(decode_columns(column, self._client.schema, reader), side.type, len(column)), none
        except SerializationError as error:
            if not keep:
                row = error.row
                error.located(Origin(part.topic, part.partition, offsets[row].as_py() if row is not None else None))
                raise
        return self._one_by_one(side, reader, column)

    def _one_by_one(self, side: Side, reader: AvroSchema, column: pa.Array) -> tuple[pa.Array, pa.Array]:
        """After a batch with a value that can't be decoded: each row by itself."""
        assert self._client is not None
        pieces: list[pa.Array] = []
        reasons: list[str | None] = []
        for row in range(len(column)):
            try:
                pieces.append(_joined(decode_columns(column.slice(row, 1), self._client.schema, reader), side.type, 1))
                reasons.append(None)
            except SerializationError as error:
                pieces.append(pa.nulls(1, side.type))
                reasons.append(str(error))
        return pa.concat_arrays(pieces), pa.array(reasons, pa.string())


def _null_if_empty(headers: pa.Array) -> pa.Array:
    """As Spark's own source has records without headers."""
    return pc.if_else(pc.equal(pc.list_value_length(headers), 0), pa.scalar(None, headers.type), headers)


def _joined(runs: list[Any], type_: pa.DataType, rows: int) -> pa.Array:
    pieces = [
        pa.nulls(run.length, type_) if pa.types.is_null(run.array.type) else converted(run.array, type_) for run in runs
    ]
    if not pieces:
        return pa.nulls(rows, type_)
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


def _text(column: pa.Array, offsets: pa.Array, part: OffsetRange) -> pa.Array:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        pass
    for row, data in enumerate(column.to_pylist()):
        try:
            (data or b"").decode()
        except UnicodeDecodeError as error:
            where = f"{part.topic}-{part.partition} offset {offsets[row].as_py()}"
            raise UsageError(
                f"{where} is not UTF-8: {error.reason} at byte {error.start} (format binary reads any bytes)"
            ) from None
    return column.cast(pa.string())
