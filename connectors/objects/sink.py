"""The task that all object sinks share; each adds its store."""

from __future__ import annotations

import errno
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from connect.api import (
    ConnectError,
    DataError,
    Dataset,
    Problem,
    RecordBatch,
    RetriableConnectError,
    SinkContents,
    SinkTask,
    TidegateError,
    TopicPartition,
)
from connectors.objects.config import ObjectSinkConfig
from connectors.objects.formats import format_of
from connectors.objects.store import Finished, Mark, Store

if TYPE_CHECKING:
    from connectors.objects.beside import Beside
    from connectors.objects.writer import PartitionWriter, WriterParts

__all__ = ["ObjectSinkTask", "store_problems"]

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})

ConfigT = TypeVar("ConfigT", bound=ObjectSinkConfig)


class ObjectSinkTask(SinkTask[ConfigT]):
    """Creates one writer per topic partition.

    Files are written to a temporary local folder and stored once they are complete.
    """

    def __init__(self, config: ConfigT, context: Any) -> None:
        super().__init__(config, context)
        self._writers: dict[TopicPartition, PartitionWriter] = {}
        self._marks: dict[TopicPartition, Mark] = {}

    def start(self) -> None:
        staging = self.resources.enter_context(
            tempfile.TemporaryDirectory(prefix="tidegate-objects-", ignore_cleanup_errors=True)
        )
        self._staging = Path(staging)
        self._store = self.make_store()
        self.resources.callback(self._store.close)
        self._parts = self._writer_parts(self._store, self._staging)

    def _writer_parts(
        self, store: Store, staging: Path, refuse: Callable[[RecordBatch, str], None] | None = None
    ) -> WriterParts:
        from connectors.objects.partitioners import partitioner_of
        from connectors.objects.writer import WriterParts

        return WriterParts(
            config=self.config,
            format=format_of(self.config.format_class, self.config.options),
            beside=self._beside(),
            partitioner=partitioner_of(self.config, self.now_ms),
            store=store,
            staging=staging,
            now_ms=self.now_ms,
            refuse=refuse or self._refuse,
        )

    def _beside(self) -> Sequence[Beside]:
        from connectors.objects.beside import Headers, Keys

        config = self.config
        kinds: list[tuple[bool, type[Beside], str]] = [
            (config.store_keys, Keys, config.keys_format_class),
            (config.store_headers, Headers, config.headers_format_class),
        ]
        return [made(format_of(name, config.options)) for wanted, made, name in kinds if wanted]

    def _refuse(self, rows: RecordBatch, why: str) -> None:
        for record in rows.records():
            error = DataError(f"the record at offset {record.offset} of {record.topic!r} cannot be stored: {why}")
            self.context.errant_records.report(record, error)

    def dataset(self, topic: str) -> Dataset | None:
        return Dataset.of_location("/".join(filter(None, [self.location.rstrip("/"), self.config.topics_dir, topic])))

    @property
    @abstractmethod
    def location(self) -> str:
        """The URL of the store's root."""

    @abstractmethod
    def make_store(self) -> Store:
        """The store; it connects at its first use."""

    def now_ms(self) -> int:
        """The clock for rules that depend on the current time."""
        return time.time_ns() // 1_000_000

    def open(self, partitions: Sequence[TopicPartition]) -> None:
        """Where the store knows how far a partition is stored, continue there: at the last record stored, to verify
        that it is the same record.
        """
        for partition in partitions:
            mark = self._store.recover(partition)
            if mark is not None:
                self._marks[partition] = mark
                known = mark.last_timestamp_ms is not None
                self.context.rewind({partition: mark.next_offset - 1 if known else mark.next_offset})

    def close(self, partitions: Sequence[TopicPartition]) -> None:
        """Discard open files: the partition's next owner creates them again from the committed offset."""
        for partition in partitions:
            self._marks.pop(partition, None)
            if (writer := self._writers.pop(partition, None)) is not None:
                writer.discard()

    def put(self, batches: Sequence[RecordBatch]) -> None:
        for batch in batches:
            partition = _partition_of(batch)
            if partition in self._marks and len(batch):
                _recognize(self._marks[partition], partition, batch)
                self._writer(partition).pass_over(self._marks.pop(partition).next_offset)
            with self._room(partition):
                self._writer(partition).put(self._without_nulls(batch))
        for partition in [*self._writers]:
            with self._room(partition):
                self._writers[partition].tick()

    @contextmanager
    def _room(self, partition: TopicPartition) -> Iterator[None]:
        """Where this machine's disk has no room for an open file, the partition's open files are made anew."""
        try:
            yield
        except OSError as error:
            if error.errno not in _FULL:
                raise
            writer = self._writers.pop(partition)
            writer.discard()
            again = writer.committed if writer.committed is not None else writer.first
            if again is not None:
                self.context.rewind({partition: again})
            raise RetriableConnectError(
                f"there is no room on the disk of {self._staging} for the files of {partition}"
            ) from error

    def _writer(self, partition: TopicPartition) -> PartitionWriter:
        from connectors.objects.writer import PartitionWriter

        if partition not in self._writers:
            self._writers[partition] = PartitionWriter(self._parts, partition)
        return self._writers[partition]

    def _without_nulls(self, batch: RecordBatch) -> RecordBatch:
        """The batch without tombstones that are not written. They are dropped or reported to ``errors.*``; that raises
        where they are not tolerated.
        """
        if not batch.values.null_count or self.config.writes_tombstones:
            return batch
        present = batch.values.is_valid()
        rule = self.config.null_values.lower()
        if rule == "fail" or (self.config.report_nulls and self._has_dead_letters):
            message = f"a record of {batch.topic!r} has no value, and behavior.on.null.values is {rule}"
            for record in batch.filter(batch.values.is_null()).records():
                self.context.errant_records.report(record, DataError(f"{message} (offset {record.offset})"))
        return batch.filter(present)

    @property
    def _has_dead_letters(self) -> bool:
        properties = self.context.properties
        return properties.get("errors.tolerance") == "all" and bool(properties.get("errors.deadletterqueue.topic.name"))

    def pre_commit(self, positions: Mapping[TopicPartition, int]) -> Mapping[TopicPartition, int]:
        """Only what is in the store: a partition with open files stays at the end of its last commit."""
        safe = {}
        for partition, position in positions.items():
            writer = self._writers.get(partition)
            if writer is None or not writer.buffered:
                safe[partition] = position
            elif writer.committed is not None:
                safe[partition] = writer.committed
        return safe

    def finish(self) -> None:
        for writer in self._writers.values():
            writer.finish()

    def preview(self, batches: Sequence[RecordBatch]) -> Iterable[str]:
        """The names of the objects, as if all open files were committed after the last record."""
        from connectors.objects.writer import PartitionWriter

        with closing(self.make_store()) as store:
            listing = _Listing(names_end_offset=store.names_end_offset)
        with tempfile.TemporaryDirectory(prefix="tidegate-preview-") as folder:
            parts = self._writer_parts(listing, Path(folder))
            writers: dict[TopicPartition, PartitionWriter] = {}
            for batch in batches:
                partition = _partition_of(batch)
                writer = writers.setdefault(partition, PartitionWriter(parts, partition))
                writer.put(batch if self.config.writes_tombstones else batch.filter(batch.values.is_valid()))
            for writer in writers.values():
                writer.finish()
        return [f"object {name} ({size:,} bytes)" for name, size in listing.objects]

    def contents(self, committed: Mapping[TopicPartition, int]) -> SinkContents:
        from connectors.objects.contents import ObjectContents

        del committed  # which offsets a file has is known of its first row only
        return ObjectContents(self.config, self.make_store(), self._writer_parts)

    def stop(self) -> None:
        for writer in self._writers.values():
            writer.discard()
        super().stop()


