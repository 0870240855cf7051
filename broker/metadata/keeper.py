"""Writes snapshots of the metadata log while the broker runs, and deletes the records that they replace."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from broker.errors import CorruptMessage
from broker.log.config import LogConfig
from broker.metadata.config import MetadataLogConfig
from broker.metadata.fold import MetadataFold, MetadataTransactions
from broker.metadata.image import ClusterMetadata
from broker.metadata.snapshot import Content, Snapshot, is_kraft, latest_snapshot, snapshots, write_snapshot
from broker.protocol.records import Record, batches, decode_batch
from tidegate.kit.logs import get_logger

__all__ = ["MetadataKeeper"]

logger = get_logger(__name__)


class _Source(NamedTuple):
    """The input of a snapshot as plain data for another thread: the files of the log and their valid sizes."""

    directory: Path
    files: list[tuple[Path, int]]
    end_offset: int


class MetadataKeeper:
    """Used on one event loop; a thread reads and writes."""

    def __init__(
        self,
        metadata: ClusterMetadata,
        config: MetadataLogConfig,
        *,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._metadata = metadata
        self._config = config
        self._clock_ms = clock_ms
        self._waiting_since_ms: int | None = None
        metadata.log.config = LogConfig(
            retention_ms=-1, segment_bytes=config.metadata_segment_bytes, segment_ms=config.metadata_segment_ms
        )

    async def keep(self) -> Snapshot | None:
        """Write a snapshot if one is due, then delete old data. Returns the new snapshot, if any."""
        metadata, now = self._metadata, self._clock_ms()
        metadata.make_missing_logs()
        if not metadata.tail_bytes:
            self._waiting_since_ms = None
        elif self._waiting_since_ms is None:
            self._waiting_since_ms = now
        if not self._is_due(now):
            return None
        covered = metadata.tail_bytes
        source = _Source(
            metadata.log.directory,
            [(segment.path, segment.size) for segment in metadata.log.segments if segment.size],
            metadata.log.log_end_offset,
        )
        made = await asyncio.to_thread(_summed_up, source, now)
        metadata.snapshot = made
        metadata.tail_bytes -= covered
        self._waiting_since_ms = None
        logger.info("wrote a snapshot of the metadata", offset=made.offset, bytes=made.path.stat().st_size)
        self._delete_old(now)
        return made

    def _is_due(self, now_ms: int) -> bool:
        interval, since = self._config.snapshot_interval_ms, self._waiting_since_ms
        if self._metadata.tail_bytes >= self._config.snapshot_bytes:
            return True
        return interval > 0 and since is not None and now_ms - since >= interval

    def _delete_old(self, now_ms: int) -> None:
        """Source: KafkaMetadataLog.cleanSnapshotsRetentionMs and -Size."""
        records, config = self._metadata.log, self._config
        kept = snapshots(records.directory)
        while len(kept) > 1:
            status = [snapshot.path.stat() for snapshot in kept]
            size = records.size + sum(stat.st_size for stat in status)
            is_old = 0 <= config.metadata_retention_ms < now_ms - status[0].st_mtime_ns // 1_000_000
            if not is_old and not 0 <= config.metadata_retention_bytes < size:
                break
            kept.pop(0).path.unlink()
            records.delete_records(min(kept[0].offset, records.log_end_offset))
            records.enforce_retention(now_ms)


def _summed_up(source: _Source, now_ms: int) -> Snapshot:
    """Write a snapshot of the source. Thread-safe. Raises CorruptMessage, OSError."""
    fold, transactions, tail = MetadataFold(), MetadataTransactions(), _Tail(source)
    result = latest_snapshot(source.directory)
    if result is not None:
        tail.start, tail.kraft = result[0].offset, list(result[1].kraft)
        tail.epoch = result[0].epoch
        for value in transactions.committed(result[1].values):
            fold.add(value)
    for value in transactions.committed(tail.values()):
        fold.add(value)
    if transactions.is_open:
        raise CorruptMessage("a transaction of the metadata has not ended")
    return write_snapshot(
        source.directory,
        source.end_offset,
        tail.epoch,
        Content(fold.values(), tail.kraft),
        last_timestamp_ms=tail.last_timestamp_ms,
        now_ms=now_ms,
    )


class _Tail:
    """The log after the last snapshot. The facts from batch headers are complete once all batches were read."""

    def __init__(self, source: _Source) -> None:
        self._source = source
        self.start = 0
        self.epoch = 0
        self.last_timestamp_ms = 0
        self.kraft: list[Record] = []

    def values(self) -> Iterator[bytes]:
        for path, size in self._source.files:
            view = memoryview(path.read_bytes())[:size]
            for position, header in batches(view):
                if header.last_offset < self.start or header.base_offset >= self._source.end_offset:
                    continue
                self.epoch, self.last_timestamp_ms = max(self.epoch, header.leader_epoch), header.max_timestamp
                records = decode_batch(view[position : position + header.size])
                if header.is_control:
                    self._take_control(records)
                else:
                    yield from (record.value or b"" for record in records if record.offset >= self.start)

    def _take_control(self, records: list[Record]) -> None:
        for record in filter(is_kraft, records):
            self.kraft = [item for item in self.kraft if item.key != record.key] + [record._replace(offset=0)]
