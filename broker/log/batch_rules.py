"""Checks on record batches to append, and the fields that the log sets in them.

Headers only; ``inspection`` reads records.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Sequence
from typing import Final

from broker.errors import CorruptMessage, InvalidRecord, InvalidTimestamp, MessageTooLarge, RecordListTooLarge
from broker.log.config import LogConfig
from broker.log.inspection import MOST_NAMED
from broker.protocol.compression import Codec, most_unpacked
from broker.protocol.record import SMALLEST
from broker.protocol.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    batch_at,
    crc_is_right,
    with_append_time,
)
from broker.protocol.walks import opened, timestamps
from broker.work import ON_THE_LOOP, Allowance, TooMuchWork

__all__ = ["checked_batches", "prepared"]

_PATCH: Final = struct.Struct(">qii")
"""Base offset, length and leader epoch: the bytes before the magic byte and the part that the checksum covers."""


def checked_batches(view: memoryview, config: LogConfig, now_ms: int, *, from_client: bool) -> list[BatchHeader]:
    """The headers of the batches in ``view``, all valid.

    Raises CorruptMessage, InvalidRecord, InvalidTimestamp or MessageTooLarge. Without ``from_client`` the batches are
    the broker's own: size, timestamps and control batches are not checked.
    """
    headers = []
    position, end = 0, len(view)
    while position < end:
        try:
            header = batch_at(view, position)
        except CorruptMessage as error:
            # INVALID_RECORD, as in Kafka: on CORRUPT_MESSAGE a producer would retry.
            raise InvalidRecord(error.message) from error
        if header.record_count < 1 or header.last_offset_delta != header.record_count - 1:
            raise InvalidRecord(
                f"a batch of {header.record_count} records says its last offset delta is {header.last_offset_delta}"
            )
        payload = header.length + LOG_OVERHEAD - HEADER_SIZE
        if header.record_count * SMALLEST > payload and _is_implausible(header, payload):
            raise InvalidRecord(f"{payload} bytes of records cannot be the {header.record_count} that their batch says")
        if not crc_is_right(view, position, header):
            raise CorruptMessage(
                f"a batch of {header.size} bytes does not have the checksum {header.crc:#010x} it states"
            )
        if from_client:
            _check_client_batch(header, config)
            if config.message_timestamp_type == "CreateTime" and _is_out_of_time(header, config, now_ms):
                raise _out_of_time(view[position : position + header.size], header, config, now_ms)
        headers.append(header)
        position += header.length + LOG_OVERHEAD
    if not headers:
        raise InvalidRecord("there is no record batch to append")
    return headers


def _is_implausible(header: BatchHeader, payload: int) -> bool:
    """Whether even the best compression could not make so many records so small. Kafka counts them instead."""
    return header.codec <= Codec.ZSTD and header.record_count * SMALLEST > most_unpacked(header.codec, payload)


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
    """Checks the first and the largest timestamp. Those between are in compressed data that is not read."""
    if header.max_timestamp - now_ms > config.message_timestamp_after_max_ms:
        return True
    began = header.base_timestamp
    return began != NO_TIMESTAMP and now_ms - began > config.message_timestamp_before_max_ms


def _out_of_time(batch: memoryview, header: BatchHeader, config: LogConfig, now_ms: int) -> InvalidTimestamp:
    """Names the records. This reads them, which is acceptable for a refused batch."""
    after, before = config.message_timestamp_after_max_ms, config.message_timestamp_before_max_ms
    times: list[int] = []
    if header.record_count <= MOST_NAMED:
        with contextlib.suppress(CorruptMessage, TooMuchWork):
            allowance = Allowance(ON_THE_LOOP)
            times = list(timestamps(header, opened(header, batch, allowance), allowance))
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


def prepared(
    view: memoryview,
    headers: Sequence[BatchHeader],
    config: LogConfig,
    base_offset: int,
    now_ms: int,
    leader_epoch: int = 0,
) -> tuple[list[bytes | memoryview], list[BatchHeader]]:
    """The buffers to write and the headers in them, with offsets from ``base_offset`` on, the leader epoch, and the
    append time if the topic requires it.

    Batches are not copied unless they change.
    """
    if len(view) > config.segment_bytes:
        raise RecordListTooLarge(f"{len(view)} bytes are more than a segment may have, {config.segment_bytes}")
    buffers: list[bytes | memoryview] = []
    placed = []
    position = 0
    stamps = config.message_timestamp_type == "LogAppendTime"
    for original in headers:
        size = original.length + LOG_OVERHEAD
        batch = view[position : position + size]
        position += size
        header = original
        if stamps and not header.is_control:
            batch = memoryview(with_append_time(batch, now_ms))
            header = BatchHeader.parse(batch)
        buffers.append(_PATCH.pack(base_offset, header.length, leader_epoch))
        buffers.append(batch[_PATCH.size :])
        placed.append(header.placed(base_offset, leader_epoch))
        base_offset += header.last_offset_delta + 1
    return buffers, placed
