"""Zombie fencing: before tasks of an exactly-once source start, the producers of earlier tasks are fenced (KIP-618).

Their number is in the config topic (``tasks-fencing-<connector>``). If there was and is only one task, the new producer
fences the old one by itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from connect.errors import Conflict, NotFound
from connect.stores import ConfigStore

__all__ = ["ZombieFencing"]

_OUTDATED: Final = "Fencing failed because new task configurations were generated for the connector"


class ZombieFencing:
    """Used by the leader.

    ``end_producers`` gets a connector's name and a count, and fences the producers of its tasks 0 to count - 1.
    Concurrent requests share one round.
    """

    def __init__(
        self, configs: ConfigStore, end_producers: Callable[[str, int], Awaitable[None]], *, sync_timeout_s: float
    ) -> None:
        self._configs, self._end_producers, self._sync_timeout_s = configs, end_producers, sync_timeout_s
        self._rounds: dict[str, asyncio.Task[None]] = {}

    async def fence(self, connector: str) -> None:
        """Returns when no producer of a task from before the newest commit can write. Raises NotFound, Conflict."""
        if connector not in self._rounds:
            self._rounds[connector] = task = asyncio.create_task(self._fence(connector))
            task.add_done_callback(lambda _: self._rounds.pop(connector, None))
        await asyncio.shield(self._rounds[connector])

    async def _fence(self, connector: str) -> None:
        await self._configs.refresh(self._sync_timeout_s)
        stored = self._configs.connectors.get(connector)
        if stored is None:
            raise NotFound(f"Connector {connector} not found")
        if not stored.pending_fencing:
            return
        count, before, generation = len(stored.tasks or ()), self._configs.fenced_tasks(connector), stored.generation
        if before is not None and not before == count == 1:
            await self._end_producers(connector, before)
            await self._configs.refresh(self._sync_timeout_s)
            if generation != stored.generation or self._configs.connectors.get(connector) is not stored:
                raise Conflict(_OUTDATED)
        await self._configs.put_fencing(connector, count)
