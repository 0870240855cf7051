"""A segment: one file of record batches with its offset index and time index, all named by the first offset.

A segment knows where batches lie and nothing of what they mean; ``broker.log.partition`` decides.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import crc32c

from broker.errors import CorruptMessage
from broker.log.files import FileHandle, sync_data, sync_directory, write_all
from broker.log.offset_index import OffsetIndex
from broker.log.time_index import TimeIndex
from broker.protocol.records import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    decode_batch,
)

__all__ = ["MAX_RELATIVE_OFFSET", "Segment", "file_name", "finish_swap", "mark_for_swap"]

MAX_RELATIVE_OFFSET: Final = 2**31 - 1
"""The furthest an offset may lie from its segment's base (Kafka reads index entries as signed)."""

_CHUNK: Final = 16 * 1024
_FIND_CHUNK: Final = 6 * 1024
"""A little more than lies between two index entries by default."""
_OUTLINE: Final = struct.Struct(">qi11xi")
"""Base offset, length and last offset delta: all of a header that a search looks at."""

OnBatch = Callable[[int, BatchHeader], None]
"""Gets a batch's position in the file and its header."""


def file_name(offset: int, suffix: str) -> str:
    """Kafka's name of a file: the offset in 20 digits."""
    return f"{offset:020d}{suffix}"


