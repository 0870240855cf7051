"""Who runs what, eagerly: everybody gives up everything, and all is dealt out anew, first the connectors, then the tasks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from connect.group.protocol import Item

__all__ = ["deal_in_turn"]


def deal_in_turn(configured: Iterable[Item], members: Iterable[str]) -> dict[str, frozenset[Item]]:
    """Kafka Connect's round of before KIP-415. Connectors and tasks are not dealt out together: where each connector has
    one task, one of two members would get all the connectors and the other all the tasks."""
    dealt: dict[str, set[Item]] = {member: set() for member in sorted(members)}
    turns = cycle(dealt)
    for item in sorted(configured, key=lambda item: (item.is_task, item)):
        dealt[next(turns)].add(item)
    return {member: frozenset(items) for member, items in dealt.items()}
