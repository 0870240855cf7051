"""Fetches for share groups: reads available records, locks them, and waits while there are too few."""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from broker.errors import BrokerError, OffsetOutOfRange
from broker.log.partition import LogSlice, PartitionLog
from broker.share_delivery.acquiring import acquire, give_up
from broker.share_delivery.reading import aborted_spans, batches_in, cut
from broker.share_delivery.share_groups import OpenShare, ShareGroups
from broker.share_delivery.values import Acquired
from broker.storage.arrivals import Waiter
from broker.storage.partitions import READ_COMMITTED, unreadable

__all__ = ["ShareFetch", "ShareFetchLimits", "ShareFetched"]


class ShareFetchLimits(NamedTuple):
    """The limits of a share fetch; see ``acquiring.acquire`` for the last three."""

    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    exactly: bool


class ShareFetched(NamedTuple):
    """The result for one partition: records with the acquired ranges, or an error, or nothing."""

    topic_id: uuid.UUID
    partition: int
    records: LogSlice | None = None
    acquired: Sequence[Acquired] = ()
    error: BrokerError | None = None


class ShareFetch:
    """One fetch of a member. ``start`` returns the future of its results."""

    def __init__(
        self, groups: ShareGroups, member_id: str, shares: Sequence[OpenShare], requested: ShareFetchLimits
    ) -> None:
        self._groups = groups
        self._member_id = member_id
        self._shares = shares
        self._requested = requested
        self._loop = asyncio.get_running_loop()
        self._future: asyncio.Future[list[ShareFetched]] = self._loop.create_future()
        self._looks_soon = False

    def start(self) -> asyncio.Future[list[ShareFetched]]:
        """Done at once if there is enough, otherwise when there is, or after the time limit."""
        requested, future = self._requested, self._future
        if not self._shares or requested.max_records == 0 or requested.max_bytes == 0:
            future.set_result([])
            return future
        partitions = self._attempt(final=requested.max_wait_ms <= 0)
        if partitions is not None:
            future.set_result(partitions)
            return future
        waiter = self._groups.arrivals.wait((), missing_bytes=1, timeout_ms=requested.max_wait_ms)
        waiter.add_done_callback(lambda _: self._end())
        for share in self._shares:
            self._groups.arrivals.watch(share.log, self)
            share.waiting[self._look_soon] = None
        future.add_done_callback(lambda _: self._leave(waiter))
        return future

    def arrived(self, partition: PartitionLog, size: int) -> None:
        self._look_soon()

    def _look_soon(self) -> None:
        """Delayed, because a caller that makes changes has not finished, and so several changes are handled together."""
        if not self._looks_soon:
            self._looks_soon = True
            self._loop.call_soon(self._look)

    def _look(self) -> None:
        self._looks_soon = False
        if self._future.done():
            return
        partitions = self._attempt(final=False)
        if partitions is not None:
            self._future.set_result(partitions)

    def _end(self) -> None:
        if not self._future.done():
            self._future.set_result(self._attempt(final=True) or [])

    def _leave(self, waiting: Waiter) -> None:
        waiting.cancel()
        for share in self._shares:
            self._groups.arrivals.unwatch(share.log, self)
            share.waiting.pop(self._look_soon, None)

    # Reading

    def _attempt(self, *, final: bool) -> list[ShareFetched] | None:
        """Lock available records. None, without locks, while there are too few and the time is not over."""
        ready = [share for share in self._shares if share.share.is_active and share.share.can_acquire]
        if not ready:
            return [] if final or not any(share.share.is_active for share in self._shares) else None
        reads, size, failed = [], 0, False
        for share, most in zip(ready, _portions(self._requested.max_bytes, len(ready)), strict=True):
            offset = share.share.next_fetch_offset()
            read = self._read(share, offset, most, first=size == 0)
            failed = failed or isinstance(read, BrokerError)
            size += read.size if isinstance(read, LogSlice) else 0
            reads.append((share, offset, read))
        if not final and not failed and size < max(self._requested.min_bytes, 1):
            return None
        results, left = [], self._requested.max_records
        for share, offset, read in reads:
            result = self._result(share, offset, read, left)
            left -= sum(acquired.size for acquired in result.acquired)
            results.append(result)
        return results

    def _read(self, share: OpenShare, offset: int, most: int, *, first: bool) -> LogSlice | BrokerError | None:
        isolation = READ_COMMITTED if share.share.settings.read_committed else 0
        try:
            return self._groups.partitions.read(share.log, offset, most, isolation_level=isolation, first=first)
        except BrokerError as error:
            return error

    def _result(self, opened: OpenShare, offset: int, read: LogSlice | BrokerError | None, left: int) -> ShareFetched:
        share, key = opened.share, opened.share.key
        nothing = ShareFetched(key.topic_id, key.partition)
        if isinstance(read, OffsetOutOfRange):
            share.log_starts_at(opened.log.log_start_offset)
            return nothing
        if isinstance(read, BrokerError):
            return nothing._replace(error=read)
        if read is None:
            return nothing
        try:
            return self._acquired(opened, offset, read, left)
        except OSError as error:
            return nothing._replace(error=unreadable(opened.log, error))

    def _acquired(self, opened: OpenShare, offset: int, read: LogSlice, left: int) -> ShareFetched:
        share, nothing = opened.share, ShareFetched(opened.share.key.topic_id, opened.share.key.partition)
        batches = batches_in(read)
        if not batches:
            return nothing
        requested = self._requested
        acquired = acquire(
            share,
            self._member_id,
            fetch_offset=offset,
            batches=[batch.span for batch in batches],
            most=left,
            batch_size=requested.batch_size,
            exactly=requested.exactly,
        )
        if acquired and share.settings.read_committed:
            acquired = give_up(share, acquired, aborted_spans(opened.log, read, batches))
        if not acquired:
            return nothing
        return nothing._replace(records=cut(read, batches, acquired), acquired=acquired)


def _portions(size: int, count: int) -> list[int]:
    """Divide bytes among partitions; a random one gets the remainder."""
    if size < count:
        lucky = random.sample(range(count), size)
        return [1 if index in lucky else 0 for index in range(count)]
    portions = [size // count] * count
    portions[random.randrange(count)] += size % count
    return portions
