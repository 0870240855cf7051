"""Merges the changes of a share-partition into its known state."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from broker.share_coordinator.values import StateBatch

__all__ = ["combined"]


def combined(known: Iterable[StateBatch], changed: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Non-overlapping batches, in order, from ``start_offset`` on (-1: all).

    If two cover the same offset, the one with more deliveries wins, then the state with the larger number, which is the
    later one. Equal adjacent batches are merged.
    """
    kept = sorted(
        batch._replace(first=max(batch.first, start_offset))
        for batch in (*known, *changed)
        if batch.last >= start_offset
    )
    edges = sorted({edge for batch in kept for edge in (batch.first, batch.last + 1)})
    result: list[StateBatch] = []
    open_now: list[StateBatch] = []
    following = 0
    for begin, end in itertools.pairwise(edges):
        while following < len(kept) and kept[following].first <= begin:
            open_now.append(kept[following])
            following += 1
        open_now = [batch for batch in open_now if batch.last >= begin]
        if not open_now:
            continue
        best = max(open_now, key=lambda batch: (batch.deliveries, batch.state))
        before = result[-1] if result else None
        if before is not None and before.last + 1 == begin and before[2:] == best[2:]:
            result[-1] = before._replace(last=end - 1)
        else:
            result.append(best._replace(first=begin, last=end - 1))
    return result
