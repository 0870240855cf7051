"""The group as the herder sees it: a single worker runs everything, a worker in a group runs its share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from connect.group.protocol import Item

__all__ = ["Alone", "Group"]


class Group(Protocol):
    """Called by the herder and by operations, all on one event loop."""

    generation: int
    """The group's generation, which statuses contain."""

    @property
    def position(self) -> float:
        """The position of the config topic at the time of the assignment.

        Tasks committed later wait for the next assignment, which begins when all workers have stopped the old ones.
        """
        ...

    @property
    def is_leader(self) -> bool: ...

    def has(self, item: Item) -> bool:
        """Whether this worker runs it."""
        ...

    def work_changed(self) -> None:
        """There are unassigned or deleted connectors or tasks."""

    def expect_round(self) -> None:
        """A rebalance is about to begin: heartbeat quickly to notice it early."""

    async def require_leader(self) -> None:
        """Returns if this worker leads.

        Raises Elsewhere with the leader's address, or Conflict if there is no leader now.
        """

    async def require_owner(self, item: Item) -> None:
        """Returns if this worker runs the item.

        Otherwise raises like ``require_leader``, with the address of the worker that does, or of the leader, which
        knows it.
        """

    async def submit_tasks(self, connector: str, tasks: Sequence[Mapping[str, str]]) -> None:
        """Ask the leader, another worker, to write a connector's tasks to the config topic."""

    async def fence(self, connector: str) -> None:
        """Ask the leader, another worker, to fence the producers of a source's earlier tasks."""


class Alone:
    """The group of a standalone worker."""

    generation = 0
    position = math.inf
    is_leader = True

    def has(self, item: Item) -> bool:
        return True

    def work_changed(self) -> None:
        pass

    def expect_round(self) -> None:
        pass

    async def require_leader(self) -> None:
        pass

    async def require_owner(self, item: Item) -> None:
        pass

    async def submit_tasks(self, connector: str, tasks: Sequence[Mapping[str, str]]) -> None:
        raise AssertionError("a worker that is alone leads")

    async def fence(self, connector: str) -> None:
        raise AssertionError("a worker that is alone leads")
