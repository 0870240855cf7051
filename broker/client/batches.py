"""What travels between a program and a cluster: finished batches, fetched batches, single records, acknowledgements."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import crc32c
from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

from broker.errors import CorruptMessage, UnsupportedCompressionType, UnsupportedForMessageFormat
from broker.protocol.compression import Codec
from broker.protocol.records import ATTRIBUTES_AT, HEADER_SIZE, MAGIC, BatchHeader, crc_is_right

__all__ = [
    "Ack",
    "Batch",
    "EncodedBatch",
    "Fetched",
    "KafkaRecord",
    "Piece",
    "TopicPartition",
    "TransactionalProducer",
    "codec_of",
    "encode_records",
    "split",
]

_PRODUCER: Final = struct.Struct(">qhi")
_PRODUCER_AT: Final = 43
_CRC_AT: Final = 17
_TRANSACTIONAL: Final = 0x10

Piece: TypeAlias = bytes | bytearray | memoryview
"""A part of what is sent."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Ack(NamedTuple):
    """A broker has it: ``offset`` is the first one of a batch, -1 with acks=0 and where the broker no longer knows.

    ``timestamp_ms`` is the broker's under LogAppendTime, else the record's own, and -1 for a batch.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class TransactionalProducer(NamedTuple):
    """A producer as the transaction coordinator knows it. Whoever has this can commit what the producer has left open."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class KafkaRecord(NamedTuple):
    """One record as it lies in the log."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class EncodedBatch:
    """A finished record batch v2 but for the producer's id, epoch and sequence, which are stamped when it is sent.

    ``data`` has the whole header; base offset 0, no producer. What stands behind it is in ``records``, so that rows which
    are many bytes need not be copied. Neither must change once handed to a producer.
    """

    __slots__ = ("count", "data", "records")

    def __init__(self, data: bytearray, count: int, records: bytes | memoryview = b"") -> None:
        self.data, self.count, self.records = data, count, records

    def __len__(self) -> int:
        return len(self.data) + len(self.records)

    def stamp(self, producer_id: int, epoch: int, sequence: int, *, transactional: bool) -> bytes:
        """The bytes to send: the producer filled in and the CRC computed."""
        return b"".join(self.pieces(producer_id, epoch, sequence, transactional=transactional))

    def pieces(self, producer_id: int, epoch: int, sequence: int, *, transactional: bool) -> tuple[Piece, ...]:
        """The same in parts, none of them copied."""
        data = self.data
        _PRODUCER.pack_into(data, _PRODUCER_AT, producer_id, epoch, sequence)
        (attributes,) = struct.unpack_from(">h", data, ATTRIBUTES_AT)
        attributes = attributes | _TRANSACTIONAL if transactional else attributes & ~_TRANSACTIONAL
        struct.pack_into(">h", data, ATTRIBUTES_AT, attributes)
        with memoryview(data) as view, view[ATTRIBUTES_AT:] as checked:
            crc = crc32c.crc32c(checked)
        struct.pack_into(">I", data, _CRC_AT, crc32c.crc32c(self.records, crc))
        return data, self.records


def codec_of(name: str) -> Codec:
    """The codec that ``compression.type`` names; raises UnsupportedCompressionType."""
    try:
        return Codec[name.upper()]
    except KeyError:
        known = ", ".join(codec.name.lower() for codec in Codec)
        raise UnsupportedCompressionType(f"compression {name!r} is none of {known}") from None


def encode_records(
    records: Iterable[tuple[bytes | None, bytes | None, int]], *, compression: str = "none", max_bytes: int = 1_000_000
) -> list[EncodedBatch]:
    """Records (key, value, timestamp in ms) as finished batches in their order, each at most ``max_bytes`` long before
    compression; a record that alone is longer becomes a batch of its own, for the broker to judge.

    For rows that are Python objects already: ``broker.client.columns`` does the same for Arrow columns.
    """
    codec = codec_of(compression)
    batches: list[EncodedBatch] = []
    builder, count = None, 0
    for key, value, timestamp_ms in records:
        if builder is None or builder.append(count, timestamp_ms, key, value, []) is None:
            if builder is not None:
                batches.append(EncodedBatch(builder.build(), count))
            builder, count = DefaultRecordBatchBuilder(MAGIC, codec, 0, -1, -1, -1, max_bytes), 0
            builder.append(0, timestamp_ms, key, value, [])  # the first always fits
        count += 1
    if builder is not None:
        batches.append(EncodedBatch(builder.build(), count))
    return batches


class Batch(NamedTuple):
    """One undecoded record batch: its bytes, header included, and what the header says."""

    data: memoryview
    header: BatchHeader


def split(data: memoryview, *, check_crc: bool, where: str) -> Iterator[Batch]:
    """The whole batches at the start of ``data``; a piece of one at the end, as a fetch may bring it, is left out.

    Raises CorruptMessage, or UnsupportedForMessageFormat for formats before v2 (a broker since 0.11 converts them);
    ``where`` names the partition in the message.
    """
    position, end = 0, len(data)
    while end - position >= HEADER_SIZE:
        header = BatchHeader.parse(data, position)
        if header.magic != MAGIC:
            raise UnsupportedForMessageFormat(
                f"{where}: the batch at offset {header.base_offset} has format {header.magic}, only {MAGIC} can be read"
            )
        if header.size < HEADER_SIZE or header.last_offset_delta < 0:
            raise CorruptMessage(f"{where}: the batch at offset {header.base_offset} says it has {header.length} bytes")
        if position + header.size > end:
            return
        if check_crc and not crc_is_right(data, position, header):
            raise CorruptMessage(f"{where}: the batch at offset {header.base_offset} does not have the CRC it says")
        yield Batch(data[position : position + header.size], header)
        position += header.size


@dataclass(frozen=True, slots=True)
class Fetched:
    """What one fetch brought of one partition, undecoded, CRC checked, without control and aborted batches.

    ``offset`` is the position the fetch was asked for: records before it, at the start of the first batch, are not
    part of this. ``next_offset`` is the position after it; there may be no batch at all where only control batches or
    compacted-away records lie between the two.
    """

    topic: str
    partition: int
    offset: int
    next_offset: int
    high_watermark: int
    batches: tuple[Batch, ...]

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    @property
    def size(self) -> int:
        """Bytes of the batches as they lie in the log."""
        return sum(len(batch.data) for batch in self.batches)

    def records(self) -> Iterator[KafkaRecord]:
        """The records one by one, in the order of their offsets. Raises CorruptMessage."""
        topic, partition, requested = self.topic, self.partition, self.offset
        for batch in self.batches:
            try:
                for record in DefaultRecordBatch(bytes(batch.data)):
                    if record.offset >= requested:
                        headers = tuple(record.headers)
                        yield KafkaRecord(
                            topic, partition, record.offset, record.timestamp, record.key, record.value, headers
                        )
            except Exception as error:
                raise CorruptMessage(
                    f"{topic}-{partition}: batch at offset {batch.header.base_offset} cannot be decoded: {error}"
                ) from error
