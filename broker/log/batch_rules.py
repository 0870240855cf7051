"""What a record batch must be to enter a log, and what is done to it on the way in. Headers only, except where keys matter."""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Sequence
from typing import Final

from broker.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, MessageTooLarge, RecordListTooLarge
from broker.log.config import LogConfig
from broker.protocol.compression import Codec
from broker.protocol.records import (
    LOG_OVERHEAD,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    batch_at,
    crc_is_right,
    decode_batch,
    encode_batch,
    record_keys,
    with_append_time,
)

__all__ = ["checked_batches", "prepared"]

_PATCH: Final = struct.Struct(">qii")
"""Base offset, length and leader epoch: what stands in front of the checksum's part and the magic byte."""
_MOST_TOLD_OF: Final = 10_000
"""Records of a batch that an answer names as wrong: a small compressed batch may have millions."""


def checked_batches(view: memoryview, config: LogConfig, now_ms: int, *, from_client: bool) -> list[BatchHeader]:
    """The headers of the batches in ``view``, all of them found good.

    Raises CorruptMessage, InvalidRecord, InvalidTimestamp or MessageTooLarge. Without ``from_client`` the batches are the
    broker's own: size, timestamps and control batches are not questioned.
    """
    headers = []
    position, end = 0, len(view)
    while position < end:
        try:
            header = batch_at(view, position)
        except CorruptMessage as error:
            # INVALID_RECORD, as Kafka answers: a producer would send a CORRUPT_MESSAGE again.
            raise InvalidRecord(error.message) from error
        if header.record_count < 1 or header.last_offset_delta != header.record_count - 1:
            raise InvalidRecord(
                f"a batch of {header.record_count} records says its last offset delta is {header.last_offset_delta}"
            )
        if not crc_is_right(view, position, header):
            raise CorruptMessage(
                f"a batch of {header.size} bytes does not have the checksum {header.crc:#010x} it states"
            )
        if from_client:
            _check_client_batch(header, config)
            if config.message_timestamp_type == "CreateTime" and _is_out_of_time(header, config, now_ms):
                raise _out_of_time(view[position : position + header.size], header, config, now_ms)
            if config.compacted:
                _check_keys(view[position : position + header.size])
        headers.append(header)
        position += header.length + LOG_OVERHEAD
    if not headers:
        raise InvalidRecord("there is no record batch to append")
    return headers


def _check_client_batch(header: BatchHeader, config: LogConfig) -> None:
    if header.length + LOG_OVERHEAD > config.max_message_bytes:
        raise MessageTooLarge(
            f"a batch of {header.size} bytes is larger than max.message.bytes, {config.max_message_bytes}"
        )
    if header.attributes:
        _check_attributes(header)
    if header.producer_id != NO_PRODUCER_ID and (header.producer_epoch < 0 or header.base_sequence < 0):
        raise InvalidRecord(
            f"a batch of producer {header.producer_id} has epoch {header.producer_epoch} and sequence {header.base_sequence}"
        )


def _check_attributes(header: BatchHeader) -> None:
    if header.is_control:
        raise InvalidRecord("clients must not write control records")
    if header.codec > Codec.ZSTD:
        raise InvalidRecord(f"a batch names compression codec {header.codec}; 0 to 4 are known")
    if header.has_append_time:
        raise InvalidTimestamp("a batch from a producer claims to have the time of its append")
    if header.is_transactional and header.producer_id == NO_PRODUCER_ID:
        raise InvalidRecord("a transactional batch names no producer")


def _is_out_of_time(header: BatchHeader, config: LogConfig, now_ms: int) -> bool:
    """By the first and the largest timestamp; those between are inside compressed data that nobody looks into."""
    if header.max_timestamp - now_ms > config.message_timestamp_after_max_ms:
        return True
    began = header.base_timestamp
    return began != NO_TIMESTAMP and now_ms - began > config.message_timestamp_before_max_ms


