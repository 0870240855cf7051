"""Opens an existing partition: after a clean stop from its indexes and snapshot, after a crash from its recovery point
on.

Data below the recovery point was on disk before the crash and is trusted. From there on every batch is checked, the
file is truncated after the last good one, and indexes and producer state are rebuilt. Of the trusted part only those
headers are read that are after the last index entry or after the producer snapshot.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from broker.errors import CorruptMessage
from broker.log.files import storage_errors, sync_directory, sync_file
from broker.log.partition import UNSYNCED_INDEX_BYTES, PartitionLog
from broker.log.segment import Segment
from broker.log.swap import finish_swap
from broker.log.transaction_index import TransactionIndex
from broker.protocol.records import NO_PRODUCER_ID, BatchHeader, decode_batch, decode_marker
from tidegate.kit.logs import get_logger

__all__ = ["open_partition"]

logger = get_logger(__name__)

_NAME: Final = re.compile(r"(\d{20})\.(log|snapshot|txnindex)")
_UNFINISHED: Final = (".deleted", ".cleaned", ".swap", ".tmp")
_HISTORY_BYTES: Final = 4 * 1024 * 1024
"""How far back from the end a producer's earlier batches are searched; snapshots have only the last one."""
_DOUBTED_BYTES: Final = UNSYNCED_INDEX_BYTES
"""All index entries but those for this many bytes at the end were flushed to disk."""


def open_partition(
    partition: PartitionLog,
    *,
    clean: bool,
    recovery_point: int,
    log_start_offset: int,
    memory_is_lost: bool = True,
) -> None:
    """Fill a PartitionLog from its directory. Raises KafkaStorageError if the disk fails.

    Without ``memory_is_lost`` (the process was killed, the machine stayed up) index files have everything that was
    written.
    """
    with storage_errors(f"open {partition.topic}-{partition.partition}"):
        logs, snapshots, aborts = _listed(partition)
        partition.checkpointed_offset = recovery_point
        if not logs:
            partition.log_start_offset = log_start_offset
            partition.opened([_segment(partition, log_start_offset)], log_start_offset, snapshots)
            return
        bases = sorted(logs)
        partition.log_start_offset = max(log_start_offset, bases[0])
        segments = [_segment(partition, base, logs[base]) for base in bases]
        doubtful = len(segments) - 1
        if not clean:
            doubtful = sum(1 for base in bases[1:] if base <= recovery_point)
        segments = _Opening(
            partition,
            segments,
            snapshots,
            aborts,
            None if clean else recovery_point,
            _DOUBTED_BYTES if memory_is_lost else 0,
        ).open(doubtful)
        if not clean and (aborts or partition.aborted):
            _sync_aborts(partition, segments)
        for segment in segments:
            segment.release()
        if len(partition.producers):
            partition.appender.fill_history = lambda: _fill_history(partition)
    partition.log_start_offset = min(partition.log_start_offset, partition.log_end_offset)
    partition.first_dirty_offset = min(partition.first_dirty_offset, partition.log_end_offset)
    partition.flushed_offset = partition.log_end_offset if clean else min(recovery_point, partition.log_end_offset)


def _sync_aborts(partition: PartitionLog, segments: list[Segment]) -> None:
    """Flush rebuilt transaction indexes.

    They are below the recovery point, so the next recovery trusts them and no flush would include them.
    """
    for segment in segments:
        sync_file(segment.transaction_index_path)
        segment.aborts_synced = True
    sync_directory(partition.directory)


def _listed(partition: PartitionLog) -> tuple[dict[int, os.stat_result], list[int], set[int]]:
    """The log files by offset, the ascending offsets of the snapshots, and the offsets of transaction indexes.

    Work that a crash interrupted is completed or removed.
    """
    unfinished = False
    aborts: set[int] = set()
    logs: dict[int, os.stat_result] = {}
    snapshots: list[int] = []
    with os.scandir(partition.directory) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(_UNFINISHED):
                unfinished = True
            elif (match := _NAME.fullmatch(name)) is not None:
                kind, offset = match[2], int(match[1])
                if kind == "log":
                    logs[offset] = entry.stat()
                elif kind == "snapshot":
                    snapshots.append(offset)
                else:
                    aborts.add(offset)
    if unfinished:
        _finish_interrupted_work(partition.directory, partition.config.index_interval_bytes)
        return _listed(partition)
    return logs, sorted(snapshots), aborts


