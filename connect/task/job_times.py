"""When a job runs: by its schedule or interval, or because somebody ordered it."""

from __future__ import annotations

import datetime as dt
import time
from typing import Final

from connect.config.connector import ScheduleConfig
from connect.task.control import TaskControl
from connect.task.job_history import JobHistory

__all__ = ["RETRY_S", "JobTimes"]

RETRY_S: Final = 5.0
"""The pause before a run that failed for a while is repeated."""
_STEP_S: Final = 0.5


class JobTimes:
    """Used from the task's thread. Times are seconds since the epoch."""

    def __init__(self, schedule: ScheduleConfig, control: TaskControl, history: JobHistory) -> None:
        self._schedule, self._control, self._history = schedule, control, history
        self._due: float | None = None

    def begin(self) -> None:
        """Without a schedule the first run is due at once."""
        if self._due is None:
            self.set_due(self.next_due() if self._schedule.schedule is not None else time.time())

    def set_due(self, due: float) -> None:
        self._due = due
        self._history.waits(due)

    def next_due(self) -> float:
        """When the next run is to start."""
        if self._schedule.schedule is None:
            return time.time() + self._schedule.interval_ms / 1000
        from apscheduler.triggers.cron import CronTrigger

        trigger = CronTrigger.from_crontab(self._schedule.schedule, timezone="UTC")
        due = trigger.get_next_fire_time(None, dt.datetime.now(dt.UTC) + dt.timedelta(milliseconds=1))
        return float(due.timestamp()) if due is not None else time.time() + 86_400

    def wait(self) -> str | None:
        """Wait for half a second at most. "ordered" or "due" where a run is to start; the order is taken."""
        assert self._due is not None
        control = self._control
        if not control.job_ordered.is_set():
            control.stopping.wait(max(0.0, min(self._due - time.time(), _STEP_S)))
        if control.stopping.is_set():
            return None
        if control.job_ordered.is_set():
            control.job_ordered.clear()
            return "ordered"
        return "due" if time.time() >= self._due else None
