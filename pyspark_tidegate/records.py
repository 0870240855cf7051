"""Records of an offset range as Arrow batches with Spark's columns."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, Self

import pyarrow as pa
import pyarrow.compute as pc

from broker.client.blocking import BatchConsumer
from pyspark_tidegate.columns import Decode, Side, decode_each, decoder
from pyspark_tidegate.offsets import OffsetRange, config_of
from pyspark_tidegate.options import Options
from pyspark_tidegate.types import converted
from registry.client import RegistryClient
from registry.serde import Origin, SerializationError
from tidegate.kit.errors import RetriableError

if TYPE_CHECKING:
    from broker.client.columns import Columns

__all__ = ["HEADERS", "StalledRead", "arrow_schema", "read"]


class StalledRead(RetriableError):
    """No record came for too long; reading again may help."""


HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
_MOST_BYTES: Final = 16 << 20
"""The bytes of a fetch after which no more are added."""
_WAIT_MS: Final = 500


def arrow_schema(options: Options, key: Side, value: Side) -> pa.Schema:
    """Columns of the data source: those of Spark's Kafka source, but for timestampType.

    With value.errors=null they have ``error`` and ``bytes`` too.
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
    return pa.schema(fields)


def read(options: Options, key: Side, value: Side, part: OffsetRange, target: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The records of the range, a batch for each answer of the brokers, with the columns of ``target``.

    Raises SerializationError that names topic, partition, offset and field of the first value that can't be decoded, and
    StalledRead after ``kafkaConsumer.pollTimeoutMs`` without progress: the brokers are gone, or the log lacks offsets of
    the range. Brokers that come back earlier are read on. Records that the log deletes before they are read raise
    OffsetOutOfRange; with failOnDataLoss=false they are passed over.
    """
    reset = "none" if options.fail_on_data_loss else "earliest"
    config = config_of(options).with_properties({"auto.offset.reset": reset, "enable.auto.commit": "false"})
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
        self._names = arrow_schema(options, key, value).names
        needed = key.asks_registry or value.asks_registry
        self._client = RegistryClient.from_properties(options.registry) if needed else None
        self._key, self._value = decoder(key, self._client), decoder(value, self._client)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._client is not None:
            self._client.close()

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        part = self._part
        inside = pc.and_(pc.greater_equal(columns.offsets, part.start), pc.less(columns.offsets, part.stop))
        rows = pc.indices_nonzero(inside)
        if not len(rows):
            return

        def chosen(column: pa.Array) -> pa.Array:
            return column if len(rows) == len(column) else column.take(rows)

        offsets, values = chosen(columns.offsets), chosen(columns.values)
        reasons: list[str | None] = []
        if self._options.keep_errors:
            decoded, reasons = decode_each(self._value, values)
        else:
            decoded = self._all(self._value, values, offsets)
        count = len(offsets)
        arrays: list[Any] = [
            self._all(self._key, chosen(columns.keys), offsets),
            decoded,
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
            errors = pa.array(reasons, pa.string())
            arrays += [errors, pc.if_else(pc.is_valid(errors), values.cast(pa.binary()), pa.scalar(None, pa.binary()))]
        by_name = dict(zip(self._names, arrays, strict=True))
        yield pa.RecordBatch.from_arrays(
            [converted(by_name[field.name], field.type) for field in self._target], names=self._target.names
        )

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


def _null_if_empty(headers: pa.Array) -> pa.Array:
    """As Spark's source has records without headers."""
    return pc.if_else(pc.equal(pc.list_value_length(headers), 0), pa.scalar(None, headers.type), headers)
