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
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from operator import is_
from pathlib import Path
from typing import Final, NamedTuple

from broker.errors import (
    CorruptMessage,
    InvalidRecord,
    KafkaStorageError,
    OffsetOutOfRange,
    OutOfOrderSequence,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartition,
)
from broker.log import compaction
from broker.log.batch_rules import checked_batches, prepared
from broker.log.config import NO_COMPACTION_LAG, LogConfig
from broker.log.files import storage_errors, sync_directory, sync_file, write_atomically
from broker.log.inspection import Inspected, Rules, inspect_here
from broker.log.leader_epochs import LeaderEpochs
from broker.log.offset_index import OffsetIndex
from broker.log.producer_state import ProducerBatch, ProducerState
from broker.log.retention import SegmentFacts, expired_segments
from broker.log.segment import MAX_RELATIVE_OFFSET, Segment, file_name
from broker.log.segments import LogSlice, Segments
from broker.log.swap import Swap
from broker.log.time_index import TimeIndex
from broker.log.time_search import TimeSearch
from broker.log.transaction_index import AbortedTransaction, TransactionIndex
from broker.log.upkeep import Upkeep
from broker.protocol.compression import Codec
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

__all__ = [
    "PRODUCER_ID_EXPIRATION_MS",
    "UNSYNCED_INDEX_BYTES",
    "Appended",
    "LogSlice",
    "Mark",
    "PartitionLog",
    "Savepoint",
]

PRODUCER_ID_EXPIRATION_MS: Final = 24 * 60 * 60 * 1000
UNSYNCED_INDEX_BYTES: Final = 1024 * 1024
"""After so many bytes of records the indexes are worth an fsync; recovery after a power cut doubts their last entries."""
_SNAPSHOTS_KEPT: Final = 2
_ITERATION_BYTES: Final = 1024 * 1024


class Appended(NamedTuple):
    """Where records went. ``append_time_ms`` is -1 unless the topic stamps records with the time of the append."""

    base_offset: int
    last_offset: int
    append_time_ms: int
    log_start_offset: int


class Savepoint(NamedTuple):
    """An end of a log: its offset, and where that is in which segment."""

    offset: int
    segment: Segment
    position: int


class Mark(NamedTuple):
    """What a recovery begins from: the producers at an offset, and indexes up to it. ``write`` is for any thread."""

    partition: PartitionLog
    offset: int
    snapshot: bytes
    indexes: tuple[TimeIndex, OffsetIndex]
    to_disk: bool
    """Whether the files are worth an fsync: after a power cut what they lack is read from the batches."""

    def write(self) -> None:
        """Bring all of it to the disk, behind the records. Raises KafkaStorageError."""
        one = self.partition
        one.flush()
        with storage_errors(f"write the recovery files of {one.topic}-{one.partition}"):
            try:
                one.save_snapshot(self.offset, self.snapshot, durable=self.to_disk)
                for index in self.indexes:
                    index.save()
                    if self.to_disk:
                        sync_file(index.path)
            except FileNotFoundError:
                # Deleted in the meantime, or moved away with its topic.
                if not one.is_retired:
                    raise


