"""Opening a partition that exists: after a clean stop from its indexes and snapshot, after a crash batch by batch.

What lies below the recovery point was on disk before the crash and is trusted; from there on every batch is checked,
the file cut off behind the last good one, and indexes and producer state are built again.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from broker.errors import CorruptMessage
from broker.log.files import storage_errors
from broker.log.partition import PartitionLog
from broker.log.segment import Segment, finish_swap
from broker.log.transaction_index import TransactionIndex
from broker.protocol.records import NO_PRODUCER_ID, BatchHeader, decode_batch, decode_marker
from tidegate.kit.logs import logger

__all__ = ["open_partition"]

log = logger(__name__)

_NAME: Final = re.compile(r"(\d{20})\.(log|snapshot)")
_HISTORY_BYTES: Final = 4 * 1024 * 1024
"""How far back from the end the batches before a producer's last one are looked for; snapshots hold only that one."""


def open_partition(partition: PartitionLog, *, clean: bool, recovery_point: int, log_start_offset: int) -> None:
    """Fill a PartitionLog from its directory. Raises KafkaStorageError where the disk fails."""
    with storage_errors(f"open {partition.topic}-{partition.partition}"):
        _finish_interrupted_work(partition.directory, partition.config.index_interval_bytes)
        bases = _offsets(partition.directory, "log")
        if not bases:
            partition.log_start_offset = log_start_offset
            partition.opened([_segment(partition, log_start_offset)], log_start_offset)
            return
        partition.log_start_offset = max(log_start_offset, bases[0])
        segments = [_segment(partition, base) for base in bases]
        doubtful = 0 if not clean else len(segments)
        if not clean:
            doubtful = sum(1 for base in bases[1:] if base <= recovery_point)
        _open_segments(partition, segments, doubtful)
        _fill_history(partition)
    partition.log_start_offset = min(partition.log_start_offset, partition.log_end_offset)
    partition.first_dirty_offset = min(partition.first_dirty_offset, partition.log_end_offset)
    partition.flushed_offset = partition.log_end_offset if clean else min(recovery_point, partition.log_end_offset)


def _segment(partition: PartitionLog, base: int) -> Segment:
    return Segment(partition.directory, base, partition.config.index_interval_bytes)


def _open_segments(partition: PartitionLog, segments: list[Segment], doubtful: int) -> list[Segment]:
    """``doubtful`` is the index of the first segment to check batch by batch; their number if none is."""
    trusted = segments[:doubtful]
    for segment, following in zip(trusted, segments[1:], strict=False):
        segment.load_summary(following.base_offset)
    if doubtful == len(segments) and not segments[-1].load(to_the_end=True):
        doubtful -= 1
        trusted.pop()
    for number, segment in enumerate(trusted):
        entries = TransactionIndex(segment.transaction_index_path).load()
        if entries is None:
            doubtful = number
            break
        partition.aborted += entries
    if doubtful == len(segments):
        partition.opened(segments, segments[-1].next_offset)
        _restore_producers(partition, partition.log_end_offset)
        return segments
    partition.opened(segments, segments[doubtful].base_offset)
    _restore_producers(partition, segments[doubtful].base_offset)
    return _recover_segments(partition, segments, doubtful)


def _recover_segments(partition: PartitionLog, segments: list[Segment], doubtful: int) -> list[Segment]:
    where = f"{partition.topic}-{partition.partition}"
    for number in range(doubtful, len(segments)):
        segment, before = segments[number], segments[number].size
        index = TransactionIndex(segment.transaction_index_path)
        index.clear()

        def take(
            position: int, header: BatchHeader, segment: Segment = segment, index: TransactionIndex = index
        ) -> None:
            _take(partition, segment, position, header, index)

        if segment.recover(take) == before:
            continue
        log.warning(
            "cut off what was not written whole", partition=where, file=segment.path.name, size=segment.size, was=before
        )
        for later in segments[number + 1 :]:
            log.warning(
                "removed a segment behind a damaged one", partition=where, file=later.path.name, size=later.size
            )
            later.delete()
        segments = segments[: number + 1]
        break
    partition.opened(segments, segments[-1].next_offset)
    for offset in _offsets(partition.directory, "snapshot"):
        if offset > partition.log_end_offset:
            (partition.directory / f"{offset:020d}.snapshot").unlink()
    return segments


def _take(
    partition: PartitionLog, segment: Segment, position: int, header: BatchHeader, index: TransactionIndex
) -> None:
    if header.is_control:
        for record in decode_batch(segment.read(position, header.size)):
            partition.take_marker(header, record, index)
    else:
        partition.producers.update(header)


def _restore_producers(partition: PartitionLog, upto: int) -> None:
    """Load the newest usable snapshot at or below ``upto`` and replay the batches from there to ``upto``."""
    start = partition.log_start_offset
    for offset in reversed(_offsets(partition.directory, "snapshot")):
        path = partition.directory / f"{offset:020d}.snapshot"
        if offset > upto:
            continue
        try:
            partition.producers.load(path)
            start = max(offset, start)
            break
        except CorruptMessage as error:
            log.warning(
                "ignored a producer snapshot", partition=f"{partition.topic}-{partition.partition}", reason=str(error)
            )
            path.unlink()
    for segment in partition.segments:
        if segment.next_offset <= start or segment.base_offset >= upto:
            continue
        found = segment.find(start)
        for position, header in segment.headers(found[0]) if found else ():
            if header.base_offset < upto and header.producer_id != NO_PRODUCER_ID:
                _replay(partition, segment, position, header)


def _replay(partition: PartitionLog, segment: Segment, position: int, header: BatchHeader) -> None:
    if not header.is_control:
        partition.producers.update(header)
        return
    for record in decode_batch(segment.read(position, header.size)):
        committed, coordinator_epoch = decode_marker(record)
        partition.producers.end_transaction(header, coordinator_epoch, aborted=not committed)


def _fill_history(partition: PartitionLog) -> None:
    if not len(partition.producers):
        return
    starts: list[tuple[Segment, int]] = []
    wanted = _HISTORY_BYTES
    for segment in reversed(partition.segments):
        segment.ensure_loaded()
        starts.append((segment, segment.index.position_at(max(segment.size - wanted, 0))))
        wanted -= segment.size
        if wanted <= 0:
            break
    partition.producers.fill_history(
        header for segment, start in reversed(starts) for _, header in segment.headers(start)
    )


def _offsets(directory: Path, suffix: str) -> list[int]:
    names = (_NAME.fullmatch(path.name) for path in directory.iterdir())
    return sorted(int(name[1]) for name in names if name and name[2] == suffix)


def _finish_interrupted_work(directory: Path, index_interval_bytes: int) -> None:
    """Remove what a crash left half done, and complete a compaction that had its result whole (``.swap``).

    The indexes are rebuilt on the way. A transaction index beside it may speak of what is gone, which is harmless.
    """
    for path in sorted(directory.iterdir()):
        if path.suffix in (".deleted", ".cleaned", ".tmp"):
            path.unlink()
    for path in sorted(directory.glob("*.log.swap")):
        base = int(path.name.split(".")[0])
        result = Segment(directory, base, index_interval_bytes, suffix=".swap")
        result.recover()
        finish_swap(
            directory, base, [other for other in _offsets(directory, "log") if base <= other < result.next_offset]
        )
    for path in directory.glob("*.swap"):
        path.unlink()
