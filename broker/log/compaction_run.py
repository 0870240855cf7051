"""Runs a compaction; see ``broker.log.compaction``, which the broker uses without the imports of this module.

The dirty part is read twice. The first pass finds the last offset of each key, and so the offsets that stay. The second
pass opens only batches that lose some of their records. In the clean part each key has to be looked up.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import compress, repeat
from operator import le
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from broker.errors import CorruptMessage
from broker.log.compaction_plan import CleanedGroup, Compaction, CompactionPlan, SourceSegment
from broker.log.files import sync_data, sync_file
from broker.log.keyed_records import Batch, KeyedRecords, is_dense, keyed_records, refuse_damaged
from broker.log.segment import MAX_RELATIVE_OFFSET, Segment, file_name
from broker.log.transaction_index import AbortedTransaction
from broker.protocol.compression import Codec
from broker.protocol.records import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    BatchHeader,
    Record,
    decode_batch,
    encode_batch,
    repacked_batch,
    with_append_time,
)
from broker.work import MOST_COMPACTED

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["run"]

_CHUNK: Final = 1024 * 1024
"""The number of bytes read at a time."""
_BURST_S: Final = 0.1
"""How much unused allowance may be saved up."""


class _Pace:
    """Throttles reads and writes by sleeping. Use it in a separate thread or process."""

    def __init__(self, bytes_per_s: float | None) -> None:
        self._s_per_byte = 0.0 if bytes_per_s is None else 1 / bytes_per_s
        self._allowed_at = monotonic()
        """The time from which the bytes spent so far are allowed."""

    def spend(self, size: int) -> None:
        if not self._s_per_byte:
            return
        now = monotonic()
        self._allowed_at = max(self._allowed_at, now - _BURST_S) + size * self._s_per_byte
        if self._allowed_at > now:
            sleep(self._allowed_at - now)


def run(work: CompactionPlan) -> Compaction:
    """Runs the plan; see ``compaction.run``."""
    pace = _Pace(work.bytes_per_s)
    latest = _latest(work, pace)
    sources = [segment for segment in (*work.clean, *work.dirty) if segment.base_offset < latest.until]
    cleaner = _Cleaner(work, latest, pace)
    try:
        groups = tuple(_clean_group(cleaner, group) for group in _groups(sources, work.config.segment_bytes))
    except (OSError, CorruptMessage):
        for path in work.directory.glob("*.cleaned"):
            path.unlink(missing_ok=True)
        raise
    return Compaction(groups, latest.until, cleaner.records_before, cleaner.records_after)


class _Pick(NamedTuple):
    """The records of a batch that stay, and which of them are tombstones.

    The batch begins at index ``first`` of ``records``.
    """

    records: KeyedRecords
    first: int
    staying: NDArray[np.int64]
    tombstones: NDArray[np.int64]

    def without_tombstones(self) -> _Pick:
        kept = np.setdiff1d(self.staying, self.tombstones, assume_unique=True)
        return self._replace(staying=kept, tombstones=self.tombstones[:0])


_RecordAt = tuple[KeyedRecords, int]
"""How far a batch's records were read, and the number of the first of them there."""


def _picks(
    staying: NDArray[np.int64],
    tombstones: NDArray[np.int64],
    firsts: NDArray[np.int64],
    counts: NDArray[np.int64],
    records_at: Callable[[NDArray[np.bool_]], Iterator[_RecordAt]],
) -> Iterator[_Pick | bool]:
    """The remaining part of each batch: all, nothing, or some records. A batch has ``counts`` records from ``firsts``
    on.

    ``staying`` and ``tombstones`` use the numbering of ``firsts`` and ascend. ``records_at`` gets the mask of batches
    to read.
    """
    behind = firsts + counts
    starts, stops = staying.searchsorted(firsts), staying.searchsorted(behind)
    begins, ends = tombstones.searchsorted(firsts), tombstones.searchsorted(behind)
    is_partial = (stops > starts) & ((stops - starts < counts) | (ends > begins))
    result = records_at(is_partial)
    columns = (is_partial, firsts, starts, stops, begins, ends)
    for partial, base, start, stop, begin, end in zip(*(column.tolist() for column in columns), strict=True):
        if not partial:
            yield stop > start
            continue
        records, first = next(result)
        yield _Pick(records, first, staying[start:stop] + (first - base), tombstones[begin:end] + (first - base))


