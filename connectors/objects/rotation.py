"""Decides when the files of a topic partition are complete: how many of the next rows they still take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from connectors.objects.config import ObjectSinkConfig
from connectors.objects.partitioners import Encoded
from connectors.objects.timestamps import Millis

__all__ = ["Rotation"]


@dataclass(slots=True)
class Rotation:
    """The rules of one topic partition and their state: rows since the files were opened, the time of the first, the
    folder of the last that has a value.
    """

    config: ObjectSinkConfig
    now_ms: Callable[[], int]
    rows: int = 0
    base_ms: int | None = None
    folder: str | None = None
    next_schedule_ms: int | None = None

    def begin(self) -> None:
        """Called after files were closed: the next row is the first one."""
        self.rows, self.base_ms, self.folder, self.next_schedule_ms = 0, None, None, None

    @property
    def full(self) -> bool:
        return self.rows >= self.config.flush_size

    @property
    def by_record_time(self) -> bool:
        return self.config.rotate_interval_ms > 0

    @property
    def due(self) -> bool:
        """Whether the files must be closed now because of the time alone."""
        if self.rows == 0:
            return False
        now = self.now_ms()
        if self.next_schedule_ms is not None and now >= self.next_schedule_ms:
            return True
        wallclock = self.config.extractor == "Wallclock" and self.by_record_time and self.base_ms is not None
        return wallclock and now - (self.base_ms or 0) >= self.config.rotate_interval_ms

    def fitting(self, times: Millis | None, encoded: Encoded) -> int:
        """How many of the next rows go into the open files; 0: close them first.

        ``times`` belong to the next rows, and are None where no rule needs them.
        """
        room = self.config.flush_size - self.rows
        fit = room
        if times is not None and self.by_record_time:
            base = self.base_ms if self.base_ms is not None else int(times[0])
            fit = _first(times[:fit] - base >= self.config.rotate_interval_ms, fit)
            if self.config.rotate_on_partition_change and fit:
                return self._until_another_folder(encoded, fit)
        return fit

    def _until_another_folder(self, encoded: Encoded, fit: int) -> int:
        """Tombstones are in a folder of their own, and do not count as another folder."""
        codes = encoded.codes[:fit] if encoded.codes is not None else np.zeros(1, np.int64)
        rows = np.flatnonzero(codes != encoded.tombstones) if encoded.tombstones is not None else np.arange(len(codes))
        if not len(rows):
            return fit
        if self.folder is not None and encoded.folders[int(codes[rows[0]])] != self.folder:
            return int(rows[0])
        others = rows[codes[rows] != codes[rows[0]]]
        return int(others[0]) if len(others) else fit

    def added(self, rows: int, first_ms: int | None, last_folder: str | None) -> None:
        """``last_folder`` is that of the last row with a value, None where all are tombstones."""
        if self.rows == 0 and self.config.rotate_schedule_interval_ms > 0:
            self.next_schedule_ms = _next_schedule(self.now_ms(), self.config)
        if self.base_ms is None:
            self.base_ms = first_ms
        self.rows += rows
        self.folder = self.folder if last_folder is None else last_folder


def _first(mask: npt.NDArray[np.bool_], otherwise: int) -> int:
    return int(mask.argmax()) if mask.any() else otherwise


def _next_schedule(now_ms: int, config: ObjectSinkConfig) -> int:
    """The next multiple of the interval since midnight in the time zone."""
    at = datetime.fromtimestamp(now_ms / 1000, UTC).astimezone(ZoneInfo(config.timezone))
    midnight = int(at.replace(hour=0, minute=0, second=0, microsecond=0).timestamp() * 1000)
    interval = config.rotate_schedule_interval_ms
    return midnight + ((now_ms - midnight) // interval + 1) * interval
