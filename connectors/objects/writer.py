"""The one writer of all object sinks: a topic partition's records into files, and finished files into a store.

Exactly once comes from three things together. Where a file ends depends on the records alone (but for
``rotate.schedule.interval.ms``), so after a restart the same files are made again. A file's name holds the offset of its
first record, so the same file has the same name and replaces itself. And only offsets before the first record of an open
file are committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connect.api import DataError, RecordBatch, Schema, TopicPartition
from connectors.objects.config import ObjectSinkConfig
from connectors.objects.formats import FileFormat, OpenFile
from connectors.objects.partitioners import Encoded, Partitioner
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
    key_format: FileFormat | None
    partitioner: Partitioner
    store: Store
    staging: Path
    now_ms: Callable[[], int]
    refuse: Callable[[RecordBatch, str], None]
    """Called with rows that cannot be stored, and the reason; raises where errors are not tolerated."""


@dataclass(slots=True)
class _Open:
    """The open files of one folder: values, and keys where they are stored."""

    file: OpenFile
    path: Path
    first: int
    last: int
    keys: OpenFile | None = None
    keys_path: Path | None = None

    def write(self, rows: RecordBatch) -> None:
        assert rows.offsets is not None
        self.file.write(rows.values)
        if self.keys is not None:
            self.keys.write(rows.keys)
        self.last = rows.offsets[-1].as_py()

    def close(self) -> None:
        self.file.close()
        if self.keys is not None:
            self.keys.close()

    def discard(self) -> None:
        self.file.discard()
        self.path.unlink(missing_ok=True)
        if self.keys is not None and self.keys_path is not None:
            self.keys.discard()
            self.keys_path.unlink(missing_ok=True)


class PartitionWriter:
    """Writes files of one topic partition.

    ``committed`` is the offset before which every record is in the store, None before the first commit. Records that
    were put before are skipped, so that a failed ``put`` can be repeated as a whole.
    """

    def __init__(self, parts: WriterParts, partition: TopicPartition) -> None:
        self.committed: int | None = None
        self._parts, self._partition = parts, partition
        self._rotation = Rotation(parts.config, parts.now_ms)
        self._open: dict[str, _Open] = {}
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
        self._check_keys(left)
        other_keys = self._parts.key_format is not None and self._key_schema != left.key_schema
        if self._open and (other_keys or must_rotate(self._rule, self._schema, left.value_schema)):
            self._rotate()
        if not self._open:
            self._schema, self._key_schema = left.value_schema, left.key_schema
        self._write(project(left, self._schema))

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
            codes = encoded.codes[start:] if encoded.codes is not None else None

            def folder_of(row: int, first: int = start) -> str:
                return encoded.folders[int(encoded.codes[first + row]) if encoded.codes is not None else 0]

            fit = self._rotation.fitting(times[start:] if times is not None else None, codes, folder_of)
            fit = self._room(encoded.folders, codes, min(fit, len(batch) - start))
            if fit == 0:
                self._rotate()
                self._schema = batch.value_schema
                continue
            stop = min(start + fit, len(batch))
            self._add(batch.slice(start, stop - start), encoded.folders, codes)
            first_ms = int(times[start]) if times is not None else None
            self._rotation.added(stop - start, first_ms, folder_of(stop - start - 1))
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
        return batch.filter(pa.array(kept)), Encoded(encoded.folders, encoded.codes[kept])

    def _room(self, folders: Sequence[str], codes: Any, rows: int) -> int:
        """How many of these rows can be written before too many files are open: like every rule that ends a file, it
        depends on the records only.
        """
        if codes is None or len(self._open) + min(rows, len(folders)) <= _MOST_OPEN:
            return rows
        present, firsts = np.unique(codes[:rows], return_index=True)
        added = sorted(
            first
            for code, first in zip(present.tolist(), firsts.tolist(), strict=True)
            if folders[code] not in self._open
        )
        room = _MOST_OPEN - len(self._open)
        return rows if len(added) <= room else added[room]

    def _times(self, batch: RecordBatch) -> Millis | None:
        config = self._parts.config
        if not self._rotation.by_record_time:
            return None
        return timestamps_of(config.extractor, config.timestamp_field, batch, self._parts.now_ms)

    def _add(self, rows: RecordBatch, folders: Sequence[str], codes: Any) -> None:
        assert rows.offsets is not None
        if codes is None:
            self._append(folders[0], rows)
        else:
            codes = codes[: len(rows)]
            present = np.unique(codes).tolist()
            for code in present:
                self._append(folders[code], rows.filter(pa.array(codes == code)) if len(present) > 1 else rows)
        self._next = rows.offsets[-1].as_py() + 1
        self._last_ms = rows.timestamps_ms[-1].as_py() if rows.timestamps_ms is not None else None

    def _append(self, folder: str, rows: RecordBatch) -> None:
        if folder not in self._open:
            self._open[folder] = self._opened(rows)
        self._open[folder].write(rows)

    def _opened(self, rows: RecordBatch) -> _Open:
        assert rows.offsets is not None
        self._made += 1
        path = self._parts.staging / f"{self._partition}-{self._made}"
        first = rows.offsets[0].as_py()
        opened = _Open(self._parts.format.open(path, self._schema), path, first, first)
        if self._parts.key_format is not None:
            opened.keys_path = path.with_name(f"{path.name}.keys")
            opened.keys = self._parts.key_format.open(opened.keys_path, self._key_schema)
        return opened

    def _check_keys(self, batch: RecordBatch) -> None:
        if self._parts.key_format is None or (batch.keys is not None and not batch.keys.null_count):
            return
        row = 0 if batch.keys is None else int(pc.index(batch.keys.is_null(), True).as_py())
        raise DataError(
            f"record {row} of a batch of {batch.topic!r} has no key, and store.kafka.keys is true", rows=[row]
        )

    def _rotate(self) -> None:
        """Close all open files, and commit them together."""
        for folder, opened in self._open.items():
            opened.close()
            if opened.keys_path is not None and self._parts.key_format is not None:
                extension = f".keys{self._parts.key_format.extension}"
                self._waiting.append(Finished(opened.keys_path, self._name(folder, opened, extension)))
            self._waiting.append(Finished(opened.path, self._name(folder, opened, self._parts.format.extension)))
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