def _segment(partition: PartitionLog, base: int, stat: os.stat_result | None = None) -> Segment:
    open_files = partition.upkeep.open_files
    return Segment(partition.directory, base, partition.config.index_interval_bytes, open_files, stat=stat)


class _Opening:
    """``trusted_until`` is the recovery point; None after a clean stop, when everything is trusted."""

    def __init__(
        self,
        partition: PartitionLog,
        segments: list[Segment],
        snapshots: list[int],
        aborts: set[int],
        trusted_until: int | None,
        doubted_bytes: int,
    ) -> None:
        self._partition = partition
        self._segments = segments
        self._snapshots = snapshots
        self._aborts = aborts
        self._trusted_until = trusted_until
        self._doubted_bytes = doubted_bytes if trusted_until is not None else 0

    def open(self, doubtful: int) -> list[Segment]:
        """Open the segments.

        ``doubtful`` is the index of the segment where the trusted part ends; earlier ones are trusted completely.
        """
        partition, segments = self._partition, self._segments
        for segment, following in itertools.pairwise(segments[: doubtful + 1]):
            segment.load_summary(following.base_offset)
        for number, segment in enumerate(segments[:doubtful]):
            if segment.base_offset not in self._aborts:
                continue
            entries = TransactionIndex(segment.transaction_index_path).load()
            if entries is None:
                return self._recover(number, 0)
            partition.aborted += entries
        part = self._trusted_part(segments[doubtful])
        if part is None:
            return self._recover(doubtful, 0)
        if part < segments[doubtful].size or doubtful < len(segments) - 1:
            return self._recover(doubtful, part)
        partition.opened(segments, segments[-1].next_offset)
        self._restore_producers(partition.log_end_offset)
        self._keep_snapshots()
        return segments

    def _trusted_part(self, segment: Segment) -> int | None:
        """The position up to which the segment needs no check; None if all of it does."""
        position = segment.load_active(self._trusted_until, doubted_bytes=self._doubted_bytes)
        if segment.base_offset not in self._aborts:
            return position
        if not position:
            if segment.size == 0:
                TransactionIndex(segment.transaction_index_path).clear()
            return position
        index = TransactionIndex(segment.transaction_index_path)
        entries = index.load()
        if entries is None:
            return None
        trusted = [entry for entry in entries if entry.last_offset < segment.next_offset]
        if len(trusted) < len(entries):
            index.replace(trusted)
        self._partition.aborted += trusted
        return position

    def _recover(self, doubtful: int, from_position: int) -> list[Segment]:
        partition, segments = self._partition, self._segments
        first = segments[doubtful]
        partition.opened(segments, first.next_offset if from_position else first.base_offset)
        self._restore_producers(partition.log_end_offset)
        for number in range(doubtful, len(segments)):
            segment, before = segments[number], segments[number].size

            def take(position: int, header: BatchHeader, segment: Segment = segment) -> None:
                _take(partition, segment, position, header)

            good = segment.recover(take, from_position=from_position if number == doubtful else 0)
            self._write_aborted(segment)
            if good == before:
                if number < len(segments) - 1:
                    segment.unload()
                continue
            self._report_cut(number, before)
            segments = segments[: number + 1]
            break
        partition.opened(segments, segments[-1].next_offset)
        partition.recovery_files.recovered()
        self._keep_snapshots()
        return segments

    def _write_aborted(self, segment: Segment) -> None:
        """Write atomically and durably: a recovery point may be beyond the file's last entry."""
        aborted_transactions = [entry for entry in self._partition.aborted if entry.last_offset >= segment.base_offset]
        if aborted_transactions or segment.base_offset in self._aborts:
            TransactionIndex(segment.transaction_index_path).replace(aborted_transactions)

    def _report_cut(self, number: int, before: int) -> None:
        where, segment = f"{self._partition.topic}-{self._partition.partition}", self._segments[number]
        logger.warning(
            "cut off what was not written whole", partition=where, file=segment.path.name, size=segment.size, was=before
        )
        for later in self._segments[number + 1 :]:
            logger.warning(
                "removed a segment behind a damaged one", partition=where, file=later.path.name, size=later.size
            )
            later.delete()

    def _keep_snapshots(self) -> None:
        """Keep the snapshots of offsets that the log has.

        Others would be wrong once the log reaches those offsets again.
        """
        partition, end = self._partition, self._partition.log_end_offset
        for offset in self._snapshots:
            if offset > end:
                (partition.directory / f"{offset:020d}.snapshot").unlink()
        partition.opened(list(partition.segments), end, [offset for offset in self._snapshots if offset <= end])

    def _restore_producers(self, upto: int) -> None:
        """Load the newest usable snapshot at or below ``upto``, then replay the batches up to ``upto``."""
        partition = self._partition
        start = partition.log_start_offset
        for offset in reversed(self._snapshots):
            path = f"{partition.directory}/{offset:020d}.snapshot"
            if offset > upto:
                continue
            try:
                partition.producers.load(path)
                start = max(offset, start)
                break
            except CorruptMessage as error:
                logger.warning(
                    "ignored a producer snapshot",
                    partition=f"{partition.topic}-{partition.partition}",
                    reason=str(error),
                )
                Path(path).unlink()
                self._snapshots = [snapshot for snapshot in self._snapshots if snapshot != offset]
        for segment, position, header in self._headers(start, upto):
            if header.producer_id != NO_PRODUCER_ID:
                _replay(partition, segment, position, header)

    def _headers(self, start: int, end: int) -> Iterator[tuple[Segment, int, BatchHeader]]:
        """The headers of the batches between two offsets."""
        for segment in self._partition.segments:
            if start >= end or segment.next_offset <= start or segment.base_offset >= end:
                continue
            result = segment.find(start)
            for position, header in segment.headers(result[0]) if result else ():
                yield segment, position, header
                if header.last_offset + 1 >= end:
                    return