class _Listing(Store):
    """A store that keeps only the name and the size of files."""

    def __init__(self, *, names_end_offset: bool) -> None:
        self.names_end_offset = names_end_offset
        self.objects: list[tuple[str, int]] = []

    def commit(self, partition: TopicPartition, files: Sequence[Finished], mark: Mark) -> None:
        self.objects += [(finished.name, finished.path.stat().st_size) for finished in files]


def _partition_of(batch: RecordBatch) -> TopicPartition:
    if batch.origin is None or batch.offsets is None:
        raise DataError(f"a batch of {batch.topic!r} came without the partition and offsets that name its files")
    return TopicPartition(batch.origin.topic, batch.origin.partition)


def _recognize(mark: Mark, partition: TopicPartition, batch: RecordBatch) -> None:
    """Raise ConnectError where the first batch after a start shows that the topic is not the same one as before."""
    import numpy as np

    assert batch.offsets is not None
    if mark.last_timestamp_ms is None:
        return
    last = mark.next_offset - 1
    row = int(np.searchsorted(batch.offsets.to_numpy(), last))
    there = row < len(batch) and batch.offsets[row].as_py() == last
    stamp = batch.timestamps_ms[row].as_py() if there and batch.timestamps_ms is not None else None
    if row == len(batch) or (there and stamp != mark.last_timestamp_ms):
        raise ConnectError(
            f"{partition} was stored up to offset {last}, but now holds other records there: the topic was made anew. "
            "Write to another folder; or move the topic's files away, which would be replaced, and its folder below logs.dir, to have it "
            "stored from its start"
        )


def store_problems(store: Store, key: str) -> Iterable[Problem]:
    """The problem that a store's ``check`` finds, for the key ``key``."""
    try:
        store.check()
    except TidegateError as error:
        yield Problem(key, str(error))
    finally:
        store.close()
