"""Who runs what, as the herder sees it: everything while a worker is alone, its share in a group of workers."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from connect.group.protocol import Item

__all__ = ["Alone", "Group"]


class Group(Protocol):
    """Asked by the herder and by operations; all from one event loop."""

    generation: int
    """The group's generation, which statuses bear."""

    @property
    def position(self) -> float:
        """The position of the config topic that the assignment was made at. Tasks that were committed later wait for the
        next one: it begins when all workers have stopped those from before."""
        ...

    @property
    def is_leader(self) -> bool: ...

    def has(self, item: Item) -> bool:
        """Whether this worker runs it."""
        ...

    def work_changed(self) -> None:
        """There are connectors or tasks that nobody has been given yet, or that are gone."""

    def expect_round(self) -> None:
        """Something is about to happen in the group: be quick to hear of it."""

    async def require_leader(self) -> None:
        """Returns where this worker leads; raises Elsewhere with the leader's address, Conflict where nobody leads now."""

    async def require_owner(self, item: Item) -> None:
        """Returns where this worker runs it; raises as ``require_leader`` with the address of the worker that does, or of
        the leader, who knows."""

    async def submit_tasks(self, connector: str, tasks: Sequence[Mapping[str, str]]) -> None:
        """Have the leader, another worker, write the tasks of a connector to the config topic."""

    async def fence(self, connector: str) -> None:
        """Have the leader, another worker, lock out the producers of a source's tasks from before."""


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
