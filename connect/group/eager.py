"""The eager assignment: all members give up everything, and all items are assigned again, first the connectors, then
the tasks.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from connect.group.protocol import Item

__all__ = ["assign_round_robin"]


def assign_round_robin(configured: Iterable[Item], members: Iterable[str]) -> dict[str, frozenset[Item]]:
    """Kafka Connect's assignment from before KIP-415.

    Connectors and tasks are assigned separately: otherwise, if each connector has one task, one of two members would
    get all connectors and the other all tasks.
    """
    shares: dict[str, set[Item]] = {member: set() for member in sorted(members)}
    turns = cycle(shares)
    for item in sorted(configured, key=lambda item: (item.is_task, item)):
        shares[next(turns)].add(item)
    return {member: frozenset(items) for member, items in shares.items()}
