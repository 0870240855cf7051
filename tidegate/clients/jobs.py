"""Jobs of connectors such as Spark's: their runs, and runs before their time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from tidegate.clients.rest import Rest
from tidegate.clients.worker import path_of, statistics_of, workers_in
from tidegate.kit.errors import TidegateError, UsageError

__all__ = ["job_of", "jobs_of", "next_run_text", "run_once_restarted"]

_LONGEST_RESTART_S: Final = 60.0
_PAUSE_S: Final = 0.2


def jobs_of(rest: Rest, warn: Callable[[str], None] = lambda text: None) -> dict[str, dict[str, Any]]:
    """The jobs by connector: ``name``, ``state``, ``runs`` (newest first) and ``next_run_ms``.

    ``warn`` hears of workers that do not answer.
    """
    statuses = {name: entry["status"] for name, entry in rest.call("GET", "/connectors", expand="status").items()}
    counted = statistics_of(rest, workers_in(statuses.values()), warn) if statuses else {}
    return {
        name: {"name": name, "state": _state(statuses[name]), **task["job"]}
        for name, tasks in counted.items()
        for task in tasks.values()
        if "job" in task and name in statuses
    }


def job_of(rest: Rest, name: str) -> dict[str, Any]:
    """A job. Raises NotThere for a connector that does not exist, UsageError for one that has no job."""
    rest.call("GET", path_of(name))
    told = jobs_of(rest)
    if name not in told:
        raise UsageError(f"connector {name} has no job that runs; jobs are: {', '.join(sorted(told)) or 'none'}")
    return told[name]


def next_run_text(job: Mapping[str, Any]) -> str:
    """The next run of a job in words, where its time is not known."""
    return "after this run" if job["state"] == "RUNNING" and job["runs"] else "-"


def run_once_restarted(rest: Rest, name: str) -> None:
    """Have a job run that is being restarted. Raises TidegateError with the reason where its task fails again."""
    deadline, restarted = time.monotonic() + _LONGEST_RESTART_S, False
    while True:
        try:
            rest.call("POST", f"/tidegate/v1{path_of(name)}/run")
        except TidegateError:
            failed = [task for task in rest.call("GET", path_of(name, "/status"))["tasks"] if task["state"] == "FAILED"]
            if failed and (restarted or time.monotonic() > deadline):
                raise TidegateError(f"{name} failed again:\n{failed[0].get('trace', '').strip()}") from None
            restarted = restarted or not failed  # the status follows the restart a moment later
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_S)
        else:
            return


def _state(status: Mapping[str, Any]) -> str:
    """The state of the job's task: a connector with a failed task is RUNNING itself."""
    return str(status["tasks"][0]["state"] if status["tasks"] else status["connector"]["state"])