class _Latest:
    """The last offset of each key in the dirty part, which ends before ``until``."""

    def __init__(self, dirty_from: int) -> None:
        self._dirty_from = self.until = dirty_from
        self._marks: dict[bytes | None, int] = {}
        """Twice the offset, plus one for a tombstone."""
        self._staying = self._tombstones = np.zeros(0, np.int64)
        """The offsets of the dirty part that stay, and the tombstones' among them."""

    def __len__(self) -> int:
        return len(self._marks)

    def add(self, records: KeyedRecords) -> None:
        marks = records.offsets * 2 + records.tombstones
        self._marks.update(zip(records.keys, marks.tolist(), strict=True))
        self.until = records.batches[-1].last_offset + 1

    def seal(self) -> None:
        """Called when all of the dirty part was added."""
        self._marks.pop(None, None)
        marks = np.fromiter(self._marks.values(), np.int64, len(self._marks))
        marks.sort()
        self._staying, self._tombstones = marks >> 1, marks[(marks & 1) == 1] >> 1
        self._marks[None] = sys.maxsize  # records without a key do not stay: clients cannot write them

    def picks(self, batches: Sequence[Batch]) -> Iterator[_Pick | bool]:
        """The records of each batch that stay."""
        headers = [header for header, _ in batches]
        if not headers:
            return
        is_known = headers[0].base_offset >= self._dirty_from and headers[-1].last_offset < self.until
        if not (is_known and all(map(is_dense, headers))):
            for records in keyed_records(batches):
                yield from self._looked_up(records)
            return
        bases = np.array([header.base_offset for header in headers], np.int64)
        counts = np.array([header.record_count for header in headers], np.int64)

        def records_at(is_partial: NDArray[np.bool_]) -> Iterator[_RecordAt]:
            for records in keyed_records(compress(batches, is_partial.tolist())):
                yield from zip(repeat(records), records.firsts[:-1].tolist())

        yield from _picks(self._staying, self._tombstones, bases, counts, records_at)

    def _looked_up(self, records: KeyedRecords) -> Iterator[_Pick | bool]:
        last = map(self._marks.get, records.keys, repeat(-1))
        stays = np.fromiter(map(le, last, (records.offsets * 2 + 1).tolist()), np.bool_, len(records.offsets))
        staying, tombstones = np.flatnonzero(stays), np.flatnonzero(stays & records.tombstones)
        firsts = records.firsts[:-1]

        def records_at(is_partial: NDArray[np.bool_]) -> Iterator[_RecordAt]:
            return zip(repeat(records), firsts[is_partial].tolist())

        return _picks(staying, tombstones, firsts, np.diff(records.firsts), records_at)


def _latest(work: CompactionPlan, pace: _Pace) -> _Latest:
    """Read the dirty segments as far as there is memory for their keys."""
    latest = _Latest(work.dirty[0].base_offset)
    aborted = _Aborted(work.aborted)
    for segment in work.dirty:
        with _named(segment):
            for chunk in _chunks_of(work.directory, segment):
                pace.spend(_size_of(chunk))
                present = (
                    item
                    for item in chunk
                    if not item[0].is_control and not aborted.covers(item[0]) and not _is_too_large(item[0])
                )
                for records in keyed_records(present):
                    if len(latest) >= work.max_keys:
                        latest.seal()
                        return latest
                    latest.add(records)
                latest.until = chunk[-1][0].last_offset + 1
        latest.until = segment.next_offset
    latest.seal()
    return latest


