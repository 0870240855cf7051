"""Batches, records and acknowledgements, as programs exchange them with a cluster."""

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
"""A part of the bytes to send."""


class TopicPartition(NamedTuple):
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Ack(NamedTuple):
    """A broker's acknowledgement. ``offset`` is the first one of the batch; -1 with acks=0, or if the broker no longer
    knows it.

    ``timestamp_ms`` is the broker's under LogAppendTime, otherwise the record's own; -1 for a batch.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class TransactionalProducer(NamedTuple):
    """A producer as the transaction coordinator knows it. A client that has it can commit the transaction that the producer left open."""

    transactional_id: str
    producer_id: int
    producer_epoch: int


class KafkaRecord(NamedTuple):
    """One record as stored in the log."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class EncodedBatch:
    """A finished record batch v2. The producer's id, epoch and sequence are stamped into it when it is sent.

    ``data`` has the whole header, with base offset 0 and no producer, and may have records. ``records`` has the bytes
    that follow, so that large rows need not be copied. Don't change either once a producer has the batch.
    """

    __slots__ = ("count", "data", "records")

    def __init__(self, data: bytearray, count: int, records: bytes | memoryview = b"") -> None:
        self.data, self.count, self.records = data, count, records

    def __len__(self) -> int:
        return len(self.data) + len(self.records)

    def stamp(self, producer_id: int, epoch: int, sequence: int, *, transactional: bool) -> bytes:
        """The bytes to send, with the producer's fields and the CRC filled in."""
        return b"".join(self.pieces(producer_id, epoch, sequence, transactional=transactional))

    def pieces(self, producer_id: int, epoch: int, sequence: int, *, transactional: bool) -> tuple[Piece, ...]:
        """The bytes of ``stamp`` in parts, without copying."""
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
    """Encode records (key, value, timestamp in ms) into finished batches in their order, each at most ``max_bytes``
    long before compression. A record that is longer by itself becomes a separate batch, which the broker may refuse.

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
    """The complete batches in ``data``. A fetch may end with a partial batch, which is left out.

    Raises CorruptMessage, or UnsupportedForMessageFormat for formats before v2 (brokers since 0.11 convert them);
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
    """The batches that one fetch returned for one partition: undecoded, CRC checked, without control and aborted
    batches.

    ``offset`` is the requested position; records before it, at the start of the first batch, are not part of the
    result. ``next_offset`` is the position to fetch from next. There is no batch if only control batches or compacted
    records lie between the two.
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
        """Size of the batches in the log, in bytes."""
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