class PartitionLog:
    """A log that ``broker.log.directory`` opened or created; ``broker.log.recovery`` fills it.

    ``config`` may be replaced at any time. ``producers`` and ``segments`` are for this package.
    """

    def __init__(
        self,
        directory: Path,
        topic: str,
        partition: int,
        topic_id: uuid.UUID,
        config: LogConfig,
        upkeep: Upkeep[PartitionLog] | None = None,
    ) -> None:
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
        self.leader_epoch = 0
        self.upkeep: Upkeep[PartitionLog] = upkeep or Upkeep()
        self.is_new = False
        self.is_damaged = False
        self.checkpointed_offset = 0
        self.fill_history: Callable[[], None] | None = None
        self._failure: str | None = None
        self._retired = False
        self._flush_lock = threading.Lock()
        self._flush_below: int | None = None
        self._directory_synced = False
        self._active_since_ms = 0
        self._jitter_ms = 0
        self._snapshots: list[int] = []
        self._snapshots_lock = threading.Lock()
        self._written = 0
        self._marked_at = 0
        self._indexes_synced_at = 0

    def __repr__(self) -> str:
        return f"<PartitionLog {self.topic}-{self.partition} {self.log_start_offset}..{self._next_offset}>"

    # What is in the log

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record; the high watermark too, for there is one replica."""
        return self._next_offset

    @property
    def last_stable_offset(self) -> int:
        """Where the oldest open transaction begins, else the end: readers of committed data stop here.

        Not before the start of the log, though deleting records may have taken the beginning of the transaction.
        """
        first_open = self.producers.first_open_transaction
        return self._next_offset if first_open is None else max(first_open, self.log_start_offset)

    @property
    def size(self) -> int:
        """Bytes of records on disk."""
        return sum(segment.size for segment in self.segments)

    @property
    def active(self) -> Segment:
        return self.segments[-1]

    # Writing

    def append(
        self,
        records: bytes | memoryview,
        *,
        now_ms: int | None = None,
        from_client: bool = True,
        transaction_version: int | None = 0,
        inspected: Inspected | None = None,
    ) -> Appended:
        """Check the batches, give them the next offsets and write them to the page cache.

        ``transaction_version`` is how the caller made sure that the partition is part of the producer's transaction
        (``transaction.version``); with None a client's transactional batches are refused. ``inspected`` is what came of
        looking into the batch by the log's rules (``LogConfig.record_rules``), where that was done before; otherwise it is
        done now, however long it takes.
        All or nothing. A batch that an idempotent producer repeats is answered with the offsets it has. Raises the errors of
        ``broker.log.batch_rules`` and ``broker.log.producer_state``, and KafkaStorageError where the disk fails;
        then the log is as it was.
        """
        if self._retired or self._failure is not None:
            self._refuse_if_failed()
        now = _now_ms() if now_ms is None else now_ms
        view = memoryview(records)
        headers = checked_batches(view, self.config, now, from_client=from_client)
        if headers[0].producer_id != NO_PRODUCER_ID and from_client:
            if len(headers) > 1:
                raise InvalidRecord(
                    f"{len(headers)} batches of an idempotent producer came for one partition; one is allowed"
                )
            if transaction_version is None and headers[0].is_transactional:
                raise TransactionalIdAuthorizationFailed("transactional records came without a transactional id")
            repeated = self._repeated(headers[0], transaction_version or 0)
            if repeated is not None:
                return Appended(repeated.base_offset, repeated.last_offset, NO_TIMESTAMP, self.log_start_offset)
        rules = self.config.record_rules
        if rules is not None:
            view, headers = _looked_into(view, headers, rules, inspected, from_client=from_client)
        base_offset = self._next_offset
        buffers, placed = prepared(view, headers, self.config, base_offset, now, self.leader_epoch)
        self._write(buffers, placed, now)
        for header in placed:
            if header.producer_id != NO_PRODUCER_ID and not header.is_control:
                self.producers.update(header)
        append_time = now if self.config.message_timestamp_type == "LogAppendTime" else NO_TIMESTAMP
        return Appended(base_offset, self._next_offset - 1, append_time, self.log_start_offset)

    def refused(self, records: bytes | memoryview) -> None:
        """A client was told to send records again; see ``ProducerState.refused``."""
        with suppress(CorruptMessage):
            self.producers.refused(BatchHeader.parse(records))

    def _repeated(self, header: BatchHeader, transaction_version: int) -> ProducerBatch | None:
        """The batch in the log that this one repeats. Raises what ``ProducerState.check`` does."""
        try:
            return self.producers.check(header, transaction_version)
        except OutOfOrderSequence:
            # A snapshot holds the last batch of each producer only; those before it are looked up when it matters.
            if self.fill_history is None:
                raise
            self.fill_history()
            self.fill_history = None
            return self.producers.check(header, transaction_version)

    def append_records(
        self,
        records: Sequence[Record],
        *,
        now_ms: int | None = None,
        producer: tuple[int, int] | None = None,
        compression: Codec = Codec.NONE,
    ) -> Appended:
        """Append records of the broker's own, in one batch; those without a timestamp get the present one.

        With a ``producer`` (id, epoch) they belong to its transaction, without sequence numbers; raises InvalidProducerEpoch.
        """
        now = _now_ms() if now_ms is None else now_ms
        stamped = [record if record.timestamp_ms >= 0 else record._replace(timestamp_ms=now) for record in records]
        if producer is None:
            return self.append(encode_batch(stamped, compression=compression), now_ms=now, from_client=False)
        self.producers.check_epoch(*producer)
        batch = encode_batch(
            stamped,
            producer_id=producer[0],
            producer_epoch=producer[1],
            transactional=True,
            compression=compression,
        )
        return self.append(batch, now_ms=now, from_client=False)

    def append_marker(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        commit: bool,
        coordinator_epoch: int | None = None,
        transaction_version: int = 0,
        now_ms: int | None = None,
    ) -> Appended:
        """End a producer's transaction in this partition. Raises InvalidProducerEpoch or TransactionCoordinatorFenced.

        Without a ``coordinator_epoch`` it is by this broker's own coordinator, which no other can have followed.
        ``transaction_version`` is the one under which the transaction was ended.
        """
        self._refuse_if_failed()
        now = _now_ms() if now_ms is None else now_ms
        if coordinator_epoch is None:
            coordinator_epoch = self.producers.coordinator_epoch(producer_id)
        self.producers.check_marker(producer_id, producer_epoch, coordinator_epoch, transaction_version)
        batch = encode_marker(
            producer_id,
            producer_epoch,
            self._next_offset,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=now,
            leader_epoch=self.leader_epoch,
        )
        header = BatchHeader.parse(batch)
        # A flush in its thread must not call the marker durable before the transaction index has what it says.
        self._flush_below = header.base_offset
        try:
            self._write([batch], [header], now)
            self.take_marker(header, decode_batch(batch)[0], TransactionIndex(self.active.transaction_index_path))
            self.active.aborts_synced = self.active.aborts_synced and commit
        except OSError as error:
            raise self._failed(f"cannot write the transaction index: {error.strerror or error}") from error
        finally:
            self._flush_below = None
        return Appended(header.base_offset, header.base_offset, NO_TIMESTAMP, self.log_start_offset)

    def take_marker(self, header: BatchHeader, record: Record, index: TransactionIndex | None) -> None:
        """Account for a marker that is in the log; an aborted transaction goes to ``index``. For recovery, too, without one."""
        commit, coordinator_epoch = decode_marker(record)
        ended = self.producers.end_transaction(header, coordinator_epoch, aborted=not commit)
        if ended is None or not ended.aborted:
            return
        open_from = self.producers.first_open_transaction
        stable = header.last_offset + 1 if open_from is None else open_from
        entry = AbortedTransaction(ended.producer_id, ended.first_offset, ended.last_offset, stable)
        self.aborted.append(entry)
        if index is not None and index.append(entry):
            self._directory_synced = False

    def lead(self, epoch: int) -> None:
        """Go on in an epoch that another broker's records have reached. Raises KafkaStorageError."""
        if epoch == self.leader_epoch:
            return
        epochs = LeaderEpochs.read(self.directory)
        if epochs.assign(epoch, self._next_offset):
            with storage_errors(f"write the leader epochs of {self.topic}-{self.partition}"):
                epochs.write(self.directory)
        self.leader_epoch = epoch

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The last leader epoch up to ``epoch`` and the offset at which it ended; (-1, -1) if that is not known."""
        if not self.leader_epoch:
            return (0, self._next_offset) if epoch == 0 else (-1, -1)
        return LeaderEpochs.read(self.directory).end_of(epoch, self._next_offset)

    def _write(self, buffers: Sequence[bytes | memoryview], headers: Sequence[BatchHeader], now: int) -> None:
        last = headers[-1]
        last_offset = last.base_offset + last.last_offset_delta
        size = sum(map(len, buffers))
        try:
            if self._must_roll(size, last_offset, last.max_timestamp, now):
                self.roll(now)
            self.segments[-1].append(buffers, headers)
        except OSError as error:
            why = f"cannot append to {self.topic}-{self.partition}: {error.strerror or error}"
            if self.active.has_excess:
                self._failed(why)
            raise KafkaStorageError(why) from error
        self._next_offset = last_offset + 1
        self._written += size

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
        longest = config.segment_ms
        if config.max_compaction_lag_ms < longest and config.compacted:
            longest = config.max_compaction_lag_ms  # only what is in closed segments is compacted
        return waited > longest - self._jitter_ms

    def roll(self, now_ms: int | None = None) -> None:
        """End the active segment and begin one at the end of the log. Raises OSError."""
        if self.active.size == 0 and self.active.base_offset == self._next_offset:
            return
        self.save_snapshot(self._next_offset, self.producers.snapshot(), durable=False)
        fresh = Segment(self.directory, self._next_offset, self.config.index_interval_bytes)
        if self.config.preallocate:
            fresh.preallocate(self.config.segment_bytes)
        self._directory_synced = False
        self.segments.start(fresh)
        self._active_since_ms = _now_ms() if now_ms is None else now_ms
        self._jitter_ms = _jitter(self.config)

    def _refuse_if_failed(self) -> None:
        if self._retired:
            raise UnknownTopicOrPartition(f"{self.topic}-{self.partition} has been deleted")
        if self._failure is not None:
            raise KafkaStorageError(f"{self.topic}-{self.partition} takes no records for now: {self._failure}")

    # To the disk

    def flush(self) -> int:
        """Bring everything appended so far to the disk itself; the offset up to which it is there. For any thread.

        Raises KafkaStorageError. After that the log refuses appends and flushes until it is repaired: what the disk holds is
        not known, and the operating system may call pages written that it failed to write.
        """
        with self._flush_lock:
            target, segments, below = self._next_offset, self.segments.snapshot(), self._flush_below
            if below is not None:
                target = min(target, below)
            if target <= self.flushed_offset or self._retired:
                return self.flushed_offset
            if self._failure is not None:
                raise KafkaStorageError(f"{self.topic}-{self.partition}: {self._failure}")
            try:
                self._sync(segments, self.flushed_offset)
            except OSError as error:
                if self._retired:
                    return self.flushed_offset
                raise self._failed(f"cannot flush: {error.strerror or error}") from error
            self.flushed_offset = target
            self.upkeep.moved.add(self)
            return target

    def _failed(self, why: str) -> KafkaStorageError:
        """Take no records until ``repair``."""
        self._failure = why
        self.upkeep.failed.add(self)
        return KafkaStorageError(f"{self.topic}-{self.partition}: {why}")

    def _sync(self, segments: Sequence[Segment], from_offset: int) -> None:
        first = _holding(segments, from_offset)
        if first and segments[first].base_offset == from_offset:
            first -= 1  # flushed to its end while it was the active one: the indexes it was closed with are not
        for segment in segments[first:]:
            closed = segment is not segments[-1]
            try:
                segment.sync(closed=closed)
            except FileNotFoundError:
                # A closed one may have been deleted or compacted since the list was taken.
                if not closed:
                    raise
        if not self._directory_synced:
            self._directory_synced = True
            try:
                if self.is_new:
                    sync_file(self.directory / "partition.metadata")
                    self.upkeep.sync_names(self.directory.parent)
                    self.is_new = False
                sync_directory(self.directory)
            except OSError:
                self._directory_synced = False
                raise

    @property
    def savepoint(self) -> Savepoint:
        """Where the log ends now, for ``take_back``."""
        return Savepoint(self._next_offset, self.active, self.active.size)

    def take_back(self, savepoint: Savepoint) -> None:
        """Forget what was appended since, of which the disk is not known to have anything. Does not fail.

        For a log without idempotent producers. A crash may bring back whole appends.
        """
        with self._flush_lock:
            offset, segment, position = savepoint
            if offset < self._next_offset:
                self.active.cut(position if segment is self.active else 0, offset)
                self._next_offset = offset

    @property
    def failure(self) -> str | None:
        """Why the log takes no records; None if it does."""
        return self._failure

    @property
    def is_retired(self) -> bool:
        return self._retired

    def repair(self) -> bool:
        """After a failed flush: write again what may not be on the disk, and flush it; whether the log takes records again.

        The operating system takes pages that it could not write for written, so another flush alone would prove nothing. For any
        thread. What can't be read whole any more is beyond this: then ``is_damaged``, and ``broker.log.recovery`` cuts it off.
        """
        with self._flush_lock:
            if self._failure is None or self._retired:
                return True
            if self.is_damaged:
                return False
            segments, target = self.segments.snapshot(), self._next_offset
            doubtful = segments[_holding(segments, self.flushed_offset) :]
            try:
                if segments[-1].has_excess:
                    segments[-1].trim()
                if not all(one.rewrite(self.flushed_offset) for one in doubtful):
                    self.is_damaged = True
                    return False
                for one in doubtful:
                    ends = range(one.base_offset, max(one.next_offset, one.base_offset + 1))
                    entries = [entry for entry in self.aborted if entry.last_offset in ends]
                    TransactionIndex(one.transaction_index_path).replace(entries)
                    one.aborts_synced = False
                self._directory_synced = False
                self._sync(segments, self.flushed_offset)
            except CorruptMessage:
                self.is_damaged = True
                return False
            except OSError as error:
                self._failure = f"cannot flush: {error.strerror or error}"
                return False
            self.flushed_offset = target
            self.upkeep.moved.add(self)
            self._failure = None
            return True

    def damaged(self, why: str) -> KafkaStorageError:
        """Take no records until ``broker.log.recovery`` has read the files again: what is known of them may not be so."""
        self.is_damaged = True
        return self._failed(why)

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keep other threads from flushing."""
        with self._flush_lock:
            yield

    def reset(self) -> None:
        """Forget everything but the names, for ``broker.log.recovery`` to fill the log from its files again."""
        self.producers.clear()
        self.aborted = []
        self._failure, self.is_damaged = None, False

    def restart_at(self, offset: int) -> None:
        """Drop everything and begin at ``offset``, beyond the end. Raises KafkaStorageError."""
        with storage_errors(f"begin {self.topic}-{self.partition} at offset {offset}"):
            old = list(self.segments)
            self.reset()
            self.opened([Segment(self.directory, offset, self.config.index_interval_bytes)], offset, [])
            for segment in old:
                segment.delete()
        self.log_start_offset = self.flushed_offset = offset
        self.first_dirty_offset = min(self.first_dirty_offset, offset)

    def mark(self, *, at_least_bytes: int) -> Mark | None:
        """What a recovery would begin from now; None if fewer bytes were written since the last one."""
        written, active = self._written, self.active
        if written - self._marked_at < at_least_bytes or self._retired:
            return None
        self._marked_at = written
        to_disk = written - self._indexes_synced_at >= UNSYNCED_INDEX_BYTES
        if to_disk:
            self._indexes_synced_at = written
        return Mark(self, self._next_offset, self.producers.snapshot(), (active.time_index, active.index), to_disk)

    def recovered(self) -> None:
        """Have the next ``mark`` bring the indexes to the disk: they were made anew."""
        self._marked_at = self._indexes_synced_at = -UNSYNCED_INDEX_BYTES

    @property
    def unmarked_bytes(self) -> int:
        """Bytes written since the last ``mark``."""
        return self._written - self._marked_at

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
        with storage_errors(f"close {self.topic}-{self.partition}"):
            if self.config.preallocate or self.active.has_excess:
                self.active.trim()
            self.flush()
            self.active.close_indexes()
            if self._written > self._indexes_synced_at:
                for index in (self.active.time_index, self.active.index):
                    sync_file(index.path)
            if self._next_offset:
                self.save_snapshot(self._next_offset, self.producers.snapshot(), durable=False)

    def save_snapshot(self, offset: int, snapshot: bytes, *, durable: bool) -> None:
        """Keep the producers as they were at ``offset``, and the older snapshots that a recovery may need. Raises OSError."""
        if self._snapshots and self._snapshots[-1] >= offset:
            return
        write_atomically(self.directory / file_name(offset, ".snapshot"), snapshot, durable=durable)
        with self._snapshots_lock:
            insort(self._snapshots, offset)
            base = max(bisect_right(self._snapshots, self.checkpointed_offset) - 1, 0)
            unneeded = max(min(base, len(self._snapshots) - _SNAPSHOTS_KEPT), 0)
            gone, self._snapshots = self._snapshots[:unneeded], self._snapshots[unneeded:]
        for old in gone:
            (self.directory / file_name(old, ".snapshot")).unlink(missing_ok=True)

    # Reading

    def read(self, offset: int, max_bytes: int, *, minimum_one: bool = True, until: int | None = None) -> LogSlice:
        """Batches from the one that holds ``offset`` on, at most ``max_bytes``, all of one segment.

        ``minimum_one`` gives the first batch whole even where it is larger; otherwise nothing is given then. Nothing from offset ``until``
        on (the last stable offset for readers of committed data). Raises OffsetOutOfRange outside start and end.
        """
        if not self.log_start_offset <= offset <= self._next_offset:
            if self.is_damaged:  # consumers go elsewhere when they are told that an offset is gone
                raise KafkaStorageError(f"{self.topic}-{self.partition}: {self._failure}")
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
        """The aborted transactions with records between the two offsets, in the order in which they ended."""
        begin = bisect_left(self.aborted, from_offset, key=lambda entry: entry.last_offset)
        found = []
        for entry in itertools.islice(self.aborted, begin, None):
            if entry.first_offset < until:
                found.append(entry)
            if entry.last_stable_offset >= until:
                break  # all that ended later began behind
        return found

    def aborted_within(self, from_offset: int, found: LogSlice) -> Sequence[AbortedTransaction]:
        """The aborted transactions with records in a slice read from ``from_offset`` on, perhaps a few more."""
        if not self.aborted or self.aborted[-1].last_offset < from_offset:
            return ()
        until = self.segments.end_of(found)
        return self.aborted_transactions(from_offset, self._next_offset if until is None else until + 1)

    def search_time(self, timestamp_ms: int | None) -> TimeSearch:
        """The search for the first record that is not older, or (None) for the first with the largest timestamp (KIP-734)."""
        start = self.log_start_offset
        if timestamp_ms is None:
            return self.segments.newest(start)
        return TimeSearch(self.segments.since(timestamp_ms, start), start, timestamp_ms)

    def offset_before_time(self, timestamp_ms: int) -> int | None:
        """An offset not long before the first record that is not older; None if there is none. Reads no records."""
        return self.segments.offset_before(timestamp_ms, self.log_start_offset)

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

    def enforce_retention(self, now_ms: int, producers_kept_ms: int = PRODUCER_ID_EXPIRATION_MS) -> int:
        """Delete segments that are too old or too many and forget idle producers; how many segments went."""
        self.producers.expire(now_ms - producers_kept_ms)
        facts = [self._facts(segment, now_ms) for segment in self.segments]
        count = expired_segments(facts, self.config, log_start_offset=self.log_start_offset, now_ms=now_ms)
        if count == 0:
            return 0
        with storage_errors(f"delete old segments of {self.topic}-{self.partition}"):
            if count == len(self.segments):
                self.roll(now_ms)
            self._drop(count)
        return count

    def bury(self, path: Path) -> None:
        """Have a file removed that is out of use, after ``file.delete.delay.ms``."""
        self.upkeep.bury(path, self.config.file_delete_delay_ms)

    def _facts(self, segment: Segment, now_ms: int) -> SegmentFacts:
        newest = segment.max_timestamp if segment.max_timestamp >= 0 else segment.modified_ms
        if segment is self.active and segment.size == 0:
            newest = now_ms
        return SegmentFacts(segment.next_offset, segment.size, newest)

    def _drop(self, count: int) -> None:
        try:
            self.segments.drop(count, self.bury)
        finally:
            self.log_start_offset = max(self.log_start_offset, self.segments[0].base_offset)
            self.aborted = [entry for entry in self.aborted if entry.last_offset >= self.log_start_offset]

    # Compacting

    def plan_compaction(self, now_ms: int) -> compaction.CompactionPlan | None:
        """What ``broker.log.compaction.run`` should do with this log now; None if nothing. Ends nothing, changes nothing."""
        if not self.config.compacted:
            return None
        with storage_errors(f"look at {self.topic}-{self.partition} for its compaction"):
            sources = [
                compaction.SourceSegment(
                    one.base_offset,
                    following.base_offset,
                    one.size,
                    one.max_timestamp,
                    one.modified_ms,
                    self._began(one) if following.base_offset > self.first_dirty_offset else None,
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

    def _began(self, segment: Segment) -> int | None:
        """When a closed segment's first batch is from; None where ``max.compaction.lag.ms`` does not ask. Raises OSError."""
        if self.config.max_compaction_lag_ms >= NO_COMPACTION_LAG:
            return None
        began = segment.first_timestamp
        segment.release()
        return began

    def finish_compaction(self, done: compaction.Compaction) -> bool:
        """Put what a run made in the place of the segments it read; False if one of those has been deleted since.

        All at once, waiting for the disk; ``Swap`` lets others go on meanwhile. Raises KafkaStorageError.
        """
        swap = Swap(self, done)
        for sync in swap:
            sync()
        return swap.is_done

    def compact(self, now_ms: int) -> bool:
        """Compact now, in this thread, if enough is dirty; whether anything was done."""
        work = self.plan_compaction(now_ms)
        if work is None:
            return False
        with storage_errors(f"compact {self.topic}-{self.partition}"):
            done = compaction.run(work)
        return self.finish_compaction(done)

    def opened(self, segments: list[Segment], next_offset: int, snapshots: list[int] | None = None) -> None:
        """Recovery is done: these are the segments (at least one), this is the end; ``snapshots`` are there, ascending."""
        self.segments.replace(segments)
        self._next_offset = next_offset
        self._active_since_ms = segments[-1].modified_ms
        self._jitter_ms = _jitter(self.config)
        if snapshots is not None:
            self._snapshots = snapshots


def _looked_into(
    view: memoryview, headers: list[BatchHeader], rules: Rules, inspected: Inspected | None, *, from_client: bool
) -> tuple[memoryview, list[BatchHeader]]:
    """The batches as they are to be written. Raises what ``inspection.inspect`` does."""
    if inspected is not None and inspected.rules == rules:
        if inspected.error is not None:
            raise inspected.error
        if inspected.records is None:
            return view, headers
        made: Sequence[bytes | memoryview] = [inspected.records]
    else:
        came, position = [], 0
        for header in headers:
            came.append(view[position : position + header.size])
            position += header.size
        made = inspect_here(came, rules, from_client=from_client)
        if all(map(is_, made, came)):
            return view, headers
    return memoryview(b"".join(made)), [BatchHeader.parse(one) for one in made]


def _holding(segments: Sequence[Segment], offset: int) -> int:
    """Which of the segments holds an offset."""
    return max(bisect_right(segments, offset, key=lambda segment: segment.base_offset) - 1, 0)


def _jitter(config: LogConfig) -> int:
    return random.randint(0, min(config.segment_jitter_ms, config.segment_ms)) if config.segment_jitter_ms else 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
