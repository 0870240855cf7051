"""Record batches v2 (KIP-98), the only record format on the wire and on disk: a header of 61 bytes, then the records.

The broker reads only headers; records are decoded where Kafka's semantics require it (time lookups, compaction,
internal topics). The checksum covers everything from the attributes on, so base offset and leader epoch can be patched
without changing it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import crc32c

from broker.errors import CorruptMessage
from broker.protocol.compression import Codec, compress, decompress
from broker.protocol.record import NO_TIMESTAMP, Record, read_record, write_record

__all__ = [
    "ATTRIBUTES_AT",
    "HEADER",
    "HEADER_SIZE",
    "LOG_OVERHEAD",
    "MAGIC",
    "MARKER_SIZE",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "BatchHeader",
    "Record",
    "batch_at",
    "batches",
    "crc_is_right",
    "decode_batch",
    "decode_marker",
    "encode_batch",
    "encode_marker",
    "malformed",
    "opened_batch",
    "repacked_batch",
    "with_append_time",
    "with_payload",
]

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
"""All fields of a batch header, in the order of ``BatchHeader``."""
HEADER_SIZE: Final = HEADER.size
LOG_OVERHEAD: Final = 12
"""Size of base offset and batch length, which the length does not count."""
_LEAST_LENGTH: Final = HEADER_SIZE - LOG_OVERHEAD
ATTRIBUTES_AT: Final = 21
"""The start of the part that the checksum covers."""
MAGIC: Final = 2

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1

_new_tuple: Final = tuple.__new__
"""Creates a NamedTuple from the right number of fields without calling Python code."""
_CODEC_MASK: Final = 0x07
_APPEND_TIME: Final = 0x08
_TRANSACTIONAL: Final = 0x10
_CONTROL: Final = 0x20
_DELETE_HORIZON: Final = 0x40


class BatchHeader(NamedTuple):
    """The 61 bytes before a batch's records, in their order. ``length`` counts the bytes after itself."""

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @classmethod
    def parse(cls, view: memoryview | bytes, position: int = 0) -> BatchHeader:
        """Read the header at ``position``. Raises CorruptMessage if fewer than 61 bytes are left."""
        try:
            return _new_tuple(cls, HEADER.unpack_from(view, position))
        except struct.error:
            raise CorruptMessage(f"a batch header needs {HEADER_SIZE} bytes, {len(view) - position} are left") from None

    def placed(self, base_offset: int, leader_epoch: int) -> BatchHeader:
        """The batch's header with its offset and leader epoch in a log."""
        return _new_tuple(BatchHeader, (base_offset, self[1], leader_epoch, *self[3:]))

    @property
    def size(self) -> int:
        """Size of the whole batch in bytes, header included."""
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def codec(self) -> int:
        return self.attributes & _CODEC_MASK

    @property
    def has_append_time(self) -> bool:
        """Whether every record's timestamp is ``max_timestamp``, the append time."""
        return bool(self.attributes & _APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & _TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """Whether it has a transaction marker or another record that consumers never see."""
        return bool(self.attributes & _CONTROL)

    @property
    def delete_horizon_ms(self) -> int | None:
        """When compaction may drop the batch's tombstones (KIP-534); stored in the base timestamp."""
        return self.base_timestamp if self.attributes & _DELETE_HORIZON else None

    @property
    def last_sequence(self) -> int:
        """The last sequence number. Sequence numbers wrap from 2^31 - 1 to 0."""
        return (self.base_sequence + self.last_offset_delta) & 0x7FFFFFFF if self.base_sequence >= 0 else NO_SEQUENCE


def batch_at(view: memoryview, position: int) -> BatchHeader:
    """The header of the batch at ``position``. Raises CorruptMessage if it is incomplete or not of version 2."""
    try:
        header = _new_tuple(BatchHeader, HEADER.unpack_from(view, position))
    except struct.error:
        return BatchHeader.parse(view, position)  # which raises the precise error
    if header.magic != MAGIC:
        raise CorruptMessage(f"a record batch has magic {header.magic}; only version 2 is supported")
    length, left = header.length, len(view) - position - LOG_OVERHEAD
    if not _LEAST_LENGTH <= length <= left:
        raise CorruptMessage(f"a record batch says it has {length} bytes where {left} are left")
    return header


def batches(view: memoryview) -> Iterator[tuple[int, BatchHeader]]:
    """Each batch's position and header. Raises the errors of ``batch_at``."""
    position, end = 0, len(view)
    while position < end:
        header = batch_at(view, position)
        yield position, header
        position += header.size


def crc_is_right(view: memoryview, position: int, header: BatchHeader) -> bool:
    """Whether the header's checksum matches the batch at ``position``."""
    return crc32c.crc32c(view[position + ATTRIBUTES_AT : position + header.length + LOG_OVERHEAD]) == header.crc


def encode_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    compression: Codec | None = None,
    compression_level: int | None = None,
    transactional: bool = False,
    control: bool = False,
    delete_horizon_ms: int | None = None,
    keep_offsets: bool = False,
    last_offset_delta: int | None = None,
    leader_epoch: int = 0,
) -> bytes:
    """Encode one batch. Records get the offsets from ``base_offset`` on, unless ``keep_offsets`` keeps their own.

    ``last_offset_delta`` is for compacted batches, which must still cover the same offsets.
    """
    base_timestamp = (
        delete_horizon_ms if delete_horizon_ms is not None else (records[0].timestamp_ms if records else NO_TIMESTAMP)
    )
    body = bytearray()
    for index, record in enumerate(records):
        delta = record.offset - base_offset if keep_offsets else index
        write_record(body, record, delta, record.timestamp_ms - base_timestamp)
    codec = compression or Codec.NONE
    attributes = int(codec) | (_TRANSACTIONAL if transactional else 0) | (_CONTROL if control else 0)
    if delete_horizon_ms is not None:
        attributes |= _DELETE_HORIZON
    if last_offset_delta is None:
        last_offset_delta = records[-1].offset - base_offset if keep_offsets and records else len(records) - 1
    payload = compress(codec, bytes(body), compression_level)
    header = BatchHeader(
        base_offset, HEADER_SIZE - LOG_OVERHEAD + len(payload), leader_epoch, MAGIC, 0, attributes, last_offset_delta, base_timestamp,
        max((record.timestamp_ms for record in records), default=NO_TIMESTAMP), producer_id, producer_epoch, base_sequence,
        len(records),
    )  # fmt: skip
    return _sealed(header, payload)


