"""One partition's log: append, read, look up by offset and time, delete from the front.

Not for several threads at once, except ``flush``. Times are ms since the epoch. Work is per batch: records are
decoded only where their keys or single timestamps matter.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
import uuid
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from broker.errors import InvalidRecord, KafkaStorageError, OffsetOutOfRange, UnknownTopicOrPartition
from broker.log import compaction
from broker.log.batch_rules import checked_batches, prepared
from broker.log.config import LogConfig
from broker.log.files import storage_errors, sync_directory
from broker.log.producer_state import ProducerState
from broker.log.retention import SegmentFacts, expired_segments
from broker.log.segment import MAX_RELATIVE_OFFSET, Segment, file_name
from broker.log.segments import LogSlice, Segments
from broker.log.transaction_index import AbortedTransaction, TransactionIndex
from broker.protocol.records import (
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    Record,
    decode_batch,
    decode_marker,
    encode_batch,
    encode_marker,
)

__all__ = ["Appended", "LogSlice", "PartitionLog"]

PRODUCER_ID_EXPIRATION_MS: Final = 24 * 60 * 60 * 1000
_SNAPSHOTS_KEPT: Final = 2
_ITERATION_BYTES: Final = 1024 * 1024


class Appended(NamedTuple):
    """Where records went. ``append_time_ms`` is -1 unless the topic stamps records with the time of the append."""

    base_offset: int
    last_offset: int
    append_time_ms: int
    log_start_offset: int


class PartitionLog:
    """A log that ``broker.log.directory`` opened or created; ``broker.log.recovery`` fills it.

    ``config`` may be replaced at any time. ``producers`` and ``segments`` are for this package.
    """

    def __init__(self, directory: Path, topic: str, partition: int, topic_id: uuid.UUID, config: LogConfig) -> None:
        self.directory = directory
        self.topic = topic
        self.partition = partition
        self.topic_id = topic_id
        self.config = config
        self.log_start_offset = 0
        self.flushed_offset = 0
        self.first_dirty_offset = 0
        self.producers = ProducerState(f"{topic}-{partition}")
        self.segments = Segments()
        self.aborted: list[AbortedTransaction] = []
        self._next_offset = 0
        self._failure: str | None = None
        self._retired = False
        self._flush_lock = threading.Lock()
        self._directory_synced = False
        self._active_since_ms = 0
        self._jitter_ms = 0

    def __repr__(self) -> str:
        return f"<PartitionLog {self.topic}-{self.partition} {self.log_start_offset}..{self._next_offset}>"

    # What is in the log

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record; the high watermark too, for there is one replica."""
        return self._next_offset

    @property
    def last_stable_offset(self) -> int:
        """Where the oldest open transaction begins, else the end: readers of committed data stop here."""
        first_open = self.producers.first_open_transaction
        return self._next_offset if first_open is None else first_open

    @property
    def size(self) -> int:
        """Bytes of records on disk."""
        return sum(segment.size for segment in self.segments)

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    # Writing

    def append(self, records: bytes | memoryview, *, now_ms: int | None = None, from_client: bool = True) -> Appended:
        """Check the batches, give them the next offsets and write them to the page cache.

        All or nothing. A batch that an idempotent producer repeats is answered with the offsets it has. Raises the errors of
        ``broker.log.batch_rules`` and ``broker.log.producer_state``, and KafkaStorageError where the disk fails;
        then the log is as it was.
        """
        self._refuse_if_failed()
        now = _now_ms() if now_ms is None else now_ms
        view = memoryview(records)
        headers = checked_batches(view, self.config, now, from_client=from_client)
        if headers[0].producer_id != NO_PRODUCER_ID and from_client:
            if len(headers) > 1:
                raise InvalidRecord(
                    f"{len(headers)} batches of an idempotent producer came for one partition; one is allowed"
                )
            repeated = self.producers.check(headers[0])
            if repeated is not None:
                return Appended(repeated.base_offset, repeated.last_offset, NO_TIMESTAMP, self.log_start_offset)
        base_offset = self._next_offset
        buffers, placed = prepared(view, headers, self.config, base_offset, now)
        self._write(buffers, placed, now)
        for header in placed:
            if header.producer_id != NO_PRODUCER_ID and not header.is_control:
                self.producers.update(header)
        append_time = now if self.config.message_timestamp_type == "LogAppendTime" else NO_TIMESTAMP
        return Appended(base_offset, self._next_offset - 1, append_time, self.log_start_offset)

    def append_records(
        self, records: Sequence[Record], *, now_ms: int | None = None, producer: tuple[int, int] | None = None
    ) -> Appended:
        """Append records of the broker's own, in one batch; those without a timestamp get the present one.

        With a ``producer`` (id, epoch) they belong to its transaction, without sequence numbers; raises InvalidProducerEpoch.
        """
        now = _now_ms() if now_ms is None else now_ms
        stamped = [record if record.timestamp_ms >= 0 else record._replace(timestamp_ms=now) for record in records]
        if producer is None:
            return self.append(encode_batch(stamped), now_ms=now, from_client=False)
        self.producers.check_epoch(*producer)
        batch = encode_batch(stamped, producer_id=producer[0], producer_epoch=producer[1], transactional=True)
        return self.append(batch, now_ms=now, from_client=False)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int = 0,
        now_ms: int | None = None,
    ) -> Appended:
        """End a producer's transaction in this partition. Raises InvalidProducerEpoch or TransactionCoordinatorFenced."""
        self._refuse_if_failed()
        now = _now_ms() if now_ms is None else now_ms
        self.producers.check_marker(producer_id, producer_epoch, coordinator_epoch)
        batch = encode_marker(
            producer_id,
            producer_epoch,
            self._next_offset,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=now,
        )
        header = BatchHeader.parse(batch)
        self._write([batch], [header], now)
        self.take_marker(header, decode_batch(batch)[0], TransactionIndex(self.active.transaction_index_path))
        return Appended(header.base_offset, header.base_offset, NO_TIMESTAMP, self.log_start_offset)

    def take_marker(self, header: BatchHeader, record: Record, index: TransactionIndex) -> None:
        """Account for a marker that is in the log; an aborted transaction goes to ``index``. For recovery, too."""
        commit, coordinator_epoch = decode_marker(record)
        ended = self.producers.end_transaction(header, coordinator_epoch, aborted=not commit)
        if ended is None or not ended.aborted:
            return
        open_from = self.producers.first_open_transaction
        stable = header.last_offset + 1 if open_from is None else open_from
        entry = AbortedTransaction(ended.producer_id, ended.first_offset, ended.last_offset, stable)
        index.append(entry)
        self.aborted.append(entry)

    def _write(self, buffers: Sequence[bytes | memoryview], headers: Sequence[BatchHeader], now: int) -> None:
        last = headers[-1]
        last_offset = last.base_offset + last.last_offset_delta
        try:
            if self._must_roll(sum(map(len, buffers)), last_offset, last.max_timestamp, now):
                self.roll(now)
            self.segments[-1].append(buffers, headers)
        except OSError as error:
            raise KafkaStorageError(
                f"cannot append to {self.topic}-{self.partition}: {error.strerror or error}"
            ) from error
        self._next_offset = last_offset + 1

    def _must_roll(self, size: int, last_offset: int, timestamp: int, now: int) -> bool:
        active, config = self.segments[-1], self.config
        if active.size == 0:
            return last_offset - active.base_offset > MAX_RELATIVE_OFFSET
        if active.size + size > config.segment_bytes or active.index.size + 8 > config.segment_index_bytes:
            return True
        if last_offset - active.base_offset > MAX_RELATIVE_OFFSET:
            return True
        first = active.first_timestamp
        waited = timestamp - first if first is not None and first >= 0 else now - self._active_since_ms
        return waited > config.segment_ms - self._jitter_ms

    def roll(self, now_ms: int | None = None) -> None:
        """End the active segment and begin one at the end of the log. Raises OSError."""
        if self.active.size == 0 and self.active.base_offset == self._next_offset:
            return
        self._save_snapshot()
        fresh = Segment(self.directory, self._next_offset, self.config.index_interval_bytes)
        self._directory_synced = False
        self.segments.start(fresh)
        self._active_since_ms = _now_ms() if now_ms is None else now_ms
        self._jitter_ms = random.randint(0, self.config.segment_jitter_ms) if self.config.segment_jitter_ms else 0

    def _refuse_if_failed(self) -> None:
        if self._retired:
            raise UnknownTopicOrPartition(f"{self.topic}-{self.partition} has been deleted")
        if self._failure is not None:
            raise KafkaStorageError(f"{self.topic}-{self.partition} takes no records until a restart: {self._failure}")

    # To the disk

    def flush(self) -> int:
        """Bring everything appended so far to the disk itself; the offset up to which it is there. For any thread.

        Raises KafkaStorageError. After that the log refuses appends: what the disk holds is not known any more.
        """
        with self._flush_lock:
            target, segments = self._next_offset, self.segments.snapshot()
            if target <= self.flushed_offset or self._retired:
                return self.flushed_offset
            try:
                for segment in segments[_holding(segments, self.flushed_offset) :]:
                    segment.sync(closed=segment is not segments[-1])
                if not self._directory_synced:
                    self._directory_synced = True
                    sync_directory(self.directory)
            except OSError as error:
                if self._retired:
                    return self.flushed_offset
                self._failure = f"cannot flush: {error.strerror or error}"
                raise KafkaStorageError(f"{self.topic}-{self.partition}: {self._failure}") from error
            self.flushed_offset = target
            return target

    def save_indexes(self) -> None:
        """Write the active segment's index files; their entries are in memory until then."""
        with storage_errors(f"write the indexes of {self.topic}-{self.partition}"):
            self.active.index.save()
            self.active.time_index.save()

    def retire(self) -> None:
        """The files are going away: from now on appends raise UnknownTopicOrPartition, and a flush under way is let go."""
        self._retired = True

    def close(self) -> None:
        """Leave everything on disk, with the snapshot that a clean start reads. The log must not be used any more."""
        self.flush()
        with storage_errors(f"close {self.topic}-{self.partition}"):
            self.active.close_indexes()
            self._save_snapshot()

    def _save_snapshot(self) -> None:
        path = self.directory / file_name(self._next_offset, ".snapshot")
        if path.exists():
            return
        self.producers.save(path)
        for path in sorted(self.directory.glob("*.snapshot"))[:-_SNAPSHOTS_KEPT]:
            path.unlink()

    # Reading

    def read(self, offset: int, max_bytes: int, *, minimum_one: bool = True, until: int | None = None) -> LogSlice:
        """Batches from the one that holds ``offset`` on, at most ``max_bytes``, all of one segment.

        ``minimum_one`` gives the first batch whole even where it is larger; otherwise nothing is given then. Nothing from offset ``until``
        on (the last stable offset for readers of committed data). Raises OffsetOutOfRange outside start and end.
        """
        if not self.log_start_offset <= offset <= self._next_offset:
            raise OffsetOutOfRange(
                f"offset {offset} of {self.topic}-{self.partition} is not within {self.log_start_offset} to {self._next_offset}"
            )
        limit = self._next_offset if until is None else min(until, self._next_offset)
        return self.segments.read(offset, limit, max_bytes, minimum_one=minimum_one)

    def iter_batches(self, from_offset: int | None = None) -> Iterator[memoryview]:
        """Each whole batch from the one holding ``from_offset`` on, up to the present end of the log."""
        offset = max(self.log_start_offset, from_offset or 0)
        end = self._next_offset
        while offset < end:
            view = memoryview(self.read(offset, _ITERATION_BYTES).read())
            if not view:
                return
            position = 0
            while len(view) - position >= 61:
                header = BatchHeader.parse(view, position)
                if position + header.size > len(view):
                    break
                yield view[position : position + header.size]
                position += header.size
                offset = header.last_offset + 1

    def iter_records(self, from_offset: int | None = None) -> Iterator[Record]:
        """Every record from ``from_offset`` on (default: the start), without control records. For internal topics."""
        start = max(self.log_start_offset, from_offset or 0)
        for batch in self.iter_batches(start):
            if not BatchHeader.parse(batch).is_control:
                yield from (record for record in decode_batch(batch) if record.offset >= start)

    def aborted_transactions(self, from_offset: int, until: int) -> list[AbortedTransaction]:
        """The aborted transactions with records between the two offsets."""
        return [entry for entry in self.aborted if entry.last_offset >= from_offset and entry.first_offset < until]

    def offset_for_time(self, timestamp_ms: int) -> tuple[int, int] | None:
        """(timestamp, offset) of the first record that is not older; None if there is none."""
        return self.segments.offset_for_time(timestamp_ms, self.log_start_offset)

    def max_timestamp(self) -> tuple[int, int] | None:
        """(timestamp, offset) of the record with the largest timestamp, the first of them (KIP-734); None in an empty log."""
        largest = self.segments.max_timestamp(self.log_start_offset)
        return None if largest is None else self.offset_for_time(largest)

    # Deleting

    def delete_records(self, before: int) -> int:
        """Make ``before`` the start of the log (-1: its end); the new start. ``enforce_retention`` drops whole segments below.

        Raises OffsetOutOfRange beyond the end. The caller has the directory checkpoint the new start before it answers.
        """
        target = self._next_offset if before == -1 else before
        if not 0 <= target <= self._next_offset:
            raise OffsetOutOfRange(
                f"cannot delete {self.topic}-{self.partition} up to {before}: its end is {self._next_offset}"
            )
        self.log_start_offset = max(self.log_start_offset, target)
        return self.log_start_offset

    def enforce_retention(self, now_ms: int) -> int:
        """Delete segments that are too old or too many and forget idle producers; how many segments went."""
        self.producers.expire(now_ms - PRODUCER_ID_EXPIRATION_MS)
        facts = [self._facts(segment, now_ms) for segment in self.segments]
        count = expired_segments(facts, self.config, log_start_offset=self.log_start_offset, now_ms=now_ms)
        if count == 0:
            return 0
        with storage_errors(f"delete old segments of {self.topic}-{self.partition}"):
            if count == len(self.segments):
                self.roll(now_ms)
            self._drop(count)
        return count

    def _facts(self, segment: Segment, now_ms: int) -> SegmentFacts:
        newest = segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms
        if segment is self.active and segment.size == 0:
            newest = now_ms
        return SegmentFacts(segment.next_offset, segment.size, newest)

    def _drop(self, count: int) -> None:
        self.segments.drop(count)
        self.log_start_offset = max(self.log_start_offset, self.segments[0].base_offset)
        self.aborted = [entry for entry in self.aborted if entry.last_offset >= self.log_start_offset]

    # Compacting

    def plan_compaction(self, now_ms: int) -> compaction.CompactionPlan | None:
        """What ``broker.log.compaction.run`` should do with this log now; None if nothing. Ends nothing, changes nothing."""
        if not self.config.compacted:
            return None
        sources = [
            compaction.SourceSegment(
                one.base_offset, following.base_offset, one.size, one.max_timestamp, one.modified_ms
            )
            for one, following in itertools.pairwise(self.segments)
            if following.base_offset > self.log_start_offset
        ]
        return compaction.plan(
            sources,
            self.aborted,
            self.config,
            directory=self.directory,
            first_dirty_offset=self.first_dirty_offset,
            stable_until=self.last_stable_offset,
            now_ms=now_ms,
        )

    def finish_compaction(self, done: compaction.Compaction) -> bool:
        """Put what a run made in the place of the segments it read.

        False, and no change, if one of those has been deleted since. Raises KafkaStorageError.
        """
        with storage_errors(f"finish the compaction of {self.topic}-{self.partition}"):
            present = {segment.base_offset for segment in self.segments if segment is not self.active}
            if not all(base in present for group in done.groups for base in group.replaced):
                for path in self.directory.glob("*.cleaned"):
                    path.unlink()
                return False
            for group in done.groups:
                self.segments.swap(self.directory, group.replaced, group.next_offset, has_file=group.has_file)
                self._forget_aborted(group.replaced[0], group.next_offset)
            self.first_dirty_offset = max(self.first_dirty_offset, done.clean_until)
        return True

    def _forget_aborted(self, start: int, end: int) -> None:
        """Nothing of transactions whose markers were between these offsets is left."""
        self.aborted = [entry for entry in self.aborted if not start <= entry.last_offset < end]

    def compact(self, now_ms: int) -> bool:
        """Compact now, in this thread, if enough is dirty; whether anything was done."""
        work = self.plan_compaction(now_ms)
        if work is None:
            return False
        with storage_errors(f"compact {self.topic}-{self.partition}"):
            done = compaction.run(work)
        return self.finish_compaction(done)

    def opened(self, segments: list[Segment], next_offset: int) -> None:
        """Recovery is done: these are the segments (at least one), this is the end."""
        self.segments.replace(segments)
        self._next_offset = next_offset
        self._active_since_ms = segments[-1].modified_ms


def _holding(segments: Sequence[Segment], offset: int) -> int:
    """Which of the segments holds an offset."""
    return max(bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1, 0)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
