"""Rows and lag of connectors over the last hour, while the console runs."""

from __future__ import annotations

import asyncio
import contextlib
import time
from array import array
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from tidegate.console.faces import Faces
from tidegate.kit.errors import TidegateError
from tidegate.kit.logs import get_logger

__all__ = ["History", "Periodic", "Sampler", "append_point", "rises"]

logger = get_logger(__name__)

_EVERY_S: Final = 15.0
_MANY: Final = 2000
_MANY_EVERY_S: Final = 60.0
"""The interval for more than so many connectors, whose answers take time and memory."""
_RISING_POINTS: Final = 12
"""Lag has to rise over three minutes before it is called growing."""
_SMALL_LAG: Final = 1000


class History(NamedTuple):
    """One connector's last hour: rows per second and lag, a point every 15 seconds, every minute with thousands of connectors; NaN where a count is unknown."""

    rates: array[float]
    lags: array[float]

    @property
    def lag_grows(self) -> bool:
        return rises(self.lags)


def rises(lags: array[float]) -> bool:
    """Whether a lag rose in each third of its last twelve points, and is not small."""
    recent = lags[-_RISING_POINTS:]
    if len(recent) < _RISING_POINTS or not recent[-1] > _SMALL_LAG:
        return False
    third = _RISING_POINTS // 3
    return all(recent[i] < recent[i + third - 1] for i in range(0, _RISING_POINTS, third))


def append_point(points: array[float], value: float, most: int) -> None:
    """The oldest point goes when there are ``most``."""
    points.append(value)
    del points[:-most]


class Periodic:
    """Takes a sample at intervals, in a task of its own. Where that fails, it logs so once and goes on."""

    what: ClassVar[str]
    """The name of the samples, for the log."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def every_s(self) -> float:
        return _EVERY_S

    async def sample(self) -> None:
        raise NotImplementedError

    def start(self) -> None:
        self._task = asyncio.create_task(self._run(), name=f"samples of {self.what}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        failing = False
        while True:
            try:
                await self.sample()
                failing = False
            except TidegateError as error:
                if not failing:
                    logger.info(f"{self.what} are not to be had at the moment", reason=str(error))
                failing = True
            await asyncio.sleep(self.every_s)


class Sampler(Periodic):
    """Asks for the counts of all connectors at intervals, as the console's own user."""

    what = "counts of connectors"

    def __init__(self, faces: Faces) -> None:
        super().__init__()
        self._faces = faces
        self.records: array[float] = array("f")
        """Records per second that the broker has appended, a point every 15 seconds; empty without its metrics."""
        self._records_before: tuple[float, float] | None = None
        self._histories: dict[str, History] = {}
        self._rows: dict[str, tuple[float, int]] = {}

    @property
    def every_s(self) -> float:
        return _EVERY_S if len(self._histories) <= _MANY else _MANY_EVERY_S

    @property
    def _points(self) -> int:
        """Of one connector: one hour."""
        return int(3600 / self.every_s)

    def history(self, connector: str) -> History | None:
        """None for a connector that was not seen yet."""
        return self._histories.get(connector)

    async def sample(self) -> None:
        """One point of everything."""
        await self._look_at_broker()
        if self._faces.has_connect:
            self.add(await self._faces.totals(), time.monotonic())

    async def _look_at_broker(self) -> None:
        total = await self._faces.records_in()
        now, before = time.monotonic(), self._records_before
        if total is None:
            return
        if before is not None and total >= before[1] and now > before[0]:
            append_point(self.records, (total - before[1]) / (now - before[0]), self._points)
        self._records_before = now, total

    def add(self, totals: Mapping[str, Mapping[str, Any]], now: float) -> None:
        """One point of every connector; those that are gone lose their history."""
        for gone in self._histories.keys() - totals.keys():
            del self._histories[gone]
            self._rows.pop(gone, None)
        for name, summed in totals.items():
            history = self._histories.setdefault(name, History(array("f"), array("f")))
            rows, lag = summed["rows"] or 0, summed["lag"]
            before, rows_before = self._rows.get(name, (now, rows))
            # Counts begin again with each start of a task.
            rate = (rows - rows_before) / (now - before) if now > before and rows >= rows_before else float("nan")
            self._rows[name] = now, rows
            for points, value in ((history.rates, rate), (history.lags, float("nan") if lag is None else lag)):
                append_point(points, value, self._points)
