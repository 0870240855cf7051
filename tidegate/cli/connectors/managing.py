"""Pausing, resuming, stopping, restarting and deleting connectors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from tidegate.cli.connectors.group import connectors
from tidegate.cli.connectors.reach import connect_options, connector_argument, rest_of
from tidegate.cli.options import json_option, print_json
from tidegate.clients.worker import path_of

__all__: list[str] = []


def _acting(verb: str, done: str, method: str, path: str, words: str) -> None:
    @connectors.command(verb, help=words)
    @connector_argument(nargs=-1, required=True)
    @connect_options
    @json_option
    def act(names: tuple[str, ...], data: Path, connect: str | None, as_json: bool) -> None:
        rest = rest_of(data, connect)
        for name in names:
            rest.call(method, path_of(name, path))
            if not as_json:
                click.echo(f"{name} {done}")
        if as_json:
            print_json([{"name": name, "action": done} for name in names])


_acting("pause", "paused", "PUT", "/pause", "Pause connectors: tasks stay and do nothing.")
_acting("resume", "resumed", "PUT", "/resume", "Resume connectors that are paused or stopped.")
_acting("stop", "stopped", "PUT", "/stop", "Stop connectors: their tasks end, their offsets stay.")
_acting("delete", "deleted", "DELETE", "", "Delete connectors; topics and offsets stay.")


@connectors.command()
@connector_argument(nargs=-1)
@click.option("--failed", is_flag=True, help="Only those of a connector and its tasks that have failed.")
@click.option("--task", type=click.IntRange(min=0), metavar="N", help="Only this task.")
@click.option("--all-failed", is_flag=True, help="What has failed of all connectors, instead of NAMES.")
@connect_options
@json_option
def restart(
    names: tuple[str, ...],
    failed: bool,
    task: int | None,
    all_failed: bool,
    data: Path,
    connect: str | None,
    as_json: bool,
) -> None:
    """Restart connectors with all their tasks, or only what has failed.

    Example: tidegate connectors restart orders --failed
    """
    if bool(names) == all_failed:
        raise click.UsageError("give NAMES or --all-failed, one of them")
    if task is not None and (failed or all_failed or len(names) > 1):
        raise click.UsageError("--task restarts one task of one connector: give one NAME and no other option")
    rest = rest_of(data, connect)
    if all_failed:
        statuses = {name: entry["status"] for name, entry in rest.call("GET", "/connectors", expand="status").items()}
        names = tuple(sorted(name for name, status in statuses.items() if _parts(status, "FAILED")))
    done: list[dict[str, Any]] = []
    for name in names:
        if task is not None:
            rest.call("POST", path_of(name, f"/tasks/{task}/restart"))
            parts = [f"task {task}"]
        else:
            only = failed or all_failed
            flags = {"includeTasks": "true", "onlyFailed": str(only).lower()}
            parts = _parts(rest.call("POST", path_of(name, "/restart"), **flags), "RESTARTING")
        done.append({"name": name, "restarted": parts})
        if not as_json:
            whole = task is None and not failed and not all_failed
            click.echo(
                f"{name} " + (f"restarted{'' if whole else ': ' + ', '.join(parts)}" if parts else "has not failed")
            )
    if as_json:
        print_json(done)
    elif all_failed and not done:
        click.echo("nothing has failed")


def _parts(status: Mapping[str, Any], state: str) -> list[str]:
    """The connector itself and the tasks that are in a state."""
    parts = [("connector", status["connector"]), *((f"task {task['id']}", task) for task in status["tasks"])]
    return [part for part, told in parts if told["state"] == state]
