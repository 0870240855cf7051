"""``tidegate jobs``: connectors that work in jobs, such as Spark's: their runs, a run before its time, and the end of one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tidegate.cli.connectors.logs import logs
from tidegate.cli.connectors.reach import connect_options, connector_argument, rest_of
from tidegate.cli.options import done, done_option, echo_error, json_option, print_json, print_table
from tidegate.clients.jobs import job_of, jobs_of, next_run_text, run_once_restarted
from tidegate.clients.worker import path_of
from tidegate.kit.texts import time_text

__all__ = ["jobs"]


@click.group()
def jobs() -> None:
    """List the jobs of connectors such as Spark's, show their runs and logs, run them now, cancel and retry them.

    A job is a connector: `tidegate connectors` pauses and deletes it.
    """


@jobs.command("list")
@connect_options
@json_option
def list_jobs(data: Path, connect: str | None, as_json: bool) -> None:
    """List jobs with their state, last run, and when they run next.

    Example: tidegate jobs list
    """
    rest = rest_of(data, connect)
    told = jobs_of(rest, echo_error)
    if as_json:
        print_json(list(told.values()))
        return
    rows = []
    for name, job in sorted(told.items()):
        last = job["runs"][0] if job["runs"] else None
        rows.append(
            [
                name,
                job["state"],
                None if last is None else last["state"],
                None if last is None else _time(last["began_ms"]),
                None if last is None else last["records"],
                _next(job),
            ]
        )
    print_table(["job", "state", "last run", "began", "records", "next run"], rows)


@jobs.command()
@connector_argument()
@connect_options
@json_option
def show(name: str, data: Path, connect: str | None, as_json: bool) -> None:
    """Show the last runs of a job, newest first, with their errors, and the progress of one under way.

    Example: tidegate jobs show flights
    """
    rest = rest_of(data, connect)
    job = job_of(rest, name)
    progress = rest.call("GET", f"/tidegate/v1{path_of(name)}/progress")["tasks"]
    if as_json:
        print_json({**job, "progress": progress})
        return
    click.echo(f"{name}  {job['state']}  next run: {_next(job)}")
    rows = [
        [run["id"], run["state"], _time(run["began_ms"]), _took(run), run["records"], run["partitions"], run["error"]]
        for run in job["runs"]
    ]
    print_table(["run", "state", "began", "took", "records", "partitions", "error"], rows)
    for told in progress:
        if job["runs"] and job["runs"][0]["state"] == "running":
            of = "" if told.get("total") is None else f" of {told['total']}"
            note = f": {told['note']}" if told.get("note") else ""
            click.echo(f"under way: {told.get('done')}{of} {told.get('unit', '')}".rstrip() + note)


@jobs.command()
@connector_argument(nargs=-1, required=True)
@connect_options
@done_option
def run(names: tuple[str, ...], data: Path, connect: str | None) -> None:
    """Have jobs run now, over what there is, before their interval or schedule says so.

    Example: tidegate jobs run flights
    """
    rest = rest_of(data, connect)
    for name in names:
        rest.call("POST", f"/tidegate/v1{path_of(name)}/run")
        done(f"{name} runs now", name=name, action="run")


@jobs.command()
@connector_argument(nargs=-1, required=True)
@connect_options
@done_option
def cancel(names: tuple[str, ...], data: Path, connect: str | None) -> None:
    """End the runs of jobs that are under way. Each is run again, over the same records, when the job is due next.

    `tidegate connectors pause` keeps a job from running again.

    Example: tidegate jobs cancel flights
    """
    rest = rest_of(data, connect)
    for name in names:
        rest.call("DELETE", f"/tidegate/v1{path_of(name)}/run")
        done(f"{name} is cancelled", name=name, action="cancelled")


@jobs.command()
@connector_argument(nargs=-1, required=True)
@connect_options
@done_option
def retry(names: tuple[str, ...], data: Path, connect: str | None) -> None:
    """Restart jobs that have failed and have them run now, first over the records of the run that failed.

    Example: tidegate jobs retry flights
    """
    rest = rest_of(data, connect)
    for name in names:
        rest.call("POST", path_of(name, "/restart"), includeTasks="true", onlyFailed="true")
        run_once_restarted(rest, name)
        done(f"{name} runs again", name=name, action="retry")


jobs.add_command(logs)


def _next(job: Mapping[str, Any]) -> str:
    return str(_time(next_run_ms) or "") if (next_run_ms := job["next_run_ms"]) is not None else next_run_text(job)


def _time(at_ms: int | None) -> str | None:
    return None if at_ms is None else f"{time_text(at_ms)} UTC"


def _took(run: Mapping[str, Any]) -> str | None:
    return None if run["ended_ms"] is None else f"{(run['ended_ms'] - run['began_ms']) / 1000:.1f} s"