class Segment:
    """``size`` is where the next batch goes; what lies in the file behind it does not count."""

    def __init__(self, directory: Path, base_offset: int, index_interval_bytes: int, *, suffix: str = "") -> None:
        self.directory = directory
        self.base_offset = base_offset
        self.index_interval_bytes = index_interval_bytes
        self.path = directory / (file_name(base_offset, ".log") + suffix)
        self.handle = FileHandle(self.path)
        status = os.fstat(self.handle.fd)
        self.size = status.st_size
        self.modified_ms = status.st_mtime_ns // 1_000_000
        self.index = OffsetIndex(directory / (file_name(base_offset, ".index") + suffix), base_offset)
        self.time_index = TimeIndex(directory / (file_name(base_offset, ".timeindex") + suffix), base_offset)
        self.transaction_index_path = directory / (file_name(base_offset, ".txnindex") + suffix)
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self.first_timestamp: int | None = None
        self.next_offset = base_offset
        self.loaded = self.size == 0
        self._unindexed_bytes = 0

    def append(self, buffers: Sequence[bytes | memoryview], headers: Sequence[BatchHeader]) -> None:
        """Write batches (``headers`` as they are in ``buffers``) at the end.

        Raises OSError and leaves the segment as it was where the disk does not take them.
        """
        position = self.size
        try:
            write_all(self.handle.fd, buffers, position)
        except OSError:
            os.ftruncate(self.handle.fd, position)
            raise
        for header in headers:
            length = header.length
            self.note(position, length, header.base_offset + header.last_offset_delta, header.max_timestamp)
            position += length + LOG_OVERHEAD
        self.size = position

    def note(self, position: int, length: int, last_offset: int, max_timestamp: int) -> None:
        """Take the batch at ``position`` into account: indexes, timestamps, next offset. ``length`` is its header's."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self.first_timestamp is None:
            self.first_timestamp = max_timestamp
        if self._unindexed_bytes > self.index_interval_bytes:
            self.index.append(last_offset, position)
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
            self._unindexed_bytes = 0
        self._unindexed_bytes += length + LOG_OVERHEAD
        self.next_offset = last_offset + 1

    def load(self, *, to_the_end: bool) -> bool:
        """Read the index files of an existing segment; rebuild them where they are missing or damaged.

        With ``to_the_end`` (the active segment) the batches behind the last index entry are walked to learn the next
        offset; False then means that the last batch is not whole: recover.
        """
        if not (self.index.load(self.size) and self.time_index.load() and self._last_entry_fits()):
            return self.recover(truncate=False) == self.size
        last = self.time_index.last
        if last is not None:
            self.max_timestamp, self.max_timestamp_offset = last
        self.loaded = True
        if not to_the_end or self.size == 0:
            return True
        try:
            self.first_timestamp = next(self.headers(0))[1].max_timestamp
            for position, header in self.headers(self.index.last[1] if self.index.last else 0):
                self.note(position, header.length, header.last_offset, header.max_timestamp)
        except CorruptMessage:
            return False
        return True

    def _last_entry_fits(self) -> bool:
        """Whether the offset index's last entry points at the batch it says."""
        last = self.index.last
        if last is None:
            return True
        offset, position = last
        try:
            return BatchHeader.parse(self.read(position, HEADER_SIZE)).last_offset == offset
        except CorruptMessage:
            return False

    def load_summary(self, next_offset: int) -> None:
        """For a closed segment: learn its largest timestamp without reading its indexes; rebuild those if they are damaged."""
        last = self.time_index.peek()
        if last is None or not self.index.looks_whole():
            self.recover(truncate=False)
            self.unload()
        else:
            self.max_timestamp, self.max_timestamp_offset = last
        self.next_offset = next_offset

    def ensure_loaded(self) -> None:
        """Have the indexes in memory; those of closed segments come when they are needed."""
        if not self.loaded:
            self.load(to_the_end=False)

    def unload(self) -> None:
        """Let the indexes of a closed segment go from memory; their files stay."""
        self.index.save()
        self.time_index.save()
        self.index = OffsetIndex(self.index.path, self.base_offset)
        self.time_index = TimeIndex(self.time_index.path, self.base_offset)
        self.loaded = self.size == 0

    def close_indexes(self) -> None:
        """Add the final time entry, as Kafka does when a segment ends, and write both index files."""
        if not self.loaded:
            return
        self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
        self.index.save()
        self.time_index.save()

    def sync(self, *, closed: bool) -> None:
        """Bring the batches to the disk; of a closed segment the indexes too, for they will be trusted. Raises OSError."""
        sync_data(self.handle.fd)
        if closed:
            for path in (self.index.path, self.time_index.path):
                # Gone means that the segment was deleted or compacted in the meantime.
                with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
                    sync_data(file.fileno())

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers from the batch at ``position`` on; raises CorruptMessage where a batch is not whole."""
        end = self.size
        while position < end:
            chunk = os.pread(self.handle.fd, min(_CHUNK, end - position), position)
            at = 0
            while at + HEADER_SIZE <= len(chunk):
                header = BatchHeader.parse(chunk, at)
                if header.magic != MAGIC or header.size < HEADER_SIZE or position + at + header.size > end:
                    raise CorruptMessage(f"{self.path.name} has no whole batch at position {position + at}")
                yield position + at, header
                at += header.size
            if at == 0:
                raise CorruptMessage(f"{self.path.name} has no whole batch at position {position}")
            position += at

    def find(self, offset: int) -> tuple[int, int, int] | None:
        """(position, base offset, size) of the first batch whose last offset is not below ``offset``, or None.

        Raises CorruptMessage where a batch on the way is not whole.
        """
        self.ensure_loaded()
        position, end, unpack = self.index.position_for(offset), self.size, _OUTLINE.unpack_from
        while position < end:
            chunk = os.pread(self.handle.fd, min(_FIND_CHUNK, end - position), position)
            at, last = 0, len(chunk) - _OUTLINE.size
            while at <= last:
                base_offset, length, last_delta = unpack(chunk, at)
                if base_offset + last_delta >= offset:
                    return position + at, base_offset, length + LOG_OVERHEAD
                if length < HEADER_SIZE - LOG_OVERHEAD:
                    raise CorruptMessage(f"{self.path.name} has no whole batch at position {position + at}")
                at += length + LOG_OVERHEAD
            if at == 0:
                raise CorruptMessage(f"{self.path.name} has no whole batch at position {position}")
            position += at
        return None

    def find_timestamp(self, timestamp_ms: int, from_offset: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the first record not older than ``timestamp_ms`` and not before ``from_offset``.

        It may be a transaction's marker, as with Kafka.
        """
        self.ensure_loaded()
        start = max(self.time_index.offset_before(timestamp_ms), from_offset)
        for position, header in self.headers(self.index.position_for(start)):
            if header.max_timestamp < timestamp_ms or header.last_offset < from_offset:
                continue
            for record in decode_batch(self.read(position, header.size)):
                if record.timestamp_ms >= timestamp_ms and record.offset >= from_offset:
                    return record.timestamp_ms, record.offset
        return None

    def largest_timestamp(self, from_offset: int) -> int | None:
        """Of the records from ``from_offset`` on; of a segment that lost some to DeleteRecords every header is read."""
        if from_offset <= self.base_offset:
            return self.max_timestamp if self.size else None
        found = self.find(from_offset)
        largest: int | None = None
        for position, header in self.headers(found[0]) if found else ():
            newest = header.max_timestamp
            if header.base_offset < from_offset:
                records = decode_batch(self.read(position, header.size))
                newest = max((one.timestamp_ms for one in records if one.offset >= from_offset), default=NO_TIMESTAMP)
            largest = newest if largest is None else max(largest, newest)
        return largest

    def read(self, position: int, size: int) -> bytes:
        return os.pread(self.handle.fd, size, position)

    def recover(self, on_batch: OnBatch | None = None, *, truncate: bool = True) -> int:
        """Check every batch, cut the file off at the first that is not right, build the indexes anew; how much was good.

        Each batch must be whole, have the right checksum and begin at the next offset or above. ``on_batch`` gets
        the good ones of idempotent producers.
        """
        self.index.clear()
        self.time_index.clear()
        self.max_timestamp, self.max_timestamp_offset, self.first_timestamp = NO_TIMESTAMP, self.base_offset, None
        self.next_offset, self._unindexed_bytes, self.loaded = self.base_offset, 0, True
        good = 0
        if self.size:
            with mmap.mmap(self.handle.fd, self.size, prot=mmap.PROT_READ) as mapped, memoryview(mapped) as view:
                good = self._check_batches(view, on_batch)
        if good != self.size and truncate:
            os.ftruncate(self.handle.fd, good)
            os.fsync(self.handle.fd)
            self.size = good
        self.close_indexes()
        return good

    def _check_batches(self, view: memoryview, on_batch: OnBatch | None) -> int:
        position, end, furthest = 0, len(view), self.base_offset + MAX_RELATIVE_OFFSET
        unpack, checksum, note = HEADER.unpack_from, crc32c.crc32c, self.note
        while position + HEADER_SIZE <= end:
            fields = unpack(view, position)
            base_offset, length, _, magic, crc, _, last_delta, _, max_timestamp, producer_id, *_ = fields
            after = position + length + LOG_OVERHEAD
            if (
                magic != MAGIC
                or length < HEADER_SIZE - LOG_OVERHEAD
                or after > end
                or not self.next_offset <= base_offset <= furthest
                or last_delta < 0
                or checksum(view[position + ATTRIBUTES_AT : after]) != crc
            ):
                break
            if on_batch is not None and producer_id != NO_PRODUCER_ID:
                on_batch(position, BatchHeader._make(fields))
            note(position, length, base_offset + last_delta, max_timestamp)
            position = after
        return position

    def files(self) -> list[Path]:
        """The segment's files by name, whether they exist or not."""
        return [self.path, self.index.path, self.time_index.path, self.transaction_index_path]

    def delete(self) -> None:
        """Remove the files; readers that hold the handle go on."""
        for path in self.files():
            path.unlink(missing_ok=True)


_SWAPPED: Final = (".index", ".timeindex", ".log")
"""The log last: as long as its ``.swap`` file is there, so is the work."""


def mark_for_swap(directory: Path, base_offset: int) -> None:
    """Say that a ``.cleaned`` segment is whole and durable: from here on a crash ends with it in place."""
    for suffix in _SWAPPED:
        cleaned = directory / f"{file_name(base_offset, suffix)}.cleaned"
        if cleaned.exists():
            cleaned.replace(cleaned.with_suffix(".swap"))
    sync_directory(directory)


def finish_swap(directory: Path, base_offset: int, replaced: Sequence[int]) -> None:
    """Put a ``.swap`` segment in the place of those with the ``replaced`` base offsets. May be done again after a crash."""
    for base in replaced:
        for suffix in (".index", ".timeindex", *((".log",) if base != base_offset else ())):
            (directory / file_name(base, suffix)).unlink(missing_ok=True)
    for suffix in _SWAPPED:
        swap = directory / f"{file_name(base_offset, suffix)}.swap"
        if swap.exists():
            swap.replace(swap.with_suffix(""))
    sync_directory(directory)
