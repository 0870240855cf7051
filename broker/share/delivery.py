"""What becomes of a record in a share group, and the batches of records that are in flight."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from enum import IntEnum

__all__ = ["NOBODY", "Delivery", "InFlight", "InFlightBatch", "RecordState"]

NOBODY = ""
"""The member of records that are in nobody's hands."""


class RecordState(IntEnum):
    """The states of a record, by the numbers that Kafka writes down."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        return self is RecordState.ACKNOWLEDGED or self is RecordState.ARCHIVED


class Delivery:
    """The state of one record, or of a batch of which all records have the same.

    A change that has to be written down first is begun, and finished when it is known whether it could be. Meanwhile it
    cannot change otherwise. ``locked_until_ms`` is when a member's time with the record is over.
    """

    __slots__ = ("_archived", "_before", "count", "locked_until_ms", "member", "state")

    def __init__(self, state: RecordState, count: int, member: str, locked_until_ms: int | None = None) -> None:
        self.state = state
        self.count = count
        self.member = member
        self.locked_until_ms = locked_until_ms
        self._before: tuple[RecordState, str, int] | None = None
        self._archived = False

    @property
    def is_changing(self) -> bool:
        return self._before is not None

    @property
    def is_available(self) -> bool:
        return self.state is RecordState.AVAILABLE and self._before is None

    def copy(self) -> Delivery:
        """The same, for a part of the records."""
        return Delivery(self.state, self.count, self.member, self.locked_until_ms)

    def acquire(self, member: str, locked_until_ms: int) -> None:
        """Only what is available."""
        self.state, self.member, self.locked_until_ms = RecordState.ACQUIRED, member, locked_until_ms
        self.count += 1

    def leave(self, to: RecordState, limit: int) -> bool:
        """Leave the hands of a member; what was delivered ``limit`` times is archived, not made available. False if it cannot."""
        if self.state is not RecordState.ACQUIRED or self._before is not None:
            return False
        if to is RecordState.AVAILABLE and self.count >= limit:
            to = RecordState.ARCHIVED
        self.state, self.member = to, NOBODY
        return True

    def begin_to_leave(self, to: RecordState, limit: int) -> bool:
        """As ``leave``, to be finished. The lock stays until then."""
        before = (self.state, self.member, limit)
        if not self.leave(to, limit):
            return False
        self._before = before
        return True

    def finish(self, now_ms: int, *, written: bool) -> None:
        """End what was begun; what could not be written is undone, or given up where the lock is over by now."""
        before = self._before
        assert before is not None
        self._before = None
        if written or self._archived:
            self.locked_until_ms = None
            return
        state, member, limit = before
        if self.locked_until_ms is not None and self.locked_until_ms <= now_ms:
            self.state = RecordState.ARCHIVED if self.count >= limit else RecordState.AVAILABLE
            self.member, self.locked_until_ms = NOBODY, None
        else:
            self.state, self.member = state, member

    def archive(self) -> None:
        """For good, whatever is under way."""
        self.state, self.member, self.locked_until_ms = RecordState.ARCHIVED, NOBODY, None
        self._archived = True


class InFlightBatch:
    """Neighbouring records that came together. ``whole`` is the state of all, or else ``each`` has one for every offset."""

    __slots__ = ("each", "first", "last", "whole")

    def __init__(self, first: int, last: int, delivery: Delivery) -> None:
        self.first = first
        self.last = last
        self.whole: Delivery | None = delivery
        self.each: list[Delivery] = []

    def __len__(self) -> int:
        return self.last - self.first + 1

    def split(self, acquired_until: int | None = None) -> None:
        """Give every offset a state of its own. Those above ``acquired_until`` were not delivered after all."""
        whole = self.whole
        if whole is None:
            return
        taken = len(self) if acquired_until is None else acquired_until - self.first + 1
        self.each = [whole.copy() for _ in range(taken)]
        self.each += [Delivery(RecordState.AVAILABLE, whole.count - 1, NOBODY) for _ in range(len(self) - taken)]
        self.whole = None

    def deliveries(self) -> list[Delivery]:
        return self.each if self.whole is None else [self.whole]

    def between(self, first: int, last: int) -> Iterator[tuple[int, Delivery]]:
        """(offset, state) of those split off within these bounds."""
        begin, end = max(first, self.first), min(last, self.last)
        for offset in range(begin, end + 1):
            yield offset, self.each[offset - self.first]

    def is_within(self, first: int, last: int) -> bool:
        return first <= self.first and self.last <= last

    def runs(self) -> Iterator[tuple[int, int, Delivery]]:
        """(first, last, state) of the batch, or of each offset in it."""
        if self.whole is not None:
            yield self.first, self.last, self.whole
        else:
            for offset, delivery in enumerate(self.each, self.first):
                yield offset, offset, delivery


class InFlight:
    """Batches by their offsets, which do not overlap."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: list[InFlightBatch] = []

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[InFlightBatch]:
        return iter(self._batches)

    def __getitem__(self, index: int) -> InFlightBatch:
        return self._batches[index]

    def add(self, batch: InFlightBatch) -> None:
        at = bisect_left(self._firsts, batch.first)
        self._firsts.insert(at, batch.first)
        self._batches.insert(at, batch)

    def floor(self, offset: int) -> InFlightBatch | None:
        """The batch that begins at the offset, or the last before."""
        at = bisect_right(self._firsts, offset)
        return self._batches[at - 1] if at else None

    def after(self, offset: int) -> InFlightBatch | None:
        """The first that begins behind the offset."""
        at = bisect_right(self._firsts, offset)
        return self._batches[at] if at < len(self._batches) else None

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """Those that begin within these offsets."""
        return self._batches[bisect_left(self._firsts, first) : bisect_right(self._firsts, last)]

    def drop_before(self, offset: int) -> None:
        """Forget those that begin before the offset."""
        at = bisect_left(self._firsts, offset)
        del self._firsts[:at], self._batches[:at]

    def clear(self) -> None:
        self._firsts.clear()
        self._batches.clear()