def _is_too_large(header: BatchHeader) -> bool:
    """Whether one batch's records would take more memory than a compaction may use. Such a batch stays, unread."""
    return header.record_count > MOST_COMPACTED


class _Aborted:
    """Tells whether a batch belongs to an aborted transaction."""

    def __init__(self, aborted: Iterable[AbortedTransaction]) -> None:
        self._spans: dict[int, list[AbortedTransaction]] = {}
        for entry in aborted:
            self._spans.setdefault(entry.producer_id, []).append(entry)

    def covers(self, header: BatchHeader) -> bool:
        if not header.is_transactional or header.is_control:
            return False
        spans = self._spans.get(header.producer_id, ())
        return any(span.first_offset <= header.base_offset <= span.last_offset for span in spans)


@dataclass(slots=True)
class _Cleaner:
    """Decides batch by batch, from the start of the log."""

    work: CompactionPlan
    latest: _Latest
    pace: _Pace
    records_before: int = 0
    records_after: int = 0
    _aborted: _Aborted = field(init=False)
    _open: set[int] = field(default_factory=set)
    """Producers with transactional batches that stay and whose marker has not come yet."""

    def __post_init__(self) -> None:
        self._aborted = _Aborted(self.work.aborted)

    def cleaned(self, chunk: Sequence[Batch]) -> Iterator[Batch]:
        """The batches that stay: unchanged, or smaller. Some are dropped."""
        present = [item for item in chunk if not self._aborted.covers(item[0])]
        picks = self.latest.picks([item for item in present if not item[0].is_control and not _is_too_large(item[0])])
        self.records_before += sum(header.record_count for header, _ in chunk)
        for header, batch in present:
            if header.is_control:
                kept = self._marker(header, batch)
            else:
                kept = self._picked(header, batch, _is_too_large(header) or next(picks))
            if kept is batch:
                yield header, batch
            elif kept is not None:
                yield BatchHeader.parse(kept), memoryview(kept)

    def _is_expired(self, header: BatchHeader) -> bool:
        horizon = header.delete_horizon_ms
        return horizon is not None and horizon <= self.work.now_ms

    def _marker(self, header: BatchHeader, batch: memoryview) -> bytes | memoryview | None:
        is_needed = header.producer_id in self._open
        self._open.discard(header.producer_id)
        if not header.record_count or (self._is_expired(header) and not is_needed):
            return None
        self.records_after += header.record_count
        if is_needed or header.delete_horizon_ms is not None:
            return batch
        refuse_damaged(header, batch)
        return self._with_horizon(header, decode_batch(batch))

    def _picked(self, header: BatchHeader, batch: memoryview, pick: _Pick | bool) -> bytes | memoryview | None:
        if isinstance(pick, _Pick) and len(pick.tombstones) and self._is_expired(header):
            pick = pick.without_tombstones()
        count = len(pick.staying) if isinstance(pick, _Pick) else pick * header.record_count
        if not count:
            return None
        self.records_after += count
        if header.is_transactional:
            self._open.add(header.producer_id)
        if not isinstance(pick, _Pick):
            return batch
        if len(pick.tombstones) and header.delete_horizon_ms is None:
            records = decode_batch(batch)
            return self._with_horizon(header, [records[number] for number in pick.staying - pick.first])
        return batch if count == header.record_count else _with_fewer(header, pick)

    def _with_horizon(self, header: BatchHeader, kept: list[Record]) -> bytes:
        return _rewritten(header, kept, self.work.now_ms + self.work.config.delete_retention_ms)


def _with_fewer(header: BatchHeader, pick: _Pick) -> bytes:
    """The batch with only these records, copied byte for byte: they are relative to a header that does not change."""
    newest = header.max_timestamp
    if not header.has_append_time:
        newest = header.base_timestamp + int(pick.records.time_deltas[pick.staying].max())
    return repacked_batch(header, pick.records.bytes_of(pick.staying), len(pick.staying), newest)


