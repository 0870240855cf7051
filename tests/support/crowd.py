"""A source with many tasks that only record, in a file, when they start and stop."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from connect.api import RecordBatch, SourceConnector, SourceTask, config, key


@config
class CrowdConfig:
    diary: str = key("diary", default="", doc="File that starts and stops are written to, a line each.")
    number: str = key("number", default="", doc="The task's own number.")
    tasks: int = key("tasks", default=1, doc="How many tasks to plan.")


class CrowdTask(SourceTask[CrowdConfig]):
    def _note(self, what: str) -> None:
        if self.config.diary:
            with Path(self.config.diary).open("a") as diary:
                diary.write(f"{what} {self.context.connector} {self.config.number} {os.getpid()}\n")

    def start(self) -> None:
        self._note("start")

    def poll(self) -> Sequence[RecordBatch]:
        self.context.stopping.wait(1)
        return []

    def stop(self) -> None:
        self._note("stop")


class CrowdConnector(SourceConnector[CrowdConfig]):
    config_class, task_class = CrowdConfig, CrowdTask

    def task_properties(self, max_tasks: int) -> Sequence[dict[str, str]]:
        return [{**self.properties, "number": str(number)} for number in range(min(max_tasks, self.config.tasks))]