def _out_of_time(batch: memoryview, header: BatchHeader, config: LogConfig, now_ms: int) -> InvalidTimestamp:
    """Says which records it is, now that the batch is refused and may cost something."""
    after, before = config.message_timestamp_after_max_ms, config.message_timestamp_before_max_ms
    times: list[int] = []
    if header.record_count <= _MOST_TOLD_OF:
        with contextlib.suppress(CorruptMessage):
            times = [record.timestamp_ms for record in decode_batch(batch)]
    wrong = [
        (index, f"timestamp {time} is not within {now_ms - before} and {now_ms + after}")
        for index, time in enumerate(times)
        if time - now_ms > after or (time != NO_TIMESTAMP and now_ms - time > before)
    ]
    error = InvalidTimestamp(
        f"a batch has timestamps from {header.base_timestamp} to {header.max_timestamp}; the broker's time is {now_ms}, "
        f"message.timestamp.before.max.ms {before} and message.timestamp.after.max.ms {after}"
    )
    error.records = wrong
    return error


def _check_keys(batch: memoryview) -> None:
    keyless = [index for index, record in enumerate(record_keys(batch)) if record.key is None]
    if keyless:
        error = InvalidRecord(
            f"{len(keyless)} records of a batch have no key, which a compacted topic needs; the first is record {keyless[0]}"
        )
        error.records = [(index, "a record of a compacted topic needs a key") for index in keyless[:_MOST_TOLD_OF]]
        raise error


def prepared(
    view: memoryview,
    headers: Sequence[BatchHeader],
    config: LogConfig,
    base_offset: int,
    now_ms: int,
    leader_epoch: int = 0,
) -> tuple[list[bytes | memoryview], list[BatchHeader]]:
    """The buffers to write and the headers in them: offsets from ``base_offset`` on, the leader epoch, and where the topic
    asks for it another codec or the append time. Batches are not copied unless they change.
    """
    if len(view) > config.segment_bytes:
        raise RecordListTooLarge(f"{len(view)} bytes are more than a segment may have, {config.segment_bytes}")
    buffers: list[bytes | memoryview] = []
    placed = []
    position = 0
    rewrite = config.compression_type != "producer" or config.message_timestamp_type == "LogAppendTime"
    for original in headers:
        size = original.length + LOG_OVERHEAD
        batch = view[position : position + size]
        position += size
        header = original
        if rewrite:
            batch = memoryview(_rewritten(batch, original, config, now_ms))
            header = BatchHeader.parse(batch)
            if header.size > max(config.max_message_bytes, size):
                raise MessageTooLarge(
                    f"a batch of {size} bytes becomes {header.size} with compression.type={config.compression_type}, "
                    f"more than max.message.bytes, {config.max_message_bytes}"
                )
        buffers.append(_PATCH.pack(base_offset, header.length, leader_epoch))
        buffers.append(batch[_PATCH.size :])
        placed.append(header.placed(base_offset, leader_epoch))
        base_offset += header.last_offset_delta + 1
    return buffers, placed


def _rewritten(batch: memoryview, header: BatchHeader, config: LogConfig, now_ms: int) -> bytes:
    wanted = _wanted_codec(config, header.codec)
    changed = bytes(batch)
    if wanted != header.codec:
        changed = encode_batch(
            decode_batch(batch),
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            base_sequence=header.base_sequence,
            compression=wanted,
            compression_level=_level(config, wanted),
            transactional=header.is_transactional,
            control=header.is_control,
        )
    if config.message_timestamp_type == "LogAppendTime" and not header.is_control:
        changed = with_append_time(memoryview(changed), now_ms)
    return changed


def _wanted_codec(config: LogConfig, present: int) -> Codec:
    if config.compression_type == "producer":
        return Codec(present)
    return Codec.NONE if config.compression_type == "uncompressed" else Codec[config.compression_type.upper()]


def _level(config: LogConfig, codec: Codec) -> int | None:
    return {
        Codec.GZIP: None if config.compression_gzip_level < 0 else config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }.get(codec)
