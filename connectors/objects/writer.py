"""The one writer of all object sinks: a topic partition's records into files, and finished files into a store.

Exactly once comes from three things together. Where a file ends depends on the records alone (but for
``rotate.schedule.interval.ms``), so after a restart the same files are made again. A file's name holds the offset of its
first record, so the same file has the same name and replaces itself. And only offsets before the first record of an open
file are committed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import RecordBatch, Schema, TopicPartition
from connectors.objects.beside import Beside
from connectors.objects.config import ObjectSinkConfig
from connectors.objects.formats import FileFormat, OpenFile
from connectors.objects.partitioners import Encoded, Folder, Partitioner
from connectors.objects.rotation import Rotation
from connectors.objects.schemas import must_rotate, project
from connectors.objects.store import Finished, Mark, Store
from connectors.objects.timestamps import Millis, timestamps_of

__all__ = ["PartitionWriter", "WriterParts"]

_MOST_OPEN: Final = 250
"""Folders with open files: a process can have some thousand open files, which its tasks share."""


@dataclass(frozen=True, slots=True)
class WriterParts:
    """Objects that the writers of all partitions of a task share. ``staging`` is a folder for incomplete files."""

    config: ObjectSinkConfig
    format: FileFormat
    beside: Sequence[Beside]
    """The parts of a record that are stored beside its value."""
    partitioner: Partitioner
    store: Store
    staging: Path
    now_ms: Callable[[], int]
    refuse: Callable[[RecordBatch, str], None]
    """Called with rows that cannot be stored, and the reason; raises where errors are not tolerated."""


@dataclass(slots=True)
class _File:
    """A file being written; what follows the offsets in its name, and what it holds of rows."""

    file: OpenFile
    path: Path
    extension: str
    of: Callable[[RecordBatch], pa.Array]


@dataclass(slots=True)
class _Open:
    """The open files of one folder: values unless they are tombstones, and keys and headers where they are stored."""

    files: list[_File]
    first: int
    last: int

    def write(self, rows: RecordBatch) -> None:
        assert rows.offsets is not None
        columns = [each.of(rows) for each in self.files]
        for each, column in zip(self.files, columns, strict=True):
            each.file.write(column)
        self.last = rows.offsets[-1].as_py()

    def close(self) -> None:
        for each in self.files:
            each.file.close()

    def discard(self) -> None:
        for each in self.files:
            with contextlib.suppress(OSError):  # a full disk takes the end of a file no more than its rows
                each.file.discard()
            each.path.unlink(missing_ok=True)


class PartitionWriter:
    """Writes files of one topic partition.

    ``committed`` is the offset before which every record is in the store, None before the first commit. Records that
    were put before are skipped, so that a failed ``put`` can be repeated as a whole.
    """

    def __init__(self, parts: WriterParts, partition: TopicPartition) -> None:
        self.committed: int | None = None
        self.first: int | None = None
        """The offset of the first record that was put."""
        self._parts, self._partition = parts, partition
        self._rotation = Rotation(parts.config, parts.now_ms)
        self._open: dict[Folder, _Open] = {}
        self._schema: Schema | None = None
        self._key_schema: Schema | None = None
        self._next = -1
        self._last_ms: int | None = None
        self._waiting: list[Finished] = []
        self._made = 0

    @property
    def buffered(self) -> bool:
        """Whether there are records that were put but are not in the store yet."""
        return bool(self._open or self._waiting)

    def put(self, batch: RecordBatch) -> None:
        """Write the batch's records, and commit files that become complete."""
        self._commit()
        self.tick()
        left = self._unseen(batch)
        if not len(left):
            return
        if self.first is None:
            assert left.offsets is not None
            self.first = left.offsets[0].as_py()
        for beside in self._parts.beside:  # before any row is written, so that rows of files stay side by side
            left = beside.prepared(left)
        for part in _after_tombstones(left):
            self._put(part)

    def _put(self, rows: RecordBatch) -> None:
        """Write rows that all are tombstones or begin with a value: only a value ends files by its schema, wherever
        batches end.
        """
        has_values = rows.values.null_count < len(rows)
        other_keys = bool(self._parts.beside) and self._key_schema != rows.key_schema
        values_open = any(not tombstones for _, tombstones in self._open)
        other_values = has_values and values_open and must_rotate(self._rule, self._schema, rows.value_schema)
        if self._open and (other_keys or other_values):
            self._rotate()
            values_open = False
        if not self._open:
            self._key_schema = rows.key_schema
        if not values_open:
            self._schema = rows.value_schema
        self._write(project(rows, self._schema) if has_values else rows)

    def pass_over(self, next_offset: int) -> None:
        """Skip records before ``next_offset``: they are in the store already."""
        self._next = max(self._next, next_offset)

    def tick(self) -> None:
        """Close files whose time is over."""
        if self._rotation.due:
            self._rotate()

    def finish(self) -> None:
        """Commit the open files now."""
        self._rotate()

    def discard(self) -> None:
        """Discard records that are not in the store; they will be delivered again."""
        for opened in self._open.values():
            opened.discard()
        for finished in self._waiting:
            finished.path.unlink(missing_ok=True)
        self._open, self._waiting = {}, []

    @property
    def _rule(self) -> str:
        return self._parts.config.schema_compatibility.upper()

    def _unseen(self, batch: RecordBatch) -> RecordBatch:
        assert batch.offsets is not None
        if self._next <= 0 or not len(batch) or batch.offsets[0].as_py() >= self._next:
            return batch
        seen = int(np.searchsorted(batch.offsets.to_numpy(), self._next))
        return batch.slice(seen)

    def _write(self, batch: RecordBatch) -> None:
        assert batch.offsets is not None
        end = batch.offsets[-1].as_py() + 1
        batch, encoded = self._storable(batch, self._parts.partitioner.encode(batch))
        times = self._times(batch)
        start = 0
        while start < len(batch):
            left = encoded.rest(start)
            fit = self._rotation.fitting(times[start:] if times is not None else None, left)
            fit = self._room(left, min(fit, len(batch) - start))
            if fit == 0:
                self._rotate()
                self._schema = batch.value_schema
                continue
            stop = min(start + fit, len(batch))
            self._add(batch.slice(start, stop - start), left)
            first_ms = int(times[start]) if times is not None else None
            self._rotation.added(stop - start, first_ms, left.last_folder(stop - start))
            start = stop
            if self._rotation.full:
                self._rotate()
                self._schema = batch.value_schema

        self._next = max(self._next, end)  # after rows that were rejected

    def _storable(self, batch: RecordBatch, encoded: Encoded) -> tuple[RecordBatch, Encoded]:
        """The rows whose folder names are valid; the others are rejected."""
        store, delimiter = self._parts.store, self._parts.config.directory_delim
        problems = {
            n: why for n, folder in enumerate(encoded.folders) if (why := store.folder_problem(folder, delimiter))
        }
        if not problems or encoded.codes is None:
            return batch, encoded
        for code, why in problems.items():
            self._parts.refuse(batch.filter(pa.array(encoded.codes == code)), why)
        kept = ~np.isin(encoded.codes, list(problems))
        return batch.filter(pa.array(kept)), Encoded(encoded.folders, encoded.codes[kept], encoded.tombstones)

    def _room(self, encoded: Encoded, rows: int) -> int:
        """How many of these rows can be written before too many files are open: like every rule that ends a file, it
        depends on the records only.
        """
        if encoded.codes is None or len(self._open) + min(rows, len(encoded.folders)) <= _MOST_OPEN:
            return rows
        present, firsts = np.unique(encoded.codes[:rows], return_index=True)
        added = sorted(
            first
            for code, first in zip(present.tolist(), firsts.tolist(), strict=True)
            if encoded.name(code) not in self._open
        )
        room = _MOST_OPEN - len(self._open)
        return rows if len(added) <= room else added[room]

    def _times(self, batch: RecordBatch) -> Millis | None:
        config = self._parts.config
        if not self._rotation.by_record_time:
            return None
        return timestamps_of(config.extractor, config.timestamp_field, batch, self._parts.now_ms)

    def _add(self, rows: RecordBatch, encoded: Encoded) -> None:
        assert rows.offsets is not None
        if encoded.codes is None:
            self._append(encoded.name(0), rows)
        else:
            codes = encoded.codes[: len(rows)]
            present = np.unique(codes).tolist()
            for code in present:
                self._append(encoded.name(code), rows.filter(pa.array(codes == code)) if len(present) > 1 else rows)
        self._next = rows.offsets[-1].as_py() + 1
        self._last_ms = rows.timestamps_ms[-1].as_py() if rows.timestamps_ms is not None else None

    def _append(self, folder: Folder, rows: RecordBatch) -> None:
        if folder not in self._open:
            self._open[folder] = self._opened(rows, tombstones=folder.tombstones)
        self._open[folder].write(rows)

    def _opened(self, rows: RecordBatch, *, tombstones: bool) -> _Open:
        assert rows.offsets is not None
        self._made += 1
        path = self._parts.staging / f"{self._partition}-{self._made}"
        first = rows.offsets[0].as_py()
        opened = _Open([], first, first)
        if not tombstones:
            made = self._parts.format
            opened.files.append(_File(made.open(path, self._schema), path, made.extension, lambda rows: rows.values))
        for beside in self._parts.beside:
            path_beside = path.with_name(f"{path.name}{beside.suffix}")
            file = beside.open(path_beside, self._key_schema)
            opened.files.append(_File(file, path_beside, beside.extension, beside.rows))
        return opened

    def _rotate(self) -> None:
        """Close all open files, and commit them together."""
        for folder, opened in self._open.items():
            opened.close()
            self._waiting += [
                Finished(each.path, self._name(folder.name, opened, each.extension)) for each in opened.files
            ]
        self._open = {}
        self._rotation.begin()
        self._commit()

    def _commit(self) -> None:
        if not self._waiting:
            return
        self._parts.store.commit(self._partition, self._waiting, Mark(self._next, self._last_ms))
        for finished in self._waiting:
            finished.path.unlink(missing_ok=True)
        self._waiting = []
        self.committed = self._next

    def _name(self, folder: str, opened: _Open, extension: str) -> str:
        """``<topics.dir>/<topic>/<folder>/<topic>+<partition>+<first offset>[+<last offset>]<extension>``."""
        config = self._parts.config
        offsets = [opened.first, opened.last] if self._parts.store.names_end_offset else [opened.first]
        numbers = [str(offset).zfill(config.pad_width) for offset in offsets]
        topic, partition = self._partition
        file = config.file_delim.join([topic, str(partition), *numbers]) + extension
        return config.directory_delim.join([*filter(None, [config.topics_dir]), topic, folder, file])


def _after_tombstones(batch: RecordBatch) -> Sequence[RecordBatch]:
    """The tombstones that a batch begins with, and the rows from the first value on."""
    if not batch.values.null_count:
        return [batch]
    first = int(pc.index(batch.values.is_valid(), True).as_py())
    if first <= 0:
        return [batch]
    return [batch.slice(0, first), batch.slice(first)]
