"""The maximum matching of a bipartite graph (Kuhn's algorithm)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["largest_matching"]


def largest_matching(allowed: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """A maximum matching, left to right. ``allowed`` has the possible right-hand partners of each left-hand node."""
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