def _rewritten(header: BatchHeader, kept: list[Record], horizon: int | None) -> bytes:
    """The batch with fewer records or a delete horizon. It still covers the same offsets and sequence numbers."""
    made = encode_batch(
        kept,
        base_offset=header.base_offset,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        compression=Codec(header.codec),
        transactional=header.is_transactional,
        control=header.is_control,
        delete_horizon_ms=horizon,
        keep_offsets=True,
        last_offset_delta=header.last_offset_delta,
        leader_epoch=header.leader_epoch,
    )
    return with_append_time(memoryview(made), header.max_timestamp) if header.has_append_time else made


def _groups(sources: Sequence[SourceSegment], segment_bytes: int) -> Iterator[list[SourceSegment]]:
    """Adjacent segments that fit into one together, so that many small ones do not remain."""
    group: list[SourceSegment] = []
    for source in sources:
        fits = group and (
            sum(segment.size for segment in group) + source.size <= segment_bytes
            and source.next_offset - group[0].base_offset <= MAX_RELATIVE_OFFSET
        )
        if group and not fits:
            yield group
            group = []
        group.append(source)
    if group:
        yield group


def _clean_group(cleaner: _Cleaner, group: Sequence[SourceSegment]) -> CleanedGroup:
    directory, base = cleaner.work.directory, group[0].base_offset
    for suffix in (".log", ".index", ".timeindex"):
        (directory / (file_name(base, suffix) + ".cleaned")).unlink(missing_ok=True)
    result = Segment(directory, base, cleaner.work.config.index_interval_bytes, suffix=".cleaned")
    for source in group:
        with _named(source):
            for chunk in _chunks_of(directory, source):
                kept = list(cleaner.cleaned(chunk))
                result.append([batch for _, batch in kept], [header for header, _ in kept])
                cleaner.pace.spend(_size_of(chunk) + _size_of(kept))
    replaced = tuple(source.base_offset for source in group)
    if result.size == 0:
        result.delete()
        return CleanedGroup(replaced, group[-1].next_offset, has_file=False)
    result.close_indexes()
    sync_data(result.handle.fd)
    for index in (result.index, result.time_index):
        sync_file(index.path)
    os.utime(result.path, ns=(group[-1].modified_ms * 1_000_000,) * 2)
    return CleanedGroup(replaced, group[-1].next_offset, has_file=True)


@contextmanager
def _named(segment: SourceSegment) -> Iterator[None]:
    """Add the file's name to CorruptMessage."""
    try:
        yield
    except CorruptMessage as error:
        raise CorruptMessage(f"{file_name(segment.base_offset, '.log')}: {error}") from error


def _size_of(batches: Sequence[Batch]) -> int:
    return sum(len(batch) for _, batch in batches)


def _chunks_of(directory: Path, segment: SourceSegment) -> Iterator[list[Batch]]:
    """The segment's batches in chunks. Raises OSError, and CorruptMessage for an incomplete batch."""
    if segment.size == 0:
        return
    path = directory / file_name(segment.base_offset, ".log")
    with path.open("rb", buffering=0) as file:
        position, read_bytes = 0, _CHUNK
        while (left := segment.size - position) > 0:
            asked = min(read_bytes, left)
            data = memoryview(os.pread(file.fileno(), asked, position))
            chunk: list[Batch] = []
            at, read_bytes = 0, _CHUNK
            while at + HEADER_SIZE <= len(data):
                header = BatchHeader.parse(data, at)
                size = header.length + LOG_OVERHEAD
                if header.magic != MAGIC or size < HEADER_SIZE:
                    break
                if at + size > len(data):
                    read_bytes = max(size, _CHUNK)
                    break
                chunk.append((header, data[at : at + size]))
                at += size
            if chunk:
                yield chunk
            elif min(read_bytes, left) <= asked:
                raise CorruptMessage(f"no whole batch at position {position}")
            position += at
