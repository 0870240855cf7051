"""The eager assignment: all members give up everything, and all items are assigned again, first the connectors, then
the tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from connect.group.protocol import Item

__all__ = ["deal_in_turn"]


def deal_in_turn(configured: Iterable[Item], members: Iterable[str]) -> dict[str, frozenset[Item]]:
    """Kafka Connect's assignment from before KIP-415.

    Connectors and tasks are assigned separately: otherwise, if each connector has one task, one of two members would
    get all connectors and the other all tasks.
    """
    dealt: dict[str, set[Item]] = {member: set() for member in sorted(members)}
    turns = cycle(dealt)
    for item in sorted(configured, key=lambda item: (item.is_task, item)):
        dealt[next(turns)].add(item)
    return {member: frozenset(items) for member, items in dealt.items()}
