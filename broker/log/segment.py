"""A segment: one file of record batches with its offset index and time index, all named by the first offset.

A segment knows the positions of batches but not their meaning; ``broker.log.partition`` decides.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import crc32c

from broker.errors import CorruptMessage
from broker.log.files import FileHandle, sync_data, sync_file, write_all
from broker.log.headers import headers_in
from broker.log.offset_index import OffsetIndex
from broker.log.open_files import OpenFiles
from broker.log.time_index import TimeIndex
from broker.log.time_search import Stretch
from broker.protocol.records import (
    ATTRIBUTES_AT,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    crc_is_right,
)

__all__ = ["MAX_RELATIVE_OFFSET", "Segment", "file_name", "set_aside"]

MAX_RELATIVE_OFFSET: Final = 2**31 - 1
"""The largest distance of an offset from its segment's base (Kafka reads index entries as signed)."""

_CHUNK: Final = 16 * 1024
_FIND_CHUNK: Final = 6 * 1024
"""A little more than the default distance between two index entries."""
_OUTLINE: Final = struct.Struct(">qi11xi")
"""Base offset, length and last offset delta: the header fields that a search reads."""

OnBatch = Callable[[int, BatchHeader], None]
"""Is called with a batch's position in the file and its header."""


def file_name(offset: int, suffix: str) -> str:
    """Kafka's file name: the offset in 20 digits."""
    return f"{offset:020d}{suffix}"


def set_aside(path: Path) -> Path:
    """Rename an unused file to a unique name under which it may be removed later. Raises OSError."""
    return path.rename(f"{path}.{uuid.uuid4().hex}.deleted")


