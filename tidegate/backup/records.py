"""Writes the records of partitions to Parquet files, and reads them back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from broker.client.columns import HEADERS_TYPE
from tidegate.backup.checksum import Checksum
from tidegate.backup.manifest import Partition, RecordFile
from tidegate.backup.store import BackupStore
from tidegate.kit.errors import TidegateError

if TYPE_CHECKING:
    from broker.client import FetchedBatches, TopicPartition
    from broker.client.blocking import BatchConsumer

__all__ = ["SCHEMA", "RecordWriter", "fetched_parts", "fetched_tables", "file_tables", "records_before"]

SCHEMA: Final = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", tz="UTC"), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("headers", HEADERS_TYPE, nullable=False),
    ]
)
_GROUP_BYTES: Final = 8 * 1024 * 1024
_FILE_BYTES: Final = 128 * 1024 * 1024
"""Bytes of records in a row group, and in a file, before compression."""
_PLAIN: Final[dict[str, Any]] = {"use_dictionary": False, "write_statistics": ["offset", "timestamp"]}
"""The smallest and largest of values that nobody looks up would take as long as all else."""
_PATIENCE_S: Final = 120.0


def fetched_tables(
    consumer: BatchConsumer, topic: str, partition: int, start: int, end: int
) -> Iterator[pa.RecordBatch]:
    """The records of a partition with offsets from ``start`` to before ``end``, in the form of ``SCHEMA``.

    Raises TidegateError where nothing arrives for two minutes of fetching: the time that the caller takes does not count.
    """
    from broker.client import TopicPartition

    for fetched in fetched_parts(consumer, TopicPartition(topic, partition), start, end):
        columns = fetched.columns()
        headers = columns.headers
        if headers is None:
            zeros = pa.array([0] * (len(columns) + 1), pa.int32())
            headers = pa.ListArray.from_arrays(zeros, pa.array([], HEADERS_TYPE.value_type), type=HEADERS_TYPE)
        times = columns.timestamps_ms.cast(SCHEMA.field("timestamp").type)
        keys, values = columns.keys.cast(pa.binary()), columns.values.cast(pa.binary())
        batch = pa.RecordBatch.from_arrays([columns.offsets, times, keys, values, headers], schema=SCHEMA)
        if len(batch) and batch.column(0)[-1].as_py() >= end:
            batch = batch.filter(pc.less(batch.column(0), end))
        if len(batch):
            yield batch


def fetched_parts(consumer: BatchConsumer, where: TopicPartition, start: int, end: int) -> Iterator[FetchedBatches]:
    """Fetch a partition from ``start`` on until it reaches ``end``; the last batches may go beyond.

    Raises TidegateError where nothing arrives for two minutes.
    """
    consumer.assign([where])
    consumer.seek(where, start)
    position, deadline = start, time.monotonic() + _PATIENCE_S
    while position < end:
        for fetched in consumer.fetch(500, _GROUP_BYTES):
            if fetched.topic_partition != where or fetched.next_offset <= position:
                continue  # what the consumer had read ahead of the partition before
            position = fetched.next_offset
            yield fetched
            deadline = time.monotonic() + _PATIENCE_S
        if time.monotonic() > deadline:
            raise TidegateError(f"{where}: nothing arrived after offset {position} for {_PATIENCE_S:.0f} s")


class RecordWriter:
    """Writes one partition. ``ended`` is called with each file when it is complete."""

    def __init__(self, store: BackupStore, folder: str, name: str, ended: Callable[[RecordFile], None]) -> None:
        """Files are ``folder/name-FIRST_OFFSET.parquet``."""
        self._store, self._folder, self._name, self._ended = store, folder, name, ended

    def write(self, tables: Iterator[pa.RecordBatch], start: int, end: int) -> None:
        """Write records with offsets from ``start`` to before ``end``. There may be none."""
        pending: pa.RecordBatch | None = next(tables, None)
        position = start
        while pending is not None:
            path = f"{self._folder}/{self._name}-{position:020d}.parquet"
            checksum, size, last = Checksum(), 0, position
            with (
                self._store.writing(path) as stream,
                pq.ParquetWriter(stream, SCHEMA, compression="zstd", compression_level=1, **_PLAIN) as file,
                # Checksum and Parquet take a thread each: both leave Python's lock to the thread that reads the next records.
                ThreadPoolExecutor(1) as sums,
                ThreadPoolExecutor(1) as writes,
            ):
                group: list[pa.RecordBatch] = []
                gathered = 0
                summed: Future[None] | None = None
                written: Future[None] | None = None
                while pending is not None and size < _FILE_BYTES:
                    if summed is not None:
                        summed.result()
                    summed = sums.submit(checksum.add, *pending.columns[1:])
                    group.append(pending)
                    gathered += pending.nbytes
                    size += pending.nbytes
                    last = pending.column(0)[-1].as_py()
                    if gathered >= _GROUP_BYTES:
                        if written is not None:
                            written.result()
                        written = writes.submit(file.write_table, pa.Table.from_batches(group))
                        group, gathered = [], 0
                    pending = next(tables, None)
                if written is not None:
                    written.result()
                if group:
                    file.write_table(pa.Table.from_batches(group))
                if summed is not None:
                    summed.result()
            next_offset = end if pending is None else last + 1
            self._ended(
                RecordFile(path, position, next_offset, checksum.records, self._store.size(path), checksum.text)
            )
            position = next_offset


def file_tables(store: BackupStore, file: RecordFile) -> Iterator[pa.RecordBatch]:
    """The records of a file, row group by row group. Raises TidegateError if they do not have the file's checksum."""
    checksum = Checksum()
    try:
        with (
            store.reading(file.path) as stream,
            pq.ParquetFile(stream) as parquet,
            # The next group is read, and this one's checksum is made, while the caller works with it.
            ThreadPoolExecutor(1) as reads,
            ThreadPoolExecutor(1) as sums,
        ):
            groups = parquet.num_row_groups
            coming = reads.submit(parquet.read_row_group, 0) if groups else None
            for group in range(groups):
                assert coming is not None
                table = coming.result()
                coming = reads.submit(parquet.read_row_group, group + 1) if group + 1 < groups else None
                for batch in table.combine_chunks().to_batches():
                    summed = sums.submit(checksum.add, *batch.columns[1:])
                    yield batch
                    summed.result()
    except (pa.ArrowException, OSError) as error:
        raise TidegateError(f"{file.path} in {store.location} cannot be read: {error}") from error
    if checksum.text != file.checksum:
        raise TidegateError(
            f"{file.path} in {store.location} is damaged: it has checksum {checksum.text}, the backup says {file.checksum}"
        )


def records_before(store: BackupStore, partition: Partition, offset: int) -> int:
    """How many of the records to restore have an offset before this one: where it lies in the restored partition."""
    count = 0
    for file in partition.files:
        if file.next_offset <= partition.start:
            continue
        begins_inside = file.first_offset >= partition.start
        if begins_inside and file.next_offset <= offset:
            count += file.records
            continue
        if file.first_offset >= offset:
            break
        with store.reading(file.path) as stream:
            offsets: Any = pq.read_table(stream, columns=["offset"]).column(0)
        inside = pc.and_(pc.greater_equal(offsets, partition.start), pc.less(offsets, offset))
        count += pc.sum(inside).as_py() or 0
    return count
