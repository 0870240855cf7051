"""Records of an offset range as Arrow batches with Spark's columns."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from broker.client.blocking import BatchConsumer
from pyspark_tidegate.columns import Decode, Side, decode_each, decoder
from pyspark_tidegate.dead_letters import DeadLetters
from pyspark_tidegate.offsets import OffsetRange, config_of
from pyspark_tidegate.options import Options
from pyspark_tidegate.types import converted
from registry.client import RegistryClient
from registry.serde import Origin, SerializationError
from tidegate.kit.errors import RetriableError, UsageError

if TYPE_CHECKING:
    from broker.client.columns import Columns

__all__ = ["HEADERS", "StalledRead", "arrow_schema", "read"]


class StalledRead(RetriableError):
    """No record came for too long; reading again may help."""


HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_SIDES: Final = ("key", "value")
_MOST_BYTES: Final = 16 << 20
"""The bytes of a fetch after which no more are added."""
_PARTITION_BYTES: Final = str(8 << 20)
"""The bytes of an answer, for a task reads a single partition. A million Avro records of 150 bytes cost 1.1 s of processor time
with it, and 1.3 s with the 1 MiB of consumers that read many (process_time around ``read``)."""
_WAIT_MS: Final = 500


def arrow_schema(options: Options, key: Side, value: Side) -> pa.Schema:
    """Columns of the data source: those of Spark's Kafka source, but for timestampType.

    With value.errors=null they have ``error`` and ``bytes`` too. The option ``columns`` chooses among them, and can have the
    fields of the value or the key in its place. Raises UsageError for one that there is not.
    """
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
    schema = pa.schema(fields)
    return pa.schema([field for field, _ in _chosen(options.columns, schema)]) if options.columns else schema


def _chosen(names: Iterable[str], schema: pa.Schema) -> Iterator[tuple[pa.Field, str | None]]:
    """The columns of the option ``columns``, each with the side (``key`` or ``value``) of which it is a field, or None."""
    taken: dict[str, str] = {}
    for name in names:
        whole = name.removesuffix(".*")
        if whole not in schema.names or (whole != name and whole not in _SIDES):
            there = [*schema.names, *(f"{side}.*" for side in _SIDES)]
            raise UsageError(f"the option columns names {name}: the columns are {', '.join(there)}")
        type_ = schema.field(whole).type
        if whole != name and not pa.types.is_struct(type_):
            raise UsageError(f"the option columns has {name}, and the {whole} is {type_}, which has no fields")
        members = [schema.field(name)] if whole == name else [type_.field(i) for i in range(type_.num_fields)]
        for member in members:
            if (other := taken.setdefault(member.name.lower(), name)) != name:
                raise UsageError(
                    f"the option columns has {other} and {name}, and both give a column {member.name}: name one of them"
                )
            yield member, None if whole == name else whole


def read(options: Options, key: Side, value: Side, part: OffsetRange, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The records of the range, a batch for each answer of the brokers, with the columns of ``target``.

    Raises SerializationError that names topic, partition, offset and field of the first value that can't be decoded, and
    StalledRead after ``kafkaConsumer.pollTimeoutMs`` without progress: the brokers are gone, or the log lacks offsets of
    the range. Brokers that come back earlier are read on. Records that the log deletes before they are read raise
    OffsetOutOfRange; with failOnDataLoss=false they are passed over.
    """
    reset = "none" if options.fail_on_data_loss else "earliest"
    config = config_of(options).with_properties(
        {
            "max.partition.fetch.bytes": options.kafka.get("max.partition.fetch.bytes", _PARTITION_BYTES),
            "auto.offset.reset": reset,
            "enable.auto.commit": "false",
        }
    )
    position, progress = part.start, time.monotonic()
    with _Decoder(options, target, key, value, part) as decoder, BatchConsumer(config) as consumer:
        consumer.assign([(part.topic, part.partition)])
        consumer.seek((part.topic, part.partition), part.start)
        while position < part.stop:
            before = position
            for fetched in consumer.fetch(_WAIT_MS, _MOST_BYTES):
                position = max(position, fetched.next_offset)
                columns = fetched.columns()
                if len(columns):
                    yield from decoder.batches(columns)
            if position > before:
                progress = time.monotonic()  # after the batches were taken, which may have lasted
            elif (time.monotonic() - progress) * 1000 > options.patience_ms:
                raise StalledRead(
                    f"{part.topic}-{part.partition}: nothing came from {config.bootstrap_servers} for {options.patience_ms} ms after "
                    f"offset {position}, and the read ends at {part.stop}: no broker answers, or the log has no such offsets "
                    "(kafkaConsumer.pollTimeoutMs is the longest wait)"
                )


