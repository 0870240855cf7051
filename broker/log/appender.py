"""Appends to a log: batches are checked, get the next offsets and are written to the page cache."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from operator import is_
from typing import NamedTuple

from broker.errors import (
    CorruptMessage,
    InvalidRecord,
    KafkaStorageError,
    OutOfOrderSequence,
    TransactionalIdAuthorizationFailed,
    UnknownTopicOrPartition,
)
from broker.log.batch_rules import checked_batches, prepared
from broker.log.config import LogConfig
from broker.log.files import storage_errors
from broker.log.flusher import Flusher
from broker.log.inspection import Inspected, Rules, inspect_here
from broker.log.leader_epochs import LeaderEpochs
from broker.log.producer_state import ProducerBatch
from broker.log.recovery_files import RecoveryFiles
from broker.log.segment import MAX_RELATIVE_OFFSET, Segment
from broker.log.state import LogState
from broker.log.transaction_index import AbortedTransaction, TransactionIndex
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

__all__ = ["Appended", "Appender"]


class Appended(NamedTuple):
    """The offsets of appended records.

    ``append_time_ms`` is -1 unless the topic stamps records with the append time.
    """

    base_offset: int
    last_offset: int
    append_time_ms: int
    log_start_offset: int


class Appender:
    """Used on the log's thread only."""

    def __init__(self, log: LogState, flusher: Flusher, files: RecoveryFiles) -> None:
        self._log = log
        self._flusher = flusher
        self._files = files
        self.fill_history: Callable[[], None] | None = None
        """Fills the history of producers after a snapshot was read, which has only their last batches."""
        self._active_since_ms = 0
        self._jitter_ms = 0

    def begin(self, active_since_ms: int) -> None:
        """Called when recovery is done, with the age of the active segment."""
        self._active_since_ms = active_since_ms
        self._jitter_ms = _jitter(self._log.config)

    def append(
        self,
        records: bytes | memoryview,
        *,
        now_ms: int | None = None,
        from_client: bool = True,
        transaction_version: int | None = 0,
        inspected: Inspected | None = None,
    ) -> Appended:
        """Check the batches, assign the next offsets and write them to the page cache.

        ``transaction_version`` is the ``transaction.version`` by which the caller checked that the partition is part of
        the producer's transaction; with None a client's transactional batches are refused. ``inspected`` is the result
        of an earlier inspection by the log's rules (``LogConfig.record_rules``); without it the batches are inspected
        now, however long it takes. All or nothing. For a batch that an idempotent producer repeats, the existing
        offsets are returned. Raises the errors of ``broker.log.batch_rules`` and ``broker.log.producer_state``, and
        KafkaStorageError if the disk fails; the log is then unchanged.
        """
        log = self._log
        if log.is_retired or log.failure is not None:
            self._refuse_if_failed()
        now = _now_ms() if now_ms is None else now_ms
        view = memoryview(records)
        headers = checked_batches(view, log.config, now, from_client=from_client)
        if headers[0].producer_id != NO_PRODUCER_ID and from_client:
            if len(headers) > 1:
                raise InvalidRecord(
                    f"{len(headers)} batches of an idempotent producer came for one partition; one is allowed"
                )
            if transaction_version is None and headers[0].is_transactional:
                raise TransactionalIdAuthorizationFailed("transactional records came without a transactional id")
            repeated = self._repeated(headers[0], transaction_version or 0)
            if repeated is not None:
                return Appended(repeated.base_offset, repeated.last_offset, NO_TIMESTAMP, log.log_start_offset)
        rules = log.config.record_rules
        if rules is not None:
            view, headers = _looked_into(view, headers, rules, inspected, from_client=from_client)
        base_offset = log.log_end_offset
        buffers, placed = prepared(view, headers, log.config, base_offset, now, log.leader_epoch)
        self._write(buffers, placed, now)
        for header in placed:
            if header.producer_id != NO_PRODUCER_ID and not header.is_control:
                log.producers.update(header)
        append_time = now if log.config.message_timestamp_type == "LogAppendTime" else NO_TIMESTAMP
        return Appended(base_offset, log.log_end_offset - 1, append_time, log.log_start_offset)

    def refused(self, records: bytes | memoryview) -> None:
        """Record that a client was told to retry a batch; see ``ProducerState.refused``."""
        with suppress(CorruptMessage):
            self._log.producers.refused(BatchHeader.parse(records))

    def _repeated(self, header: BatchHeader, transaction_version: int) -> ProducerBatch | None:
        """The batch in the log that this one repeats. Raises the errors of ``ProducerState.check``."""
        try:
            return self._log.producers.check(header, transaction_version)
        except OutOfOrderSequence:
            # A snapshot has only the last batch of each producer; earlier ones are looked up when needed.
            if self.fill_history is None:
                raise
            self.fill_history()
            self.fill_history = None
            return self._log.producers.check(header, transaction_version)

    def append_records(
        self,
        records: Sequence[Record],
        *,
        now_ms: int | None = None,
        producer: tuple[int, int] | None = None,
        compression: Codec = Codec.NONE,
    ) -> Appended:
        """Append the broker's own records in one batch. Records without a timestamp get the current time.

        With a ``producer`` (id, epoch) they are part of its transaction, without sequence numbers. Raises
        InvalidProducerEpoch.
        """
        now = _now_ms() if now_ms is None else now_ms
        stamped = [record if record.timestamp_ms >= 0 else record._replace(timestamp_ms=now) for record in records]
        if producer is None:
            return self.append(encode_batch(stamped, compression=compression), now_ms=now, from_client=False)
        self._log.producers.check_epoch(*producer)
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

        Without a ``coordinator_epoch`` the marker comes from this broker's own coordinator, which has no successor.
        ``transaction_version`` is that of the request that ended the transaction.
        """
        self._refuse_if_failed()
        now = _now_ms() if now_ms is None else now_ms
        if coordinator_epoch is None:
            coordinator_epoch = self._log.producers.coordinator_epoch(producer_id)
        self._log.producers.check_marker(producer_id, producer_epoch, coordinator_epoch, transaction_version)
        batch = encode_marker(
            producer_id,
            producer_epoch,
            self._log.log_end_offset,
            commit=commit,
            coordinator_epoch=coordinator_epoch,
            timestamp_ms=now,
            leader_epoch=self._log.leader_epoch,
        )
        header = BatchHeader.parse(batch)
        # A concurrent flush must not mark the marker as durable before the transaction index has its entry.
        with self._flusher.only_below(header.base_offset):
            try:
                self._write([batch], [header], now)
                index = TransactionIndex(self._log.active.transaction_index_path)
                self.take_marker(header, decode_batch(batch)[0], index)
                self._log.active.aborts_synced = self._log.active.aborts_synced and commit
            except OSError as error:
                raise self._flusher.failed(f"cannot write the transaction index: {error.strerror or error}") from error
        return Appended(header.base_offset, header.base_offset, NO_TIMESTAMP, self._log.log_start_offset)

    def take_marker(self, header: BatchHeader, record: Record, index: TransactionIndex | None) -> None:
        """Apply a marker that is in the log. Aborted transactions are added to ``index``; recovery may pass None."""
        commit, coordinator_epoch = decode_marker(record)
        ended = self._log.producers.end_transaction(header, coordinator_epoch, aborted=not commit)
        if ended is None or not ended.aborted:
            return
        open_from = self._log.producers.first_open_transaction
        stable = header.last_offset + 1 if open_from is None else open_from
        entry = AbortedTransaction(ended.producer_id, ended.first_offset, ended.last_offset, stable)
        self._log.aborted.append(entry)
        if index is not None and index.append(entry):
            self._flusher.directory_changed()

    def lead(self, epoch: int) -> None:
        """Continue in an epoch that another broker's records have reached. Raises KafkaStorageError."""
        if epoch == self._log.leader_epoch:
            return
        epochs = LeaderEpochs.read(self._log.directory)
        if epochs.assign(epoch, self._log.log_end_offset):
            with storage_errors(f"write the leader epochs of {self._log.topic}-{self._log.partition}"):
                epochs.write(self._log.directory)
        self._log.leader_epoch = epoch

    def _write(self, buffers: Sequence[bytes | memoryview], headers: Sequence[BatchHeader], now: int) -> None:
        log = self._log
        last = headers[-1]
        last_offset = last.base_offset + last.last_offset_delta
        size = sum(map(len, buffers))
        try:
            if self._must_roll(size, last_offset, last.max_timestamp, now):
                self.roll(now)
            log.segments[-1].append(buffers, headers)
        except OSError as error:
            why = f"cannot append to {log.topic}-{log.partition}: {error.strerror or error}"
            if log.active.has_excess:
                self._flusher.failed(why)
            raise KafkaStorageError(why) from error
        log.log_end_offset = last_offset + 1
        log.written_bytes += size

    def _must_roll(self, size: int, last_offset: int, timestamp: int, now: int) -> bool:
        active, config = self._log.segments[-1], self._log.config
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
            longest = config.max_compaction_lag_ms  # only closed segments are compacted
        return waited > longest - self._jitter_ms

    def roll(self, now_ms: int | None = None) -> None:
        """Close the active segment and start a new one at the end of the log. Raises OSError."""
        if self._log.active.size == 0 and self._log.active.base_offset == self._log.log_end_offset:
            return
        self._files.save_snapshot(self._log.log_end_offset, self._log.producers.snapshot(), durable=False)
        log = self._log
        fresh = Segment(log.directory, log.log_end_offset, log.config.index_interval_bytes, log.upkeep.open_files)
        if self._log.config.preallocate:
            fresh.preallocate(self._log.config.segment_bytes)
        self._flusher.directory_changed()
        self._log.segments.start(fresh)
        self._active_since_ms = _now_ms() if now_ms is None else now_ms
        self._jitter_ms = _jitter(self._log.config)

    def _refuse_if_failed(self) -> None:
        if self._log.is_retired:
            raise UnknownTopicOrPartition(f"{self._log.topic}-{self._log.partition} has been deleted")
        if self._log.failure is not None:
            raise KafkaStorageError(
                f"{self._log.topic}-{self._log.partition} takes no records for now: {self._log.failure}"
            )


def _looked_into(
    view: memoryview, headers: list[BatchHeader], rules: Rules, inspected: Inspected | None, *, from_client: bool
) -> tuple[memoryview, list[BatchHeader]]:
    """The batches to write. Raises the errors of ``inspection.inspect``."""
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
    return memoryview(b"".join(made)), [BatchHeader.parse(item) for item in made]


def _jitter(config: LogConfig) -> int:
    return random.randint(0, min(config.segment_jitter_ms, config.segment_ms)) if config.segment_jitter_ms else 0


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