class Segment:
    """``size`` is the position of the next batch; bytes after it are not part of the log.

    With a ``stat`` of its file the segment exists already. The file is opened when it is needed, and may be closed
    again by ``open_files``.
    """

    __slots__ = (
        "_first_timestamp", "_handle", "_latest", "_open_files", "_stem", "_suffix", "_synced_size", "_unindexed_bytes",
        "aborts_synced", "base_offset", "has_excess", "index", "index_interval_bytes", "is_recent", "loaded", "max_timestamp",
        "max_timestamp_offset", "modified_ms", "next_offset", "size", "time_index",
    )  # fmt: skip

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        index_interval_bytes: int,
        open_files: OpenFiles | None = None,
        *,
        suffix: str = "",
        stat: os.stat_result | None = None,
    ) -> None:
        self._stem = f"{directory}/{base_offset:020d}"
        self._suffix = suffix
        self.base_offset = base_offset
        self.index_interval_bytes = index_interval_bytes
        self._open_files = open_files
        self._handle: FileHandle | None = None
        self.is_recent = False
        if stat is None:
            stat = os.fstat(self._open(create=True).fd)
        self.size = self._synced_size = stat.st_size
        self.modified_ms = stat.st_mtime_ns // 1_000_000
        self.index = OffsetIndex(self._name(".index"), base_offset)
        self.time_index = TimeIndex(self._name(".timeindex"), base_offset)
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset
        self._first_timestamp: int | None = None
        self.next_offset = base_offset
        self.loaded = self.size == 0
        self.has_excess = False
        """Whether the file may have bytes after ``size`` that the next start must not read."""
        self.aborts_synced = self.size == 0
        """Whether the transaction index is on disk; unknown for files of a process that was killed."""
        self._unindexed_bytes = 0
        self._latest: tuple[int, tuple[int, int, int]] | None = None
        """The offset from which a search ends at the last appended batch, with its result; readers at the tail of the
        log need it.
        """

    def _name(self, suffix: str) -> str:
        return f"{self._stem}{suffix}{self._suffix}"

    @property
    def handle(self) -> FileHandle:
        """The open file. Users of the descriptor must keep the handle until they are done. Raises OSError."""
        self.is_recent = True
        handle = self._handle
        return self._open() if handle is None else handle

    def _open(self, *, create: bool = False) -> FileHandle:
        files = self._open_files
        if files is not None:
            files.make_room()
        handle = self._handle = FileHandle(self._name(".log"), create=create)
        if files is not None:
            files.opened(self)
        return handle

    def _lent(self) -> FileHandle:
        """The file for another thread than the log's, which alone may open and close it for the segment."""
        handle = self._handle
        return FileHandle(self._name(".log"), create=False) if handle is None else handle

    def is_open_as(self, handle: FileHandle | None) -> bool:
        return handle is not None and self._handle is handle

    @property
    def is_synced(self) -> bool:
        """Whether nothing was appended since the last flush."""
        return self.size <= self._synced_size

    @property
    def path(self) -> Path:
        return Path(self._name(".log"))

    @property
    def transaction_index_path(self) -> Path:
        return Path(self._name(".txnindex"))

    @property
    def first_timestamp(self) -> int | None:
        """The largest timestamp of the first batch; None without batches. Raises OSError."""
        if self._first_timestamp is None and self.size:
            self._first_timestamp = BatchHeader.parse(self.read(0, HEADER_SIZE)).max_timestamp
        return self._first_timestamp

    def preallocate(self, size: int) -> None:
        """Reserve ``size`` bytes on disk for future batches (``preallocate=true``). Raises OSError."""
        if hasattr(os, "posix_fallocate") and size > self.size:
            os.posix_fallocate(self.handle.fd, 0, size)

    def trim(self) -> None:
        """Truncate unused bytes: preallocated ones, or those that were written and taken back. Raises OSError."""
        handle = self.handle
        if os.fstat(handle.fd).st_size > self.size:
            os.ftruncate(handle.fd, self.size)
        self.has_excess = False

    def append(self, buffers: Sequence[bytes | memoryview], headers: Sequence[BatchHeader]) -> None:
        """Write batches (``headers`` as they are in ``buffers``) at the end.

        Raises OSError and leaves the segment unchanged if the disk does not accept them.
        """
        position, handle = self.size, self.handle
        try:
            write_all(handle.fd, buffers, position)
        except OSError:
            self._cut_off(position)
            raise
        for header in headers:
            base_offset, length = header.base_offset, header.length
            size = length + LOG_OVERHEAD
            self._latest = (self.next_offset, (position, base_offset, size))
            self.note(position, length, base_offset + header.last_offset_delta, header.max_timestamp)
            position += size
        self.size = position

    def cut(self, position: int, offset: int) -> None:
        """Drop the batches from ``position`` on, where the batch with ``offset`` begins.

        Does not fail, whatever the disk does.
        """
        self.size, self.next_offset, self._latest = position, offset, None
        self._synced_size = min(self._synced_size, position)
        self._cut_off(position)
        for index in (self.index, self.time_index):
            index.drop_from(offset)
        self.max_timestamp, self.max_timestamp_offset = self.time_index.last or (NO_TIMESTAMP, self.base_offset)
        if not self.size:
            self._first_timestamp = None
        self._unindexed_bytes = 0
        with contextlib.suppress(OSError, CorruptMessage):  # if it cannot be read, only the indexes are known
            for at, header in self.headers(self.index.last[1] if self.index.last else 0):
                self.note(at, header.length, header.last_offset, header.max_timestamp)
        self.next_offset = offset

    def _cut_off(self, position: int) -> None:
        """Truncate the file. Nothing here reads after ``size``, but the next start would."""
        try:
            os.ftruncate(self.handle.fd, position)
        except OSError:
            self.has_excess = True

    def note(self, position: int, length: int, last_offset: int, max_timestamp: int) -> None:
        """Account for the batch at ``position``: indexes, timestamps, next offset. ``length`` is that of its header."""
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if self._first_timestamp is None:
            self._first_timestamp = max_timestamp
        if self._unindexed_bytes > self.index_interval_bytes:
            self.index.append(last_offset, position)
            self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
            self._unindexed_bytes = 0
        self._unindexed_bytes += length + LOG_OVERHEAD
        self.next_offset = last_offset + 1

    def load(self) -> None:
        """Read the index files of a closed segment. Rebuild them if they are missing or damaged."""
        if not self._load_indexes():
            self.recover(truncate=False)

    def _load_indexes(self, before: int | None = None) -> bool:
        """Whether the files are valid for offsets below ``before``; later entries are dropped."""
        if not (self.index.load(self.size) and self.time_index.load()):
            return False
        if before is not None:
            self.index.drop_from(before)
            self.time_index.drop_from(before)
        if not self._last_entry_fits():
            return False
        last = self.time_index.last
        if last is not None:
            self.max_timestamp, self.max_timestamp_offset = last
        elif len(self.index) and self.first_timestamp != NO_TIMESTAMP:
            return False
        self.loaded = True
        return True

    def load_active(self, trusted_until: int | None = None, *, doubted_bytes: int = 0) -> int | None:
        """Load the indexes and read the batches after their last entries, up to the offset ``trusted_until`` (None: the
        end).

        Returns the position reached; None if something is invalid or the offset is missing: call ``recover`` then.
        Reads only headers, and only those after the last entry of the offset index. Entries for the last
        ``doubted_bytes`` are rebuilt, because the two indexes may have been written to disk to different extents.
        """
        if self.size == 0:
            return 0
        if self.size <= self.index_interval_bytes:
            self.loaded = True  # too small for an entry: the files' content is ignored
        elif not self._load_indexes(trusted_until):
            return None
        if doubted_bytes and self.index.last:
            kept = self.index.entry_at(max(self.index.last[1] - doubted_bytes, 0))
            for index in (self.index, self.time_index):
                index.drop_from(self.base_offset if kept is None else kept[0] + 1)
            self.max_timestamp, self.max_timestamp_offset = self.time_index.last or (NO_TIMESTAMP, self.base_offset)
        self._unindexed_bytes = 0
        position = self.index.last[1] if self.index.last else 0
        try:
            for at, header in self.headers(position):
                if trusted_until is not None and header.base_offset >= trusted_until:
                    return at
                self.note(at, header.length, header.last_offset, header.max_timestamp)
                position = at + header.size
        except CorruptMessage:
            return position if trusted_until is not None and self.next_offset >= trusted_until else None
        return position if trusted_until is None or self.next_offset >= trusted_until else None

    def _last_entry_fits(self) -> bool:
        """Whether the offset index's last entry points at the right batch."""
        last = self.index.last
        if last is None:
            return True
        offset, position = last
        try:
            return BatchHeader.parse(self.read(position, HEADER_SIZE)).last_offset == offset
        except CorruptMessage:
            return False

    def load_summary(self, next_offset: int) -> None:
        """Read a closed segment's largest timestamp without its indexes. Rebuild them if they are damaged."""
        last = self.time_index.peek()
        if not self.index.looks_whole() or (last is None and self.first_timestamp != NO_TIMESTAMP):
            self.recover(truncate=False)
            self.unload()
        elif last is not None:
            self.max_timestamp, self.max_timestamp_offset = last
        self.next_offset = next_offset

    def ensure_loaded(self) -> None:
        """Load the indexes into memory; those of closed segments are loaded when needed."""
        if not self.loaded:
            self.load()

    def unload(self) -> None:
        """Drop the indexes of a closed segment from memory; their files stay."""
        self.index.save()
        self.time_index.save()
        self.index = OffsetIndex(self._name(".index"), self.base_offset)
        self.time_index = TimeIndex(self._name(".timeindex"), self.base_offset)
        self.loaded = self.size == 0

    def release(self) -> None:
        """Close the file once no reader uses it. It is reopened when needed."""
        if self._handle is not None:
            self._handle = None
            if self._open_files is not None:
                self._open_files.closed(self)

    def close_indexes(self) -> None:
        """Add the final time entry, as Kafka does when a segment is closed, and write both index files."""
        if not self.loaded:
            return
        self.time_index.append(self.max_timestamp, self.max_timestamp_offset)
        self.index.save()
        self.time_index.save()

    def sync(self, *, closed: bool) -> None:
        """Flush the batches to disk, and for a closed segment its indexes too, because they will be trusted.

        Raises OSError.
        """
        handle, size, aborts_synced = self._lent(), self.size, self.aborts_synced
        sync_data(handle.fd)
        self._synced_size = size
        # If the file does not exist, the segment was deleted or compacted in between.
        if not aborts_synced:
            self.aborts_synced = True
            try:
                sync_file(self._name(".txnindex"))
            except OSError:
                self.aborts_synced = False
                raise
        if closed:
            sync_file(self._name(".index"))
            sync_file(self._name(".timeindex"))

    def rewrite(self, from_offset: int) -> bool:
        """Rewrite the batches from an offset on in place, for the next ``sync``. False if one is damaged.

        Earlier ones are on disk and stay untouched, because a power cut may damage what is being written. Thread-safe
        while nothing is appended. Raises OSError, and CorruptMessage for an incomplete batch.
        """
        handle = self._lent()
        start = self.index.position_for(from_offset)
        for position, header in headers_in(handle, start, self.size, self._name(".log")):
            if header.last_offset < from_offset:
                continue
            batch = handle.read(position, header.size)
            if len(batch) != header.size or not crc_is_right(memoryview(batch), 0, header):
                return False
            write_all(handle.fd, [batch], position)
        return True

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers from the batch at ``position`` on. Raises CorruptMessage for an incomplete batch."""
        return headers_in(self.handle, position, self.size, self._name(".log"))

    def find(self, offset: int) -> tuple[int, int, int] | None:
        """(position, base offset, size) of the first batch whose last offset is not below ``offset``, or None.

        Raises CorruptMessage if it meets an incomplete batch.
        """
        latest = self._latest
        if latest is not None and offset >= latest[0]:
            return latest[1] if offset < self.next_offset else None
        self.ensure_loaded()
        position, end, unpack = self.index.position_for(offset), self.size, _OUTLINE.unpack_from
        while position < end:
            chunk = self.read(position, min(_FIND_CHUNK, end - position))
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

    def stretch_since(self, timestamp_ms: int, from_offset: int) -> Stretch:
        """Where to look for a record that is not older than a time and not before ``from_offset``, by the indexes."""
        self.ensure_loaded()
        start = max(self.time_index.offset_before(timestamp_ms), from_offset)
        return self.stretch(self.index.position_for(start))

    def stretch_from(self, offset: int) -> Stretch:
        """The batches from the one that contains the offset. Raises CorruptMessage if it meets an incomplete batch."""
        result = self.find(offset)
        return self.stretch(self.size if result is None else result[0])

    def stretch(self, position: int = 0) -> Stretch:
        """The batches from a position on."""
        return Stretch(self._name(".log"), position, self.size)

    def read(self, position: int, size: int) -> bytes:
        return self.handle.read(position, size)

    def recover(self, on_batch: OnBatch | None = None, *, truncate: bool = True, from_position: int = 0) -> int:
        """Check every batch, truncate the file at the first bad one, and rebuild the indexes. Returns the valid size.

        Each batch must be complete, have the right checksum and begin at the next offset or above. ``on_batch`` gets
        the valid ones of idempotent producers. Batches below ``from_position``, the result of ``load_active``, are
        trusted.
        """
        if not from_position:
            self.index.clear()
            self.time_index.clear()
            self.max_timestamp, self.max_timestamp_offset, self._first_timestamp = NO_TIMESTAMP, self.base_offset, None
            self.next_offset, self._unindexed_bytes, self.loaded = self.base_offset, 0, True
        self._latest = None
        good = from_position
        handle = self.handle
        if self.size > from_position:
            with mmap.mmap(handle.fd, self.size, prot=mmap.PROT_READ) as mapped, memoryview(mapped) as view:
                good = self._check_batches(view, from_position, on_batch)
        if good != self.size and truncate:
            os.ftruncate(handle.fd, good)
            os.fsync(handle.fd)
            self.size = good
            self._synced_size = min(self._synced_size, good)
        self.close_indexes()
        return good

    def _check_batches(self, view: memoryview, position: int, on_batch: OnBatch | None) -> int:
        end, furthest = len(view), self.base_offset + MAX_RELATIVE_OFFSET
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
        return [Path(self._name(suffix)) for suffix in (".log", ".index", ".timeindex", ".txnindex")]

    def delete(self, bury: Callable[[Path], None] | None = None) -> None:
        """Delete the files; ``bury`` gets those that are set aside to be removed later. Readers with a handle can
        continue.

        Raises OSError if the batches stay. The other files are useless without them and may be removed later.
        """
        batches, *others = self.files()
        self.release()
        if bury is None:
            batches.unlink(missing_ok=True)
            for path in others:
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
            return
        with contextlib.suppress(FileNotFoundError):
            bury(set_aside(batches))
        for path in others:
            try:
                bury(set_aside(path))
            except FileNotFoundError:
                pass
            except OSError:
                bury(path)
