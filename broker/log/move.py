"""Moves a partition to another data directory (KIP-113): copies it while it accepts writes, then swaps it in."""

from __future__ import annotations

import os
import shutil
import uuid
from typing import Final, NamedTuple

from broker.log.directory import LogDirectory
from broker.log.disk import FUTURE, Disk
from broker.log.files import storage_errors, sync_data, sync_directory
from broker.log.partition import PartitionLog
from broker.log.recovery import open_partition
from broker.log.segment import file_name

__all__ = ["Move", "Source"]

_BESIDE: Final = (".index", ".timeindex", ".txnindex")
_OF_ALL: Final = ("partition.metadata", "leader-epoch-checkpoint")
_CHUNK: Final = 8 * 1024 * 1024


class Source(NamedTuple):
    """A segment's current state: the valid size of its file, and whether it is closed, with complete indexes."""

    base_offset: int
    size: int
    is_closed: bool


class Move:
    """``sources`` and ``finish`` run on the log's thread.

    ``copy`` runs on any, repeatedly while there is more to copy.
    """

    def __init__(self, log: PartitionLog, target: Disk) -> None:
        self.log = log
        self.target = target
        self.directory = target.path / f"{log.topic[:200]}-{log.partition}.{uuid.uuid4().hex}{FUTURE}"
        self.end_offset = log.log_start_offset
        """The offset up to which everything is copied."""
        self._copied: dict[int, tuple[int, int]] = {}

    @property
    def size(self) -> int:
        """Bytes of records copied so far."""
        return sum(size for _, size in self._copied.values())

    def sources(self) -> tuple[list[Source], int]:
        """The segments to copy, and the end of the log."""
        segments = self.log.segments
        result = [Source(segment.base_offset, segment.size, segment is not segments.active) for segment in segments]
        return result, self.log.log_end_offset

    def copy(self, sources: list[Source], end_offset: int) -> int:
        """Bring the copy up to date with ``sources``, on disk. Returns the bytes copied. Raises KafkaStorageError."""
        with storage_errors(f"copy {self.log.directory} to {self.directory}"):
            self.directory.mkdir(exist_ok=True)
            for gone in self._copied.keys() - {source.base_offset for source in sources}:
                self._remove(gone)
            copied = sum(self._copy_segment(source) for source in sources)
        self.end_offset = end_offset
        return copied

    def _copy_segment(self, source: Source) -> int:
        name = file_name(source.base_offset, ".log")
        try:
            with (self.log.directory / name).open("rb") as read:
                number = os.fstat(read.fileno()).st_ino
                before, done = self._copied.get(source.base_offset, (number, 0))
                if before != number or done > source.size:  # compacted in between
                    self._remove(source.base_offset)
                    done = 0
                with (self.directory / name).open("r+b" if done else "wb") as written:
                    _copy_range(read.fileno(), written.fileno(), done, source.size)
                    sync_data(written.fileno())
            if source.is_closed:
                self._copy_beside(source.base_offset)
        except FileNotFoundError:
            return 0  # deleted since the list was made: the next list does not have it
        self._copied[source.base_offset] = number, source.size
        return source.size - done

    def _copy_beside(self, base_offset: int) -> None:
        for suffix in _BESIDE:
            name = file_name(base_offset, suffix)
            if (self.log.directory / name).exists():
                shutil.copyfile(self.log.directory / name, self.directory / name)

    def _remove(self, base_offset: int) -> None:
        for suffix in (".log", *_BESIDE):
            (self.directory / file_name(base_offset, suffix)).unlink(missing_ok=True)
        self._copied.pop(base_offset, None)

    def finish(self, directory: LogDirectory) -> None:
        """Copy the rest, and continue the log in its new directory. Raises KafkaStorageError.

        The new directory gets its final name before the old one is removed. A start that finds both uses one and sets
        the other aside.
        """
        log, before = self.log, self.log.directory
        self.copy(*self.sources())
        home = directory.disk_of(log)
        with storage_errors(f"move {before} to {self.directory}"), log.flusher.quiet():
            log.recovery_files.save_indexes()
            self._copy_beside(log.active.base_offset)
            for name in _OF_ALL:
                if (before / name).exists():
                    shutil.copyfile(before / name, self.directory / name)
            snapshot = self.directory / file_name(log.log_end_offset, ".snapshot")
            snapshot.write_bytes(log.producers.snapshot())
            sync_directory(self.directory)
            after = self.target.path / f"{log.topic}-{log.partition}"
            self.directory.rename(after)
            sync_directory(self.target.path)
            log.directory = after
            log.reset()
            open_partition(log, clean=True, recovery_point=log.log_end_offset, log_start_offset=log.log_start_offset)
            home.remove_moved(log)
            self.target.adopt(log)
            home.bury(before, log)

    def discard(self) -> None:
        """Remove the copy."""
        shutil.rmtree(self.directory, ignore_errors=True)


def _copy_range(read: int, written: int, start: int, end: int) -> None:
    position = start
    os.lseek(written, start, os.SEEK_SET)
    while position < end:
        data = os.pread(read, min(_CHUNK, end - position), position)
        if not data:
            raise OSError(f"the file ends at {position}, not at {end}")
        view = memoryview(data)
        while view:
            view = view[os.write(written, view) :]
        position += len(data)
