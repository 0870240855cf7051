"""The states of a record in a share group, and the batches of records that are in flight."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from enum import IntEnum

__all__ = ["NOBODY", "Delivery", "InFlight", "InFlightBatch", "RecordState"]

NOBODY = ""
"""The member of records that no member has acquired."""


class RecordState(IntEnum):
    """The states of a record, with the numbers that Kafka stores."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        return self is RecordState.ACKNOWLEDGED or self is RecordState.ARCHIVED


class Delivery:
    """The state of one record, or of adjacent records with the same state.

    A change that has to be written first is begun, and finished when the outcome of the write is known. No other change
    is possible in between. ``locked_until_ms`` is when the member's lock on the record expires.
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
        """A copy, for part of the records."""
        return Delivery(self.state, self.count, self.member, self.locked_until_ms)

    def acquire(self, member: str, locked_until_ms: int) -> None:
        """Acquire the record, which must be available."""
        self.state, self.member, self.locked_until_ms = RecordState.ACQUIRED, member, locked_until_ms
        self.count += 1

    def leave(self, to: RecordState, limit: int) -> bool:
        """Release the record into a new state.

        After ``limit`` deliveries it is archived instead of made available. False if it can't.
        """
        if self.state is not RecordState.ACQUIRED or self._before is not None:
            return False
        if to is RecordState.AVAILABLE and self.count >= limit:
            to = RecordState.ARCHIVED
        self.state, self.member = to, NOBODY
        return True

    def begin_to_leave(self, to: RecordState, limit: int) -> bool:
        """Like ``leave``, but to be finished later. The lock stays until then."""
        before = (self.state, self.member, limit)
        if not self.leave(to, limit):
            return False
        self._before = before
        return True

    def finish(self, now_ms: int, *, written: bool) -> None:
        """End a begun change.

        If it could not be written it is undone, or the record is released if the lock has expired.
        """
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
        """Archive permanently, whatever change is in progress."""
        self.state, self.member, self.locked_until_ms = RecordState.ARCHIVED, NOBODY, None
        self._archived = True


class InFlightBatch:
    """Adjacent records acquired together, in parts with equal states: one part at first, later as many as there are
    different states.

    So its cost depends on the number of individual acknowledgements, not on the number of records.
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
        """The state of all records, as long as they have the same."""
        return self._parts[0] if len(self._parts) == 1 else None

    def deliveries(self) -> list[Delivery]:
        """The states of the parts, in the order of their offsets."""
        return self._parts

    def between(self, first: int, last: int) -> Iterator[tuple[int, int, Delivery]]:
        """(first, last, state) of each part, clipped to these bounds. The batch may be divided during iteration."""
        first, last = max(first, self.first), min(last, self.last)
        while first <= last:
            at = bisect_right(self._firsts, first) - 1
            end = min(self._end(at), last)
            yield first, end, self._parts[at]
            first = end + 1

    def part(self, first: int, last: int) -> Delivery:
        """The state of these records of one part, split off if they are not all of it.

        No change may be in progress for the part.
        """
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
        """Make a part begin at the offset, if the batch contains it and no change is in progress for its part."""
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
    """Non-overlapping batches by offset."""

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
        """The batch that begins at the offset, or the last one before."""
        at = bisect_right(self._firsts, offset)
        return self._batches[at - 1] if at else None

    def after(self, offset: int) -> InFlightBatch | None:
        """The first batch that begins after the offset."""
        at = bisect_right(self._firsts, offset)
        return self._batches[at] if at < len(self._batches) else None

    def between(self, first: int, last: int) -> list[InFlightBatch]:
        """The batches that begin within these offsets."""
        return self._batches[bisect_left(self._firsts, first) : bisect_right(self._firsts, last)]

    def drop_before(self, offset: int) -> None:
        """Remove the batches that begin before the offset."""
        at = bisect_left(self._firsts, offset)
        del self._firsts[:at], self._batches[:at]

    def clear(self) -> None:
        self._firsts.clear()
        self._batches.clear()
