"""Putting what changed in a share-partition together with what was known of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from broker.share_coordinator.values import StateBatch

__all__ = ["combined"]


def combined(known: Iterable[StateBatch], changed: Iterable[StateBatch], start_offset: int) -> list[StateBatch]:
    """Batches that do not overlap, in order, from ``start_offset`` on (-1: all).

    Where two speak of the same offset, more deliveries win, and then the state with the larger number: so does what
    happened later. Neighbours that are equal become one.
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
