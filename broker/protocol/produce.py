"""Produce, written by hand: record sets stay views of the received frame.

Versions 3 to 13: v4 none · v5 log start offset · v7 zstd · v8 record errors (KIP-467) · v9 flexible · v10 current
leader · v12 transactions in one step (KIP-890) · v13 topic ids instead of names.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import ClassVar, Final, NamedTuple

from broker.protocol.primitives import (
    MalformedMessage,
    bounded_entries,
    count_entries,
    read_array_length,
    read_string,
    read_uuid,
    read_uvarint,
    write_array_length,
    write_string,
    write_uvarint,
)

__all__ = ["PartitionProduced", "PartitionRecords", "ProduceRequest", "ProduceResponse"]

TOPIC_IDS_SINCE: Final = 13

_ACKS: Final = Struct(">hi")
_INT32: Final = Struct(">i")
_RESULT: Final = Struct(">ihqq")
_RESULT_WITH_START: Final = Struct(">ihqqq")
_RESULT_WITHOUT_ERROR: Final = Struct(">ihqqqBBB")
"""For flexible versions: no record errors, no message and no tagged fields follow."""
_NOTHING: Final = (1, 0, 0)


class PartitionRecords(NamedTuple):
    """The records of one partition; ``records`` is a view into the request."""

    partition: int
    records: memoryview


class ProduceRequest:
    """``topics`` maps a name (an id since v13) to its partitions."""

    __slots__ = ("acks", "timeout_ms", "topics", "transactional_id")
    API_KEY: ClassVar = 0
    FLEXIBLE_SINCE: ClassVar = 9

    def __init__(
        self,
        acks: int,
        timeout_ms: int,
        topics: list[tuple[str | uuid.UUID, list[PartitionRecords]]],
        transactional_id: str | None = None,
    ) -> None:
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics = topics
        self.transactional_id = transactional_id

    def copied(self) -> ProduceRequest:
        """A copy that owns its records: those of the frame are gone once the handler returns."""
        topics = [
            (
                topic,
                [
                    PartitionRecords(partition.partition, memoryview(bytes(partition.records)))
                    for partition in partitions
                ],
            )
            for topic, partitions in self.topics
        ]
        return ProduceRequest(self.acks, self.timeout_ms, topics, self.transactional_id)

    @classmethod
    def read(cls, data: memoryview, version: int, at: int) -> ProduceRequest:
        """Raises MalformedMessage."""
        try:
            with bounded_entries:
                return _read(data, version, at)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise MalformedMessage(f"ProduceRequest v{version} cannot be read: {error}") from error


def _read(data: memoryview, version: int, at: int) -> ProduceRequest:
    flexible = version >= ProduceRequest.FLEXIBLE_SINCE
    transactional_id, at = read_string(data, at, flexible)
    acks, timeout_ms = _ACKS.unpack_from(data, at)
    count, at = read_array_length(data, at + _ACKS.size, flexible)
    topics: list[tuple[str | uuid.UUID, list[PartitionRecords]]] = []
    for _ in range(count):
        topic: str | uuid.UUID
        if version >= TOPIC_IDS_SINCE:
            topic, at = read_uuid(data, at)
        else:
            name, at = read_string(data, at, flexible)
            topic = name or ""
        partitions, at = _read_partitions(data, at, flexible)
        topics.append((topic, partitions))
    return ProduceRequest(acks, timeout_ms, topics, transactional_id)


def _read_partitions(data: memoryview, at: int, flexible: bool) -> tuple[list[PartitionRecords], int]:
    count, at = read_array_length(data, at, flexible)
    partitions = []
    for _ in range(count):
        (index,) = _INT32.unpack_from(data, at)
        if flexible:
            size, at = read_uvarint(data, at + 4)
            size -= 1
        else:
            (size,) = _INT32.unpack_from(data, at + 4)
            at += 8
        end = at + size if size > 0 else at
        if end > len(data) or size < -1:
            raise MalformedMessage(f"partition {index} announces {size} bytes of records, {len(data) - at} are there")
        partitions.append(PartitionRecords(index, data[at:end]))
        at = skip_tags(data, end) if flexible else end
    return partitions, skip_tags(data, at) if flexible else at


def skip_tags(data: memoryview, at: int) -> int:
    """Skip a section of tagged fields none of which is known."""
    if data[at] == 0:
        return at + 1
    count, at = read_uvarint(data, at)
    count_entries(count)
    for _ in range(count):
        _, at = read_uvarint(data, at)
        size, at = read_uvarint(data, at)
        at += size
    return at


class PartitionProduced(NamedTuple):
    """The result for one partition; ``append_time_ms`` is -1 unless the log sets the time.

    ``wrong_records`` are indexes of invalid records in the batch, each with its error.
    """

    partition: int
    error_code: int = 0
    base_offset: int = -1
    append_time_ms: int = -1
    log_start_offset: int = -1
    error_message: str | None = None
    wrong_records: Sequence[tuple[int, str]] = ()


class ProduceResponse:
    __slots__ = ("throttle_time_ms", "topics")
    API_KEY: ClassVar = 0
    FLEXIBLE_SINCE: ClassVar = 9

    def __init__(
        self, topics: Iterable[tuple[str | uuid.UUID, list[PartitionProduced]]], throttle_time_ms: int = 0
    ) -> None:
        self.topics = list(topics)
        self.throttle_time_ms = throttle_time_ms

    def write(self, version: int, out: bytearray) -> list[bytearray]:
        """The answer after the content of ``out``, as one part."""
        flexible = version >= self.FLEXIBLE_SINCE
        write_array_length(out, len(self.topics), flexible)
        for topic, partitions in self.topics:
            if isinstance(topic, uuid.UUID):
                out += topic.bytes
            else:
                write_string(out, topic, flexible)
            write_array_length(out, len(partitions), flexible)
            for produced in partitions:
                _write_partition(out, produced, version, flexible)
            if flexible:
                out.append(0)
        out += _INT32.pack(self.throttle_time_ms)
        if flexible:
            out.append(0)
        return [out]


def _write_partition(out: bytearray, produced: PartitionProduced, version: int, flexible: bool) -> None:
    if flexible and produced.error_message is None:
        out += _RESULT_WITHOUT_ERROR.pack(*produced[:5], *_NOTHING)
        return
    if version < 5:
        out += _RESULT.pack(*produced[:4])
        return
    out += _RESULT_WITH_START.pack(*produced[:5])
    if version >= 8:
        write_array_length(out, len(produced.wrong_records), flexible)
        for index, text in produced.wrong_records:
            out += _INT32.pack(index)
            write_string(out, text, flexible)
            if flexible:
                out.append(0)
        write_string(out, produced.error_message, flexible)
    if flexible:
        write_uvarint(out, 0)
