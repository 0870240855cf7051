"""The states of a record in a share group, and the batches of records that are in flight."""

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
    """The state of one record, or of neighbouring records that have the same.

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
    """Neighbouring records that came together, in parts whose records have the same state: at first one, later as many as differ.

    So it costs as much as was said of single records, and not as much as it has records.
    """

    __slots__ = ("_firsts", "_parts", "first", "last")

    def __init__(self, first: int, last: int, delivery: Delivery) -> None:
        self.first = first
        self.last = last
        self._firsts = [first]
        self._parts = [delivery]

    def __len__(self) -> int:
        return self.last - self.first + 1

    @property
    def whole(self) -> Delivery | None:
        """The state of all records, while they have the same."""
        return self._parts[0] if len(self._parts) == 1 else None

    def deliveries(self) -> list[Delivery]:
        """The states of the parts, in the order of their offsets."""
        return self._parts

    def between(self, first: int, last: int) -> Iterator[tuple[int, int, Delivery]]:
        """(first, last, state) of each part, or of as much of it as lies within these bounds. It may be divided meanwhile."""
        first, last = max(first, self.first), min(last, self.last)
        while first <= last:
            at = bisect_right(self._firsts, first) - 1
            end = min(self._end(at), last)
            yield first, end, self._parts[at]
            first = end + 1

    def part(self, first: int, last: int) -> Delivery:
        """The state of these records of one part, divided off if they are not all of it. Nothing may be under way for it then."""
        at = bisect_right(self._firsts, first) - 1
        part, begin, end = self._parts[at], self._firsts[at], self._end(at)
        if (begin, end) == (first, last):
            return part
        assert not part.is_changing
        firsts = [begin, first, last + 1][begin == first : 3 if last < end else 2]
        self._firsts[at : at + 1] = firsts
        self._parts[at : at + 1] = [part if number == first else part.copy() for number in firsts]
        return part

    def divide_at(self, offset: int) -> None:
        """Have a part begin at the offset, if it is in the batch and nothing is under way for the part that holds it."""
        at = bisect_right(self._firsts, offset) - 1
        if self.first < offset <= self.last and self._firsts[at] < offset and not self._parts[at].is_changing:
            self.part(offset, self._end(at))

    def runs(self) -> Iterator[tuple[int, int, Delivery]]:
        """(first, last, state) of each part."""
        return self.between(self.first, self.last)

    def is_within(self, first: int, last: int) -> bool:
        return first <= self.first and self.last <= last

    def _end(self, at: int) -> int:
        return self._firsts[at + 1] - 1 if at + 1 < len(self._firsts) else self.last


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
