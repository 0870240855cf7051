"""Fetch, written by hand: the answer is a list of byte strings and file slices, so that records go from file to socket.

Versions 4 to 18: v5 log start offset · v7 sessions (KIP-227) · v9 leader epochs (KIP-320) · v11 rack (KIP-392) · v12
flexible, last fetched epoch · v13 topic ids instead of names · v15 replica state as a tag · v16 node endpoints · v17
directory id · v18 the follower's high watermark.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import ClassVar, Final, NamedTuple, Protocol

from broker.protocol.primitives import (
    MalformedMessage,
    bounded_entries,
    read_array_length,
    read_string,
    read_uuid,
    write_array_length,
    write_string,
    write_uvarint,
)
from broker.protocol.produce import skip_tags

__all__ = ["Aborted", "FetchPartition", "FetchRequest", "FetchResponse", "FileSlice", "PartitionFetched"]

SESSIONS_SINCE: Final = 7
TOPIC_IDS_SINCE: Final = 13
FLEXIBLE_SINCE: Final = 12

_INT32: Final = Struct(">i")
_LIMITS: Final = Struct(">iiib")
_SESSION: Final = Struct(">ii")
_PARTITION_V4: Final = Struct(">iqi")
_PARTITION_V5: Final = Struct(">iqqi")
_PARTITION_V9: Final = Struct(">iiqqi")
_PARTITION_V12: Final = Struct(">iiqiqi")


class FileSlice(Protocol):
    """Bytes of an open file."""

    @property
    def fd(self) -> int: ...
    @property
    def position(self) -> int: ...
    @property
    def size(self) -> int: ...


class FetchPartition(NamedTuple):
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1


class FetchRequest:
    """``topics`` maps a name (an id since v13) to the requested partitions, ``forgotten`` to partition numbers."""

    __slots__ = (
        "forgotten",
        "isolation_level",
        "max_bytes",
        "max_wait_ms",
        "min_bytes",
        "session_epoch",
        "session_id",
        "topics",
    )
    API_KEY: ClassVar = 1
    FLEXIBLE_SINCE: ClassVar = FLEXIBLE_SINCE

    def __init__(
        self,
        topics: list[tuple[str | uuid.UUID, list[FetchPartition]]],
        *,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = 0x7FFFFFFF,
        isolation_level: int = 0,
        session_id: int = 0,
        session_epoch: int = -1,
        forgotten: Sequence[tuple[str | uuid.UUID, list[int]]] = (),
    ) -> None:
        self.topics = topics
        self.max_wait_ms = max_wait_ms
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation_level = isolation_level
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.forgotten = forgotten

    @classmethod
    def read(cls, data: memoryview, version: int, at: int) -> FetchRequest:
        """Raises MalformedMessage. The rack is not read; it has no meaning with one broker."""
        try:
            with bounded_entries:
                return _read(data, version, at)
        except (struct.error, IndexError, UnicodeDecodeError) as error:
            raise MalformedMessage(f"FetchRequest v{version} cannot be read: {error}") from error


def _read(data: memoryview, version: int, at: int) -> FetchRequest:
    flexible = version >= FLEXIBLE_SINCE
    if version < 15:
        at += 4  # the replica id: followers do not fetch here
    max_wait_ms, min_bytes, max_bytes, isolation_level = _LIMITS.unpack_from(data, at)
    at += _LIMITS.size
    session_id, session_epoch = 0, -1
    if version >= SESSIONS_SINCE:
        session_id, session_epoch = _SESSION.unpack_from(data, at)
        at += _SESSION.size
    count, at = read_array_length(data, at, flexible)
    topics: list[tuple[str | uuid.UUID, list[FetchPartition]]] = []
    for _ in range(count):
        topic, at = _read_topic(data, at, version)
        partitions, at = _read_partitions(data, at, version, flexible)
        topics.append((topic, partitions))
    return FetchRequest(
        topics,
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=session_id,
        session_epoch=session_epoch,
        forgotten=_read_forgotten(data, at, version, flexible) if session_epoch > 0 else (),
    )


def _read_topic(data: memoryview, at: int, version: int) -> tuple[str | uuid.UUID, int]:
    if version >= TOPIC_IDS_SINCE:
        return read_uuid(data, at)
    name, at = read_string(data, at, version >= FLEXIBLE_SINCE)
    return name or "", at


def _read_forgotten(
    data: memoryview, at: int, version: int, flexible: bool
) -> Sequence[tuple[str | uuid.UUID, list[int]]]:
    """The partitions that an incremental fetch removes from its session. Meaningless in other fetches."""
    topics, at = read_array_length(data, at, flexible)
    if topics == 0:
        return ()
    forgotten = []
    for _ in range(topics):
        topic, at = _read_topic(data, at, version)
        count, at = read_array_length(data, at, flexible)
        numbers = [_INT32.unpack_from(data, at + 4 * index)[0] for index in range(count)]
        at += 4 * count
        if flexible:
            at = skip_tags(data, at)
        forgotten.append((topic, numbers))
    return forgotten


def _read_partitions(data: memoryview, at: int, version: int, flexible: bool) -> tuple[list[FetchPartition], int]:
    count, at = read_array_length(data, at, flexible)
    partitions = []
    for _ in range(count):
        epoch = fetched = -1
        if version >= 12:
            index, epoch, offset, fetched, _, max_bytes = _PARTITION_V12.unpack_from(data, at)
            at = skip_tags(data, at + _PARTITION_V12.size)
        elif version >= 9:
            index, epoch, offset, _, max_bytes = _PARTITION_V9.unpack_from(data, at)
            at += _PARTITION_V9.size
        elif version >= 5:
            index, offset, _, max_bytes = _PARTITION_V5.unpack_from(data, at)
            at += _PARTITION_V5.size
        else:
            index, offset, max_bytes = _PARTITION_V4.unpack_from(data, at)
            at += _PARTITION_V4.size
        partitions.append(FetchPartition(index, offset, max_bytes, epoch, fetched))
    return partitions, skip_tags(data, at) if flexible else at


class Aborted(Protocol):
    """An aborted transaction: records of the producer from the offset up to its marker are not effective."""

    @property
    def producer_id(self) -> int: ...
    @property
    def first_offset(self) -> int: ...


class PartitionFetched(NamedTuple):
    """The result for one partition; no slice means no records."""

    partition: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: FileSlice | None = None
    aborted: Sequence[Aborted] | None = None
    """Transactions whose records readers of committed data must skip; None for other readers."""
    diverging: tuple[int, int] | None = None
    """Where the log diverges from what the client has read: the last common epoch and its end (KIP-595)."""


class FetchResponse:
    __slots__ = ("error_code", "session_id", "throttle_time_ms", "topics")
    API_KEY: ClassVar = 1
    FLEXIBLE_SINCE: ClassVar = FLEXIBLE_SINCE

    def __init__(
        self,
        topics: Iterable[tuple[str | uuid.UUID, list[PartitionFetched]]] = (),
        *,
        error_code: int = 0,
        session_id: int = 0,
        throttle_time_ms: int = 0,
    ) -> None:
        self.topics = list(topics)
        self.error_code = error_code
        self.session_id = session_id
        self.throttle_time_ms = throttle_time_ms

    def write(self, version: int, out: bytearray) -> list[bytearray | FileSlice]:
        """The parts of the answer in order; the first begins with the content of ``out``."""
        flexible = version >= FLEXIBLE_SINCE
        parts: list[bytearray | FileSlice] = []
        out += _INT32.pack(self.throttle_time_ms)
        if version >= SESSIONS_SINCE:
            out += struct.pack(">hi", self.error_code, self.session_id)
        write_array_length(out, len(self.topics), flexible)
        for topic, partitions in self.topics:
            if isinstance(topic, uuid.UUID):
                out += topic.bytes
            else:
                write_string(out, topic, flexible)
            write_array_length(out, len(partitions), flexible)
            for fetched in partitions:
                _write_partition(out, fetched, version, flexible)
                if fetched.records is not None:
                    parts += (out, fetched.records)
                    out = bytearray()
                if fetched.diverging is not None and flexible:
                    out += _DIVERGING_TAG + _DIVERGING.pack(*fetched.diverging) + b"\0"
                elif flexible:
                    out.append(0)
            if flexible:
                out.append(0)
        if flexible:
            out.append(0)
        if out:
            parts.append(out)
        return parts


_FETCHED_V4: Final = Struct(">ihqq")
_FETCHED_V5: Final = Struct(">ihqqq")
_ABORTED: Final = Struct(">qq")
_DIVERGING: Final = Struct(">iq")
_DIVERGING_TAG: Final = bytes([1, 0, _DIVERGING.size + 1])
"""The first tagged field, and its size with the empty tags at its end."""


def _write_partition(out: bytearray, fetched: PartitionFetched, version: int, flexible: bool) -> None:
    """Write everything before the records, including their length."""
    out += _FETCHED_V5.pack(*fetched[:5]) if version >= 5 else _FETCHED_V4.pack(*fetched[:4])
    if fetched.aborted is None:
        out += b"\0" if flexible else b"\xff\xff\xff\xff"
    else:
        _write_aborted(out, fetched.aborted, flexible)
    if version >= 11:
        out += _INT32.pack(-1)  # preferred read replica
    size = 0 if fetched.records is None else fetched.records.size
    if flexible:
        write_uvarint(out, size + 1)
    else:
        out += _INT32.pack(size)


def _write_aborted(out: bytearray, aborted: Sequence[Aborted], flexible: bool) -> None:
    write_array_length(out, len(aborted), flexible)
    for item in aborted:
        out += _ABORTED.pack(item.producer_id, item.first_offset)
        if flexible:
            out.append(0)