class _Decoder:
    """Decodes the records of a range; what all batches share is made once."""

    def __init__(self, options: Options, target: pa.Schema, key: Side, value: Side, part: OffsetRange) -> None:
        self._options, self._target, self._part = options, target, part
        self._dead_letters = DeadLetters(options, part) if options.dead_letter_topic else None
        needed = key.asks_registry or value.asks_registry
        self._client = RegistryClient.from_properties(options.registry) if needed else None
        self._key, self._value = decoder(key, self._client), decoder(value, self._client)
        whole = arrow_schema(dataclasses.replace(options, columns=()), key, value)
        self._side_of = {field.name: side for field, side in _chosen(options.columns, whole) if side is not None}
        """Of the columns that are fields of a side, that side."""

    def __enter__(self) -> Self:
        if self._dead_letters is not None:
            self._dead_letters.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()
        if self._dead_letters is not None:
            self._dead_letters.__exit__()

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        first, stop = np.searchsorted(columns.offsets.to_numpy(), [self._part.start, self._part.stop]).tolist()
        chosen = _each(columns, lambda array: array.slice(first, stop - first))
        sides, reasons = dict[str, pa.Array](), list[str | None]()
        if self._options.keep_errors:
            sides["value"], reasons = decode_each(self._value, chosen.values)
        elif self._dead_letters is not None:
            value, reasons = decode_each(self._value, chosen.values)
            self._dead_letters.write(chosen, reasons)
            good = pa.array([row for row, reason in enumerate(reasons) if reason is None], pa.int64())
            chosen, sides["value"] = _each(chosen, lambda array: array.take(good)), value.take(good)
        if len(chosen):
            arrays = [converted(self._column(field.name, chosen, sides, reasons), field.type) for field in self._target]
            yield pa.RecordBatch.from_arrays(arrays, names=self._target.names)

    def _column(self, name: str, records: Columns, sides: dict[str, pa.Array], reasons: list[str | None]) -> pa.Array:
        """A column of the source; only those that the job asks for are made. ``sides`` are the keys and values decoded so far."""
        if (side := self._side_of.get(name)) is not None:
            return pc.struct_field(self._side(side, records, sides), name)
        if name in _SIDES:
            return self._side(name, records, sides)
        if name == "topic":
            return pa.repeat(pa.scalar(self._part.topic), len(records))
        if name == "partition":
            return pa.repeat(pa.scalar(self._part.partition, pa.int32()), len(records))
        if name == "offset":
            return records.offsets
        if name == "timestamp":
            return records.timestamps_ms.cast(pa.timestamp("ms", "UTC")).cast(pa.timestamp("us", "UTC"))
        if name == "headers":
            headers = records.headers
            return pa.nulls(len(records), HEADERS) if headers is None else _null_if_empty(headers.cast(HEADERS))
        errors = pa.array(reasons, pa.string())
        if name == "error":
            return errors
        return pc.if_else(pc.is_valid(errors), records.values.cast(pa.binary()), pa.scalar(None, pa.binary()))

    def _side(self, side: str, records: Columns, sides: dict[str, pa.Array]) -> pa.Array:
        if side not in sides:
            decode, column = (self._key, records.keys) if side == "key" else (self._value, records.values)
            sides[side] = self._all(decode, column, records.offsets)
        return sides[side]

    def _all(self, decode: Decode, column: pa.Array, offsets: pa.Array) -> pa.Array:
        """The column decoded; the error of a value that can't be names its record."""
        try:
            return decode(column)
        except SerializationError as error:
            failed = error
        if failed.row is None:
            _, reasons = decode_each(decode, column)
            failed.row = next((row for row, reason in enumerate(reasons) if reason is not None), 0)
        raise failed.located(Origin(self._part.topic, self._part.partition, offsets[failed.row].as_py())) from None


def _each(columns: Columns, change: Callable[[pa.Array], pa.Array]) -> Columns:
    """The columns, each changed."""
    names = (field.name for field in dataclasses.fields(columns))
    return dataclasses.replace(
        columns, **{name: None if (array := getattr(columns, name)) is None else change(array) for name in names}
    )


def _null_if_empty(headers: pa.Array) -> pa.Array:
    """As Spark's source has records without headers."""
    return pc.if_else(pc.equal(pc.list_value_length(headers), 0), pa.scalar(None, headers.type), headers)
