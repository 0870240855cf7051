"""Lag of consumer groups over the last hour, while the console runs."""

from __future__ import annotations

import contextlib
import time
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tidegate.console.faces import Faces
from tidegate.console.samples import Periodic, append_point, rises
from tidegate.kit.errors import TidegateError

__all__ = ["GroupHistory", "GroupSampler"]

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
        append_point(self.total, sum(lags.values()), _POINTS)
        if len(lags) > _MOST_PARTITIONS:
            lags = {}
        self.partitions = {partition: self.partitions.get(partition, array("f")) for partition in lags}
        for partition, lag in lags.items():
            append_point(self.partitions[partition], lag, _POINTS)


class GroupSampler(Periodic):
    """Asks for the lag of groups at intervals, one after the other, as the console's own user.

    Of all groups while there are 50 at most, else of those whose pages were opened in the last hour.
    """

    what = "lags of groups"

    def __init__(self, faces: Faces) -> None:
        super().__init__()
        self._faces = faces
        self._histories: dict[str, GroupHistory] = {}
        self._opened: dict[str, float] = {}

    def opened(self, group: str) -> GroupHistory | None:
        """The history of a group whose page is shown: it is asked about from now on. None without a point yet."""
        self._opened[group] = time.monotonic()
        return self._histories.get(group)

    @property
    def falling_behind(self) -> dict[str, int]:
        """Groups whose lag has grown for three minutes, with the lag."""
        return {name: int(known.total[-1]) for name, known in sorted(self._histories.items()) if known.lag_grows}

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
