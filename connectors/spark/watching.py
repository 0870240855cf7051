"""The progress of a session's stages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["watch"]


def watch(spark: SparkSession, ended: threading.Event, tell: Callable[..., None]) -> None:
    """Look at the active stages twice a second until ``ended`` is set, and tell what has changed.

    ``done``, ``total`` and ``unit`` count their tasks, ``note`` and ``parts`` name the stages, and ``seconds_left`` holds if their tasks
    are alike. The note has the address of Spark's own page, if there is one.
    """
    tracker, page = spark.sparkContext.statusTracker(), spark.sparkContext.uiWebUrl
    said, began_s, of_stages = None, 0.0, frozenset[int]()
    while not ended.wait(0.5):
        stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage))]
        if not stages:
            continue
        if (ids := frozenset(s.stageId for s in stages)) != of_stages:
            began_s, of_stages = time.monotonic(), ids
        done, total = sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)
        note = ", ".join(_called(s) for s in stages)
        if said != (done, total, note):
            said = (done, total, note)
            parts = [_stage(s) for s in stages]
            note = f"{note}; Spark's own page is {page}" if page else note
            left_s = (time.monotonic() - began_s) * (total - done) / done if done else None
            tell(done=done, total=total, unit="tasks", note=note, parts=parts, seconds_left=left_s)


def _called(info: Any) -> str:
    """Spark names a stage after the call that submitted it; a stage of an adaptive query has the name of an anonymous function."""
    return f"query stage {info.stageId}" if info.name.startswith("$") else str(info.name).split(" at ")[0]


def _stage(info: Any) -> dict[str, Any]:
    """A stage as a part of the progress. Tasks that have failed are run again, four times by default."""
    failed = f", {info.numFailedTasks} failed" if info.numFailedTasks else ""
    return {
        "name": f"stage {info.stageId}" if info.name.startswith("$") else f"stage {info.stageId}: {info.name}",
        "state": ("running" if info.numActiveTasks else "waiting") + failed,
        "done": info.numCompletedTasks,
        "total": info.numTasks,
    }
