"""Compaction: of each key only the last record stays (``cleanup.policy=compact``), offsets as they were.

In three steps, so that the long one may run elsewhere: ``plan`` looks at a log and says what to do, ``run`` reads the closed
segments and writes ``.cleaned`` files (any thread or process: a plan is plain data), ``PartitionLog.finish_compaction`` puts
them in place. A crash in between loses nothing: recovery removes ``.cleaned`` files and completes ``.swap`` files.

Tombstones, and the markers of transactions of which nothing is left, stay for ``delete.retention.ms`` after the
round that met them first (KIP-534); records of aborted transactions go at once.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import compress, count, repeat
from operator import le
from pathlib import Path
from time import monotonic, sleep
from typing import Final, NamedTuple

from broker.log.config import LogConfig
from broker.log.files import sync_data
from broker.log.record_spans import Spans, spans
from broker.log.segment import MAX_RELATIVE_OFFSET, Segment, file_name
from broker.log.transaction_index import AbortedTransaction
from broker.protocol.compression import Codec
from broker.protocol.records import (
    BatchHeader,
    Record,
    batches,
    decode_batch,
    encode_batch,
    opened_batch,
    repacked_batch,
    with_append_time,
)

__all__ = ["MAX_KEYS", "CleanedGroup", "Compaction", "CompactionPlan", "SourceSegment", "plan", "run"]

MAX_KEYS: Final = 500_000
"""Keys remembered in one round, unless the plan says otherwise; a log with more is done in several rounds."""

_LONGEST_KEY: Final = 32
_WRITE_BYTES: Final = 1024 * 1024
_BURST_S: Final = 0.1
"""So much of what was not used is made up for."""


class SourceSegment(NamedTuple):
    """A closed segment as compaction sees it. ``size`` is what counts of the file."""

    base_offset: int
    next_offset: int
    size: int
    max_timestamp: int
    modified_ms: int
    first_timestamp: int | None = None
    """Of its first batch; None where that does not matter."""


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """What to compact: ``clean`` segments that were done before, then ``dirty`` ones that were not. Plain data."""

    directory: Path
    clean: tuple[SourceSegment, ...]
    dirty: tuple[SourceSegment, ...]
    aborted: tuple[AbortedTransaction, ...]
    config: LogConfig
    now_ms: int
    max_keys: int = MAX_KEYS
    bytes_per_s: float | None = None
    """How much may be read and written in a second; None is no limit."""


class _Pace:
    """Holds up who reads and writes faster than he may. For a thread or process of its own."""

    def __init__(self, bytes_per_s: float | None) -> None:
        self._s_per_byte = 0.0 if bytes_per_s is None else 1 / bytes_per_s
        self._allowed_at = monotonic()
        """When what was spent so far is allowed for."""

    def spend(self, size: int) -> None:
        if not self._s_per_byte:
            return
        now = monotonic()
        self._allowed_at = max(self._allowed_at, now - _BURST_S) + size * self._s_per_byte
        if self._allowed_at > now:
            sleep(self._allowed_at - now)


@dataclass(frozen=True, slots=True)
class CleanedGroup:
    """One ``.cleaned`` file takes the place of the segments with these base offsets; without a file nothing is left of them."""

    replaced: tuple[int, ...]
    next_offset: int
    has_file: bool


@dataclass(frozen=True, slots=True)
class Compaction:
    """What a run made. Up to ``clean_until`` the log holds each key once, but for records that came later."""

    groups: tuple[CleanedGroup, ...]
    clean_until: int
    records_before: int
    records_after: int


def plan(
    segments: Sequence[SourceSegment],
    aborted: Sequence[AbortedTransaction],
    config: LogConfig,
    *,
    directory: Path,
    first_dirty_offset: int,
    stable_until: int,
    now_ms: int,
) -> CompactionPlan | None:
    """What to do with the closed ``segments``, oldest first; None if too little is dirty.

    Left alone: records younger than ``min.compaction.lag.ms`` and everything from ``stable_until`` on, where a transaction is open.
    """
    clean: list[SourceSegment] = []
    dirty: list[SourceSegment] = []
    for segment in segments:
        newest = segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms
        if segment.next_offset > stable_until or now_ms - newest < config.min_compaction_lag_ms:
            break
        (clean if segment.next_offset <= first_dirty_offset else dirty).append(segment)
    if not dirty:
        return None
    dirty_bytes = sum(segment.size for segment in dirty)
    total = dirty_bytes + sum(segment.size for segment in clean)
    began = min(
        (one.first_timestamp for one in dirty if one.first_timestamp and one.first_timestamp > 0), default=now_ms
    )
    overdue = now_ms - began > config.max_compaction_lag_ms
    if dirty_bytes < config.min_cleanable_dirty_ratio * total and not overdue:
        return None
    return CompactionPlan(directory, tuple(clean), tuple(dirty), tuple(aborted), config, now_ms)


def run(work: CompactionPlan) -> Compaction:
    """Write the ``.cleaned`` files of a plan, durable. Raises OSError, FileNotFoundError where a segment went meanwhile."""
    pace = _Pace(work.bytes_per_s)
    latest, clean_until = _latest_offsets(work, pace)
    sources = [segment for segment in (*work.clean, *work.dirty) if segment.base_offset < clean_until]
    latest[None] = sys.maxsize  # what has no key has no place here: no client can write it
    cleaner = _Cleaner(work, latest, pace)
    groups = tuple(_clean_group(cleaner, group) for group in _groups(sources, work.config.segment_bytes))
    return Compaction(groups, clean_until, cleaner.records_before, cleaner.records_after)


def _digest(key: bytes) -> bytes:
    """What stands for a long key in memory; shorter ones stand for themselves. One byte more than these may have."""
    return blake2b(key, digest_size=_LONGEST_KEY + 1).digest()


def _remembered(keys: list[bytes | None]) -> list[bytes | None]:
    """The keys as they are kept in memory."""
    try:
        if len(max(keys, key=len, default=b"")) <= _LONGEST_KEY:  # type: ignore[arg-type]
            return keys
    except TypeError:  # one is None
        pass
    return [key if key is None or len(key) <= _LONGEST_KEY else _digest(key) for key in keys]


def _offsets(header: BatchHeader, records: Spans) -> Iterator[int]:
    return map(header.base_offset.__add__, records.deltas)


def _latest_offsets(work: CompactionPlan, pace: _Pace) -> tuple[dict[bytes | None, int], int]:
    """The last offset of each key in the dirty segments, None being one of them, and up to where they were read."""
    latest: dict[bytes | None, int] = {}
    until = work.dirty[0].base_offset
    aborted = _Aborted(work.aborted)
    for segment in work.dirty:
        for header, batch in _batches_of(work.directory, segment):
            pace.spend(len(batch))
            if len(latest) >= work.max_keys and until > work.dirty[0].base_offset:
                return latest, until
            if not header.is_control and not aborted.covers(header):
                records = spans(opened_batch(batch)[1], header.record_count)
                latest.update(zip(_remembered(records.keys), _offsets(header, records), strict=True))
            until = header.last_offset + 1
        until = segment.next_offset
    return latest, until


class _Aborted:
    """Answers whether a batch belongs to a transaction that was aborted."""

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
    """Decides batch by batch, from the start of the log on."""

    work: CompactionPlan
    latest: dict[bytes | None, int]
    pace: _Pace
    records_before: int = 0
    records_after: int = 0
    _aborted: _Aborted = field(init=False)
    _open: set[int] = field(default_factory=set)
    """Producers with transactional batches that stay and whose marker has not come yet."""

    def __post_init__(self) -> None:
        self._aborted = _Aborted(self.work.aborted)

    def cleaned(self, header: BatchHeader, batch: memoryview) -> bytes | memoryview | None:
        """The batch as it stays: itself, a smaller one, or nothing."""
        self.records_before += header.record_count
        if self._aborted.covers(header):
            return None
        horizon = header.delete_horizon_ms
        expired = horizon is not None and horizon <= self.work.now_ms
        records = spans(opened_batch(batch)[1], header.record_count)
        if header.is_control:
            stays = header.producer_id in self._open or not expired
            kept = list(range(len(records.ends))) if stays else []
            horizon_needed = header.producer_id not in self._open
            self._open.discard(header.producer_id)
        else:
            kept = self._staying(records, header, tombstones=not expired)
            horizon_needed = any(records.tombstones) and any(records.tombstones[index] for index in kept)
            if kept and header.is_transactional:
                self._open.add(header.producer_id)
        self.records_after += len(kept)
        if not kept:
            return None
        sets_horizon = horizon_needed and horizon is None
        if len(kept) == len(records.ends) and not sets_horizon:
            return batch
        if not sets_horizon:
            return _shrunk(header, records, kept)
        deltas = {records.deltas[index] for index in kept}
        staying = [record for record in decode_batch(batch) if record.offset - header.base_offset in deltas]
        return _rewritten(header, staying, self.work.now_ms + self.work.config.delete_retention_ms)

    def _staying(self, records: Spans, header: BatchHeader, *, tombstones: bool) -> list[int]:
        """Which records stay, with no Python call per record."""
        last = map(self.latest.get, _remembered(records.keys), repeat(-1))
        kept = list(compress(count(), map(le, last, _offsets(header, records))))
        return kept if tombstones else [index for index in kept if not records.tombstones[index]]


def _shrunk(header: BatchHeader, records: Spans, kept: list[int]) -> bytes:
    """The batch with only these records, byte for byte: they are relative to a header that stays as it is."""
    newest = header.max_timestamp
    if not header.has_append_time and newest != header.base_timestamp:
        newest = records.largest_timestamp(kept, header.base_timestamp)
    return repacked_batch(header, records.bytes_of(kept), len(kept), newest)


def _rewritten(header: BatchHeader, kept: list[Record], horizon: int | None) -> bytes:
    """The batch with fewer records or a delete horizon; it goes on covering the same offsets and sequence numbers."""
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
    """Neighbours that fit into one segment together, so that many small ones do not stay."""
    group: list[SourceSegment] = []
    for source in sources:
        fits = group and (
            sum(one.size for one in group) + source.size <= segment_bytes
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
    pending: list[bytes | memoryview] = []
    headers: list[BatchHeader] = []
    size = 0
    for source in group:
        for header, batch in _batches_of(directory, source):
            kept = cleaner.cleaned(header, batch)
            cleaner.pace.spend(len(batch) + (0 if kept is None else len(kept)))
            if kept is None:
                continue
            pending.append(bytes(kept))
            headers.append(BatchHeader.parse(kept))
            size += len(kept)
            if size >= _WRITE_BYTES:
                result.append(pending, headers)
                pending, headers, size = [], [], 0
    if pending:
        result.append(pending, headers)
    replaced = tuple(source.base_offset for source in group)
    if result.size == 0:
        result.delete()
        return CleanedGroup(replaced, group[-1].next_offset, has_file=False)
    result.close_indexes()
    sync_data(result.handle.fd)
    os.utime(result.path, ns=(group[-1].modified_ms * 1_000_000,) * 2)
    return CleanedGroup(replaced, group[-1].next_offset, has_file=True)


def _batches_of(directory: Path, segment: SourceSegment) -> Iterator[tuple[BatchHeader, memoryview]]:
    if segment.size == 0:
        return
    with _mapped(directory / file_name(segment.base_offset, ".log"), segment.size) as view:
        for position, header in batches(view):
            with view[position : position + header.size] as batch:
                yield header, batch


@contextmanager
def _mapped(path: Path, size: int) -> Iterator[memoryview]:
    with (
        path.open("rb") as file,
        mmap.mmap(file.fileno(), size, prot=mmap.PROT_READ) as mapped,
        memoryview(mapped) as view,
    ):
        yield view