def _sealed(header: BatchHeader, payload: bytes | memoryview) -> bytes:
    packed = HEADER.pack(*header)
    crc = crc32c.crc32c(payload, crc32c.crc32c(packed[ATTRIBUTES_AT:]))
    return b"".join((HEADER.pack(*header._replace(crc=crc)), payload))


def with_append_time(view: memoryview, timestamp_ms: int) -> bytes:
    """The batch in ``view`` with ``timestamp_ms`` as the time of all its records (``message.timestamp.type=LogAppendTime``)."""
    header = BatchHeader.parse(view)
    changed = header._replace(attributes=header.attributes | _APPEND_TIME, max_timestamp=timestamp_ms)
    return _sealed(changed, view[HEADER_SIZE : header.size])


_MARKER_KEY: Final = struct.Struct(">hh")
_MARKER_VALUE: Final = struct.Struct(">hi")
_COMMIT: Final = 1
MARKER_SIZE: Final = HEADER_SIZE + 17
"""Size of a marker's batch in bytes."""


def encode_marker(
    producer_id: int,
    producer_epoch: int,
    offset: int,
    *,
    commit: bool,
    coordinator_epoch: int,
    timestamp_ms: int,
    leader_epoch: int = 0,
) -> bytes:
    """The control batch that ends a transaction (EndTxnMarker)."""
    record = Record(_MARKER_KEY.pack(0, int(commit)), _MARKER_VALUE.pack(0, coordinator_epoch), (), timestamp_ms)
    return encode_batch(
        [record],
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )


def decode_marker(record: Record) -> tuple[bool, int]:
    """(committed, coordinator epoch) of a transaction's end marker. Raises CorruptMessage if it is not one."""
    try:
        _, kind = _MARKER_KEY.unpack_from(record.key or b"")
        _, coordinator_epoch = _MARKER_VALUE.unpack_from(record.value or b"")
    except struct.error:
        raise CorruptMessage(f"the control record at offset {record.offset} is no transaction marker") from None
    return kind == _COMMIT, coordinator_epoch


def decode_batch(view: memoryview | bytes) -> list[Record]:
    """The records of the single batch in ``view``, with absolute offsets. Raises CorruptMessage for malformed data.

    Does not check the checksum; ``crc_is_right`` does.
    """
    header, data = opened_batch(view)
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    records = []
    position = 0
    try:
        for _ in range(header.record_count):
            record, position = read_record(data, position, base_offset, base_timestamp)
            records.append(record)
    except (IndexError, UnicodeDecodeError) as error:
        raise malformed(header, len(records)) from error
    if position != len(data):
        raise malformed(header, header.record_count)
    if header.has_append_time:
        return [record._replace(timestamp_ms=header.max_timestamp) for record in records]
    return records


def opened_batch(view: memoryview | bytes) -> tuple[BatchHeader, bytes]:
    """The header of a whole batch and its records, decompressed."""
    header = BatchHeader.parse(view)
    if header.magic != MAGIC or header.length < HEADER_SIZE - LOG_OVERHEAD or header.size > len(view):
        raise CorruptMessage(f"not a whole record batch of version 2: magic {header.magic}, length {header.length}")
    return header, bytes(decompress(header.codec, memoryview(view)[HEADER_SIZE : header.size]))


def repacked_batch(header: BatchHeader, data: bytes, count: int, max_timestamp: int) -> bytes:
    """The batch with fewer records, whose bytes are ``data``. It still covers the same offsets."""
    payload = compress(Codec(header.codec), data)
    changed = header._replace(
        length=HEADER_SIZE - LOG_OVERHEAD + len(payload), record_count=count, max_timestamp=max_timestamp
    )
    return _sealed(changed, payload)


def with_payload(header: BatchHeader, payload: bytes, codec: Codec, max_timestamp: int) -> bytes:
    """The batch with the same number of records, encoded in ``payload`` with another codec."""
    changed = header._replace(
        length=HEADER_SIZE - LOG_OVERHEAD + len(payload),
        attributes=header.attributes & ~_CODEC_MASK | codec,
        max_timestamp=max_timestamp,
    )
    return _sealed(changed, payload)


def malformed(header: BatchHeader, number: int | None) -> CorruptMessage:
    """The error for records that contradict their batch's header.

    ``number`` is the index of the first bad one, if known.
    """
    if number is None:
        return CorruptMessage(
            f"the {header.record_count} records of the batch at offset {header.base_offset} are malformed"
        )
    if number == header.record_count:
        return CorruptMessage(f"the batch at offset {header.base_offset} goes on after its {number} records")
    return CorruptMessage(f"record {number} of the batch at offset {header.base_offset} is malformed")
