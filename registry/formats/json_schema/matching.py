"""The largest pairing between two sides where only some may be paired (Kuhn's algorithm)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["largest_matching"]


def largest_matching(allowed: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """Left to right, as many as can be; ``allowed`` are the right-hand partners that each on the left may have."""
    taken: dict[int, int] = {}

    def find(left: int, tried: set[int]) -> bool:
        for right in allowed[left]:
            if right in tried:
                continue
            tried.add(right)
            if right not in taken or find(taken[right], tried):
                taken[right] = left
                return True
        return False

    for left in allowed:
        find(left, set())
    return {left: right for right, left in taken.items()}
