"""Lag of consumer groups over the last hour, while the console runs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.console.faces import Faces
from tidegate.console.samples import rises
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["GroupHistory", "GroupSampler"]

logger = get_logger(__name__)

_EVERY_S: Final = 15.0
_POINTS: Final = 240
_MOST_GROUPS: Final = 50
"""With more groups than this only those are asked about whose pages were opened lately."""
_OPENED_FOR_S: Final = 3600.0
_MOST_PARTITIONS: Final = 200
"""A group with more partitions has its sum only: a point of a partition takes 4 bytes."""


@dataclass
class GroupHistory:
    """The lag of a group in the last hour, a point every 15 seconds, in records.

    ``partitions`` are keyed by topic and partition; one that came later, or has been away, has fewer points than
    ``total``. Their last points are of the same time.
    """

    total: array[float] = field(default_factory=lambda: array("f"))
    partitions: dict[tuple[str, int], array[float]] = field(default_factory=dict)

    @property
    def lag_grows(self) -> bool:
        return rises(self.total)

    def add(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """A point of each row of ``tidegate.records.group_offsets.group_lags``; partitions without one lose theirs."""
        lags = {(row["topic"], row["partition"]): float(row["lag"]) for row in rows}
        _add(self.total, sum(lags.values()))
        if len(lags) > _MOST_PARTITIONS:
            lags = {}
        self.partitions = {partition: self.partitions.get(partition, array("f")) for partition in lags}
        for partition, lag in lags.items():
            _add(self.partitions[partition], lag)


class GroupSampler:
    """Asks for the lag of groups at intervals, one after the other, as the console's own user.

    Of all groups while there are 50 at most, else of those whose pages were opened in the last hour.
    """

    def __init__(self, faces: Faces) -> None:
        self._faces = faces
        self._histories: dict[str, GroupHistory] = {}
        self._opened: dict[str, float] = {}
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name="console lag of groups")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    def opened(self, group: str) -> GroupHistory | None:
        """The history of a group whose page is shown: it is asked about from now on. None without a point yet."""
        self._opened[group] = time.monotonic()
        return self._histories.get(group)

    @property
    def falling_behind(self) -> dict[str, int]:
        """Groups whose lag has grown for three minutes, with the lag."""
        return {name: int(known.total[-1]) for name, known in sorted(self._histories.items()) if known.lag_grows}

    async def _run(self) -> None:
        failing = False
        while True:
            try:
                await self.sample()
                failing = False
            except TidegateError as error:
                if not failing:
                    logger.info("the lag of groups is not to be had at the moment", reason=str(error))
                failing = True
            await asyncio.sleep(_EVERY_S)

    async def sample(self) -> None:
        """One point of each group. A group that is gone, or that the user may not see, loses its history."""
        from broker.client import Admin
        from tidegate.records.group_offsets import group_lags

        names = {group.group_id for group in await self._faces.groups()}
        now = time.monotonic()
        self._opened = {name: when for name, when in self._opened.items() if now - when < _OPENED_FOR_S}
        wanted = names if len(names) <= _MOST_GROUPS else names & self._opened.keys()
        if len(wanted) > _MOST_GROUPS:
            wanted = set(sorted(wanted, key=lambda name: -self._opened[name])[:_MOST_GROUPS])
        known: dict[str, GroupHistory] = {}
        if wanted:
            async with Admin(self._faces.kafka) as admin:
                for name in sorted(wanted):
                    with contextlib.suppress(TidegateError):
                        rows = await group_lags(admin, await admin.describe_group(name))
                        known[name] = self._histories.get(name) or GroupHistory()
                        known[name].add(rows)
        self._histories = known


def _add(points: array[float], value: float) -> None:
    points.append(value)
    del points[:-_POINTS]
