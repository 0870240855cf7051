"""Reads a log: batches by offset, records by time, aborted transactions, ends of leader epochs."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from broker.errors import KafkaStorageError, OffsetOutOfRange
from broker.log.leader_epochs import LeaderEpochs
from broker.log.segments import LogSlice
from broker.log.state import LogState
from broker.log.time_search import TimeSearch
from broker.log.transaction_index import AbortedTransaction
from broker.protocol.records import BatchHeader, Record, decode_batch

__all__ = ["Reader"]

_ITERATION_BYTES: Final = 1024 * 1024


class Reader:
    """Used on the log's thread only."""

    def __init__(self, log: LogState) -> None:
        self._log = log

    def read(self, offset: int, max_bytes: int, *, minimum_one: bool = True, until: int | None = None) -> LogSlice:
        """Batches from the one that contains ``offset`` on, at most ``max_bytes``, all from one segment.

        With ``minimum_one`` the first batch is returned even if it is larger; otherwise the result is empty then.
        Nothing from offset ``until`` on is returned (the last stable offset for readers of committed data). Raises
        OffsetOutOfRange outside of start and end.
        """
        log = self._log
        if not log.log_start_offset <= offset <= log.log_end_offset:
            if log.is_damaged:  # on OffsetOutOfRange consumers would reset their position
                raise KafkaStorageError(f"{log.topic}-{log.partition}: {log.failure}")
            raise OffsetOutOfRange(
                f"offset {offset} of {log.topic}-{log.partition} is not within {log.log_start_offset} to {log.log_end_offset}"
            )
        limit = log.log_end_offset if until is None else min(until, log.log_end_offset)
        return log.segments.read(offset, limit, max_bytes, minimum_one=minimum_one)

    def iter_batches(self, from_offset: int | None = None) -> Iterator[memoryview]:
        """Each complete batch from the one that contains ``from_offset`` on, up to the current end of the log."""
        offset = max(self._log.log_start_offset, from_offset or 0)
        end = self._log.log_end_offset
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
        start = max(self._log.log_start_offset, from_offset or 0)
        for batch in self.iter_batches(start):
            if not BatchHeader.parse(batch).is_control:
                yield from (record for record in decode_batch(batch) if record.offset >= start)

    def aborted_transactions(self, from_offset: int, until: int) -> list[AbortedTransaction]:
        """The aborted transactions with records between the two offsets, in the order in which they ended."""
        begin = bisect_left(self._log.aborted, from_offset, key=lambda entry: entry.last_offset)
        result = []
        for entry in itertools.islice(self._log.aborted, begin, None):
            if entry.first_offset < until:
                result.append(entry)
            if entry.last_stable_offset >= until:
                break  # all that ended later also began later
        return result

    def aborted_within(self, from_offset: int, log_slice: LogSlice) -> Sequence[AbortedTransaction]:
        """The aborted transactions with records in a slice read from ``from_offset`` on; it may include a few more."""
        if not self._log.aborted or self._log.aborted[-1].last_offset < from_offset:
            return ()
        until = self._log.segments.end_of(log_slice)
        return self.aborted_transactions(from_offset, self._log.log_end_offset if until is None else until + 1)

    def search_time(self, timestamp_ms: int | None) -> TimeSearch:
        """The search for the first record at or after a time, or (None) for the first with the largest timestamp
        (KIP-734).
        """
        start = self._log.log_start_offset
        if timestamp_ms is None:
            return self._log.segments.newest(start)
        return TimeSearch(self._log.segments.since(timestamp_ms, start), start, timestamp_ms)

    def offset_before_time(self, timestamp_ms: int) -> int | None:
        """An offset not long before the first record at or after a time; None if there is none. Reads no records."""
        return self._log.segments.offset_before(timestamp_ms, self._log.log_start_offset)

    def end_of_epoch(self, epoch: int) -> tuple[int, int]:
        """The last leader epoch up to ``epoch`` and its end offset; (-1, -1) if unknown."""
        if not self._log.leader_epoch:
            return (0, self._log.log_end_offset) if epoch == 0 else (-1, -1)
        return LeaderEpochs.read(self._log.directory).end_of(epoch, self._log.log_end_offset)
