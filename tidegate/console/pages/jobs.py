"""Jobs: connectors that work in runs, such as Spark's. Their runs, run now, cancelled and retried."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from tidegate.clients.jobs import job_of, jobs_of, next_run_text, run_once_restarted
from tidegate.clients.rest import NotAllowed
from tidegate.clients.worker import path_of
from tidegate.console.console import Console, Visit
from tidegate.console.progress import shown_progress
from tidegate.kit.errors import TidegateError, UsageError

__all__ = ["routes"]


def routes(console: Console) -> list[Route]:
    return [
        console.route("/jobs", _list),
        console.route("/jobs/{name}", _show),
        console.route("/jobs/{name}/do/{action}", _do, ["POST"]),
        console.route("/jobs/{name}/preview", _preview, ["POST"]),
    ]


async def _list(visit: Visit) -> Response:
    told = await visit.faces.kept("jobs", lambda: visit.faces.connect.run(jobs_of))
    rows = [_with_text(job) for _, job in sorted(told.items())]
    rows.sort(key=lambda job: job["state"] != "FAILED")
    return visit.page("jobs_rows.html" if visit.is_partial else "jobs.html", rows=rows)


async def _show(visit: Visit) -> Response:
    name = visit.parameters["name"]
    job, told = await asyncio.gather(
        visit.faces.connect.run(lambda rest: job_of(rest, name)),
        visit.faces.connect.call("GET", f"/tidegate/v1{path_of(name)}/progress"),
    )
    return visit.page(
        "job_live.html" if visit.is_partial else "job.html",
        job=_with_text(job),
        progress=[shown_progress(None, task) for task in told["tasks"]] if _is_under_way(job) else [],
        may_change=visit.may("manage", "connector", name),
    )


async def _preview(visit: Visit) -> Response:
    """Show a run over the first records without writing anything: a job of Spark tells columns, rows and the plan."""
    config = await visit.faces.connect.call("GET", path_of(visit.parameters["name"], "/config"))
    try:
        told = await visit.faces.previewed(config)
    except NotAllowed:
        raise
    except TidegateError as error:
        return visit.page("job_preview.html", message=str(error))
    return visit.page("job_preview.html", message="", actions=told["actions"])


async def _do(visit: Visit) -> Response:
    name, action = visit.parameters["name"], visit.parameters["action"]
    run = f"/tidegate/v1{path_of(name)}/run"
    if action == "run":
        await visit.faces.connect.call("POST", run)
    elif action == "cancel":
        await visit.faces.connect.call("DELETE", run)
    elif action == "retry":
        await visit.faces.connect.call("POST", path_of(name, "/restart"), includeTasks="true", onlyFailed="true")
        await visit.faces.connect.run(lambda rest: run_once_restarted(rest, name))
    else:
        raise UsageError(f"{action!r} can't be done to a job; run, cancel and retry can")
    visit.faces.forget()
    visit.audit(f"{action} job", connector=name)
    return visit.redirect(f"/jobs/{path_of(name).rpartition('/')[2]}")


def _is_under_way(job: Mapping[str, Any]) -> bool:
    return bool(job["runs"]) and job["runs"][0]["state"] == "running"


def _with_text(job: dict[str, Any]) -> dict[str, Any]:
    """The job with ``seconds`` that each run took or takes, and what is known of its next run."""
    runs = [
        run | {"seconds": None if run["ended_ms"] is None else (run["ended_ms"] - run["began_ms"]) / 1000}
        for run in job["runs"]
    ]
    return job | {"runs": runs, "next_text": next_run_text(job)}
