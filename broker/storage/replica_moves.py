"""Moves partitions between the broker's data directories, one by one, while they are in use (KIP-113)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from broker.errors import BrokerError
from broker.log.directory import LogDirectory
from broker.log.disk import Disk
from broker.log.move import Move
from broker.log.partition import PartitionLog
from broker.metadata.image import ClusterMetadata
from tidegate.kit.logs import get_logger

__all__ = ["ReplicaMoves"]

logger = get_logger(__name__)

_LAST_PART: Final = 1024 * 1024
"""The last bytes, few enough to be copied within milliseconds while the broker is blocked."""


class ReplicaMoves:
    """Used on one event loop."""

    def __init__(self, logs: LogDirectory, metadata: ClusterMetadata) -> None:
        self._logs = logs
        self._metadata = metadata
        self._pending: dict[PartitionLog, Move] = {}
        self._task: asyncio.Task[None] | None = None

    def under_way(self, disk: Disk) -> Iterator[Move]:
        """The unfinished moves to that disk."""
        return (move for move in self._pending.values() if move.target is disk)

    def move(self, log: PartitionLog, target: Disk) -> None:
        """Schedule a partition's move. A move to its current disk cancels an earlier request."""
        present = self._pending.get(log)
        if present is not None and present.target is target:
            return
        self._pending.pop(log, None)
        if self._logs.disk_of(log) is target:
            return
        self._pending[log] = Move(log, target)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._work(), name="replica moves")

    async def _work(self) -> None:
        while self._pending:
            move = next(iter(self._pending.values()))
            try:
                await self._copy(move)
            except BrokerError as error:
                logger.warning("a partition stays where it is", partition=repr(move.log), error=error.message)
                await asyncio.to_thread(move.discard)
            if self._pending.get(move.log) is move:
                del self._pending[move.log]

    async def _copy(self, move: Move) -> None:
        copied = _LAST_PART
        while copied >= _LAST_PART:
            copied = await asyncio.to_thread(move.copy, *move.sources())
            if self._pending.get(move.log) is not move or move.log.is_retired:
                await asyncio.to_thread(move.discard)
                return
        move.finish(self._logs)
        self._metadata.moved([move.log])
        logger.info("moved a partition", topic=move.log.topic, partition=move.log.partition, to=str(move.target.path))

    async def close(self) -> None:
        """Stop; partitions whose move has not finished stay where they are."""
        self._pending.clear()
        if self._task is not None:
            await self._task
