"""Orders members by load while an assignor moves partitions between them."""

from __future__ import annotations

__all__ = ["Balancer"]


class Balancer:
    """Members ordered by their number of partitions, with two ranges that grow towards each other.

    The left range has those with fewest. They get partitions in turn until all have as many as the next member, which
    then joins them. The right range has those with most. They give partitions in turn, except for members with nothing
    to give of the topic. The caller may change ``sizes`` in between, but only for members that were returned.
    """

    __slots__ = (
        "_least_count", "_least_end", "_most_begin", "_most_count", "_most_end", "_next_least", "_next_most", "_order",
        "_sizes", "imbalance",
    )  # fmt: skip

    def __init__(self, sizes: list[int], members: list[int]) -> None:
        self._sizes = sizes
        self._order = order = sorted(members, key=lambda member: (sizes[member], member))
        self._least_end = self._next_least = 0
        self._least_count = sizes[order[0]] - 1
        self._most_begin = self._most_end = len(order)
        self._most_count = sizes[order[-1]] + 1
        self._next_most = len(order) - 1
        self.imbalance = sizes[order[-1]] - sizes[order[0]]

    def next_least(self) -> int:
        """The member to receive the next partition."""
        if self._next_least >= self._least_end:
            self._least_count += 1
            while self._least_end < len(self._order) and self._size(self._least_end) == self._least_count:
                self._least_end += 1
            self._next_least = 0
        member = self._order[self._next_least]
        self._next_least += 1
        return member

    def next_most(self) -> int | None:
        """The member to give up the next partition; None if no member can."""
        if self._next_most < self._most_begin:
            if self._most_end <= self._most_begin and self._most_begin > 0:
                # All of the range were excluded: start another at the next member.
                self._most_count = self._size(self._most_begin - 1)
            else:
                self._most_count -= 1
            while self._most_begin > 0 and self._size(self._most_begin - 1) == self._most_count:
                self._most_begin -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        member = self._order[self._next_most]
        self._next_most -= 1
        return member

    def exclude_most(self) -> None:
        """Mark the last member returned by ``next_most`` as having nothing to give."""
        at = self._next_most + 1
        self._most_end -= 1
        self._order[at], self._order[self._most_end] = self._order[self._most_end], self._order[at]

    @property
    def balanced(self) -> bool:
        return self._most_count - self._least_count <= 1

    def _size(self, at: int) -> int:
        return self._sizes[self._order[at]]