def _take(partition: PartitionLog, segment: Segment, position: int, header: BatchHeader) -> None:
    if header.is_control:
        for record in decode_batch(segment.read(position, header.size)):
            partition.appender.take_marker(header, record, None)
    else:
        partition.producers.update(header)


def _replay(partition: PartitionLog, segment: Segment, position: int, header: BatchHeader) -> None:
    if not header.is_control:
        partition.producers.update(header)
        return
    for record in decode_batch(segment.read(position, header.size)):
        committed, coordinator_epoch = decode_marker(record)
        partition.producers.end_transaction(header, coordinator_epoch, aborted=not committed)


def _fill_history(partition: PartitionLog) -> None:
    starts: list[tuple[Segment, int]] = []
    remaining = _HISTORY_BYTES
    for segment in reversed(partition.segments):
        segment.ensure_loaded()
        entry = segment.index.entry_at(max(segment.size - remaining, 0))
        starts.append((segment, entry[1] if entry else 0))
        remaining -= segment.size
        if remaining <= 0:
            break
    partition.producers.fill_history(
        header for segment, start in reversed(starts) for _, header in segment.headers(start)
    )


def _finish_interrupted_work(directory: Path, index_interval_bytes: int) -> None:
    """Remove unfinished files of a crash, and complete a compaction whose result was complete (``.swap``).

    The indexes are rebuilt. A remaining transaction index may have entries for removed data, which is harmless.
    """
    for path in sorted(directory.iterdir()):
        if path.suffix in (".deleted", ".cleaned", ".tmp"):
            path.unlink()
    for path in sorted(directory.glob("*.log.swap")):
        base = int(path.name.split(".")[0])
        result = Segment(directory, base, index_interval_bytes, suffix=".swap")
        result.recover()
        bases = (int(item.name[:20]) for item in directory.glob("*.log") if _NAME.fullmatch(item.name))
        finish_swap(directory, base, sorted(other for other in bases if base <= other < result.next_offset))
    for path in directory.glob("*.swap"):
        path.unlink()
