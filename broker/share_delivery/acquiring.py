"""Decides which fetched records a member acquires."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from broker.share_delivery.delivery import NOBODY, Delivery, InFlightBatch, RecordState
from broker.share_delivery.partition import SharePartition
from broker.share_delivery.values import Acquired, BatchSpan

__all__ = ["acquire", "give_up"]

_CAREFUL_FROM: Final = 2
"""Below this number of deliveries, no attempt is made to isolate a failing record."""


def acquire(
    share: SharePartition,
    member_id: str,
    *,
    fetch_offset: int,
    batches: Sequence[BatchSpan],
    most: int,
    batch_size: int,
    exactly: bool,
) -> list[Acquired]:
    """Lock records of the batches read from ``fetch_offset`` on for a member.

    It acquires about ``most`` records: batches of the log are not divided, unless ``exactly`` makes that a strict
    limit. A new range of acquired records begins at the batch that would make the previous one larger than
    ``batch_size``.
    """
    if not share.is_active or most <= 0 or not batches or batches[-1].last < share.start_offset:
        return []
    return _Acquisition(share, member_id, fetch_offset, batches, most, batch_size, exactly).run()


class _Acquisition:
    def __init__(
        self,
        share: SharePartition,
        member_id: str,
        fetch_offset: int,
        batches: Sequence[BatchSpan],
        most: int,
        batch_size: int,
        exactly: bool,
    ) -> None:
        settings = share.settings
        self.share = share
        self.member_id = member_id
        self.fetch_offset = fetch_offset
        self.batches = batches
        self.batch_size = batch_size
        self.exactly = exactly
        self.limit = settings.delivery_count_limit
        self.careful_from = max(_CAREFUL_FROM, -(-self.limit // 2))
        """The number of deliveries from which on a record is delivered in smaller and smaller batches."""
        self.result: list[Acquired] = []
        self.count = 0
        self.first, self.last = max(batches[0].first, share.start_offset), batches[-1].last
        room = settings.max_record_locks - share.records_in_flight
        self.most = min(most, room)
        if self.most <= 0 and fetch_offset <= share.end_offset:
            # The window is full, but some records in it are available.
            self.most = min(most, share.end_offset - fetch_offset + 1)
            self.last = min(self.last, share.end_offset)

    def run(self) -> list[Acquired]:
        share = self.share
        if self.most <= 0:
            return []
        self._archive_missing()
        base = self.first
        holder = share.in_flight.floor(base)
        if holder is not None and holder.last >= base:
            base = holder.first
        known = share.in_flight.between(min(self.first, base), self.last)
        if not known:
            self._take_new(base, self.last)
            return self.result
        self._go_through(known, base)
        if self.count < self.most and known[-1].last < self.last:
            self._take_new(known[-1].last + 1, self.last)
        if self.result:
            share.fetched_up_to(self.result[-1].last + 1)
        return self.result

    def _archive_missing(self) -> None:
        """Archive records that should have been fetched but are no longer in the log (compaction)."""
        share, begin = self.share, self.fetch_offset
        if begin >= self.first or not len(share.in_flight):
            return
        holder = share.in_flight.floor(begin)
        if holder is not None and holder.last >= begin:
            begin = holder.first
        batches = share.in_flight.between(begin, self.first - 1)
        if share.archive(self.fetch_offset, self.first - 1, RecordState.AVAILABLE, batches):
            share.some_available = True
        share.fetched_up_to(self.first)
        share.make_room()

    def _go_through(self, known: Sequence[InFlightBatch], base: int) -> None:
        """Acquire available records of batches in flight, and new records from the gaps between them."""
        share, expected = self.share, base
        for batch in known:
            if self.count >= self.most:
                return
            if share.gap_start is not None:
                if expected < batch.first:
                    self._take_new(expected, batch.first - 1)
                expected = batch.last + 1
                if self.count >= self.most:
                    return
            careful = self._is_careful(batch)
            if careful and self.count > 0:
                self.most = 0
                return
            if self._take_again(batch, careful) and careful:
                self.most = 0
                return

    def _take_again(self, batch: InFlightBatch, careful: bool) -> int:
        """Acquire available records of one batch. Returns how many."""
        share, whole = self.share, batch.whole
        too_many = self.exactly and len(batch) > self.most - self.count
        if whole is not None:
            if not whole.is_available:
                return 0
            if batch.is_within(self.first, self.last) and not too_many and not careful:
                whole.acquire(self.member_id, share.lock_until())
                self._add(Acquired(batch.first, batch.last, whole.count))
                return len(batch)
        return self._take_some(batch)

    def _take_some(self, batch: InFlightBatch) -> int:
        """Acquire available records of a batch: suspicious ones in small batches, those on their last delivery alone."""
        taken: list[Acquired] = []
        count, requested, company, until = 0, self.most - self.count, -1, self.share.lock_until()
        wary = self.limit > _CAREFUL_FROM
        for first, last, delivery in batch.between(self.first, self.last):
            if not delivery.is_available:
                continue
            is_last = wary and delivery.count == self.limit - 1
            if is_last and taken:
                break
            if delivery.count >= self.careful_from and company < 0:
                company = max(1, len(batch) >> (delivery.count - self.careful_from + 1))
            size = 1 if is_last else last - first + 1
            if self.exactly:
                size = min(size, requested - count)
            if count < company:
                size = min(size, company - count)
            mine = batch.part(first, first + size - 1)
            mine.acquire(self.member_id, until)
            taken.append(Acquired(first, first + size - 1, mine.count))
            count += size
            if is_last or (self.exactly and count == requested) or count == company:
                break
        self.count += count
        self.result += _joined(taken)
        return count

    def _is_careful(self, batch: InFlightBatch) -> bool:
        """Whether an available record was delivered so often that it may itself be the cause."""
        if batch.whole is not None:
            return batch.whole.is_available and batch.whole.count >= self.careful_from
        counts = (delivery.count for _, _, delivery in batch.between(self.first, self.last) if delivery.is_available)
        return max(counts, default=0) >= self.careful_from

    def _take_new(self, first: int, last: int) -> None:
        """Put new records in flight."""
        share, most = self.share, self.most - self.count
        first = max(first, share.start_offset)
        if first > last:
            return
        until = last
        if most < last - first + 1:
            until = self._end_of_batch(first + most - 1)
            if share.gap_start is not None:
                until = min(until, last)
        parts = self._parts(first, until)
        if self.exactly and until - first + 1 > most:
            self._put_exactly(first, until, most)
            parts = [Acquired(first, first + most - 1, 1)]
        else:
            for part in parts:
                delivery = Delivery(RecordState.ACQUIRED, 1, self.member_id, share.lock_until())
                share.in_flight.add(InFlightBatch(part.first, part.last, delivery))
        if share.in_flight[0].first == first:
            share.start_offset = max(share.start_offset, first)
        share.end_offset = max(share.end_offset, until)
        share.fetched_up_to(parts[-1].last + 1)
        self.result += parts
        self.count += parts[-1].last - first + 1

    def _parts(self, first: int, last: int) -> list[Acquired]:
        parts: list[Acquired] = []
        if not self.exactly and last - first + 1 > self.batch_size:
            for batch in self.batches:
                if batch.first > last:
                    break
                if batch.first - first >= self.batch_size:
                    parts.append(Acquired(first, batch.first - 1, 1))
                    first = batch.first
        parts.append(Acquired(first, last, 1))
        return parts

    def _put_exactly(self, first: int, last: int, most: int) -> None:
        """Put a batch in flight of which only the first records are delivered."""
        share = self.share
        batch = InFlightBatch(first, last, Delivery(RecordState.AVAILABLE, 0, NOBODY))
        batch.part(first, first + most - 1).acquire(self.member_id, share.lock_until())
        share.in_flight.add(batch)
        share.some_available = True

    def _end_of_batch(self, offset: int) -> int:
        """The last offset of the log batch that contains this offset."""
        return next((batch.last for batch in self.batches if batch.first <= offset <= batch.last), offset)

    def _add(self, acquired: Acquired) -> None:
        self.result.append(acquired)
        self.count += acquired.size


def _joined(taken: Sequence[Acquired]) -> list[Acquired]:
    """Adjacent ranges with equal delivery counts, merged."""
    joined: list[Acquired] = []
    for acquired in taken:
        if joined and joined[-1].last + 1 == acquired.first and joined[-1].deliveries == acquired.deliveries:
            joined[-1] = joined[-1]._replace(last=acquired.last)
        else:
            joined.append(acquired)
    return joined


def give_up(share: SharePartition, acquired: Sequence[Acquired], aborted: Sequence[BatchSpan]) -> list[Acquired]:
    """Archive acquired records of aborted transactions. Returns the remaining acquired records.

    The start offset advances at once: no member will acknowledge these records, and if they fill the window nothing
    else would advance it.
    """
    for span in aborted:
        holder = share.in_flight.floor(span.first)
        begin = holder.first if holder is not None else span.first
        batches = share.in_flight.between(begin, span.last)
        share.archive(span.first, span.last, RecordState.ACQUIRED, batches)
    if aborted:
        share.make_room()
    left: list[Acquired] = []
    for records in acquired:
        first = records.first
        for span in aborted:
            if span.last < first or span.first > records.last:
                continue
            if first < span.first:
                left.append(records._replace(first=first, last=span.first - 1))
            first = span.last + 1
        if first <= records.last:
            left.append(records._replace(first=first))
    return left
