"""Connectors over Kafka Connect's REST API, ours or the original's."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import click

from tidegate.cli.connectors.files import read_connector
from tidegate.cli.connectors.group import connectors
from tidegate.cli.connectors.reach import connect_options, connector_argument, path_of, rest_of
from tidegate.cli.options import json_option, print_json, print_table
from tidegate.cli.rest import NotThere, Rest
from tidegate.kit.errors import TidegateError, UsageError

__all__: list[str] = []

_LONGEST_WAIT_S: Final = 120.0
_PAUSE_S: Final = 0.2


@connectors.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Apply also what has keys that look misspelt.")
@click.option("--wait", is_flag=True, help="Return when all tasks run; exit status 1 if one fails.")
@connect_options
def apply(files: tuple[Path, ...], force: bool, wait: bool, data: Path, connect: str | None) -> None:
    """Create or update connectors from JSON or properties files: all of them, or none if one is wrong."""
    rest = rest_of(data, connect)
    read = _read_all(files)
    problems = [
        problem for name, (path, config) in read.items() for problem in _problems(rest, path, name, config, force)
    ]
    if problems:
        raise UsageError("nothing was applied:\n" + "\n".join(problems))
    existing = rest.call("GET", "/connectors")
    for name, (path, config) in read.items():
        try:
            rest.call("PUT", path_of(name, "/config"), {**config, "name": name})
        except TidegateError as error:
            raise TidegateError(f"{path}: {error}") from error
        click.echo(f"{name} {'updated' if name in existing else 'created'}")
    if wait:
        for name in read:
            _wait_until_running(rest, name)


def _read_all(files: tuple[Path, ...]) -> dict[str, tuple[Path, dict[str, Any]]]:
    read: dict[str, tuple[Path, dict[str, Any]]] = {}
    for path in files:
        name, config = read_connector(path)
        if name in read:
            raise UsageError(f"{read[name][0]} and {path} both hold a connector {name}: nothing was applied")
        read[name] = path, config
    return read


def _problems(rest: Rest, path: Path, name: str, config: Mapping[str, Any], force: bool) -> Iterator[str]:
    """The errors that the worker finds in a file, and keys that look misspelt."""
    plugin = _plugin_of(path, config)
    whole = {**config, "name": name}
    try:
        answer = rest.call("PUT", f"/connector-plugins/{quote(plugin)}/config/validate", whole)
    except TidegateError as error:
        yield f"{path}: {error}"
        return
    for entry in answer["configs"]:
        for problem in entry["value"]["errors"]:
            yield f"{path}: {entry['value']['name']}: {problem}"
    for key, near in _unknown(rest, plugin, whole).items():
        if near is not None and not force:
            yield f"{path}: nobody knows the key {key}; is {near} meant? (--force applies it as it is)"
        else:
            click.echo(f"{path}: nobody knows the key {key}", err=True)


def _plugin_of(path: Path, config: Mapping[str, Any]) -> str:
    plugin = str(config.get("connector.class", ""))
    if not plugin:
        raise UsageError(f"{path} has no connector.class")
    return plugin.rpartition(".")[2]


def _wait_until_running(rest: Rest, name: str) -> None:
    """Return when the connector and all its tasks run. Raises TidegateError with the reason when one fails."""
    deadline = time.monotonic() + _LONGEST_WAIT_S
    while True:
        with contextlib.suppress(NotThere):  # the status follows the configuration a moment later
            status = rest.call("GET", path_of(name, "/status"))
            parts = [status["connector"], *status["tasks"]]
            if failed := next((part for part in parts if part["state"] == "FAILED"), None):
                raise TidegateError(f"{name} failed:\n{failed.get('trace', '').strip()}")
            if status["tasks"] and all(part["state"] == "RUNNING" for part in parts):
                click.echo(f"{name} runs, {len(status['tasks'])} {'task' if len(status['tasks']) == 1 else 'tasks'}")
                return
        if time.monotonic() > deadline:
            raise TidegateError(
                f"{name} does not run after {_LONGEST_WAIT_S:.0f} s: `tidegate connectors status {name}` says where it is"
            )
        time.sleep(_PAUSE_S)


def _acting(verb: str, done: str, method: str, path: str, words: str) -> None:
    @connectors.command(verb, help=words)
    @connector_argument(nargs=-1, required=True)
    @connect_options
    def act(names: tuple[str, ...], data: Path, connect: str | None) -> None:
        rest = rest_of(data, connect)
        for name in names:
            rest.call(method, path_of(name, path))
            click.echo(f"{name} {done}")


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


@connectors.command()
@click.argument("file", type=click.Path(path_type=Path))
@connect_options
@json_option
def validate(file: Path, data: Path, connect: str | None, as_json: bool) -> None:
    """Say what is wrong with a connector file, as the worker sees it; exit status 1 if anything is."""
    name, config = read_connector(file)
    plugin = _plugin_of(file, config)
    rest = rest_of(data, connect)
    answer = rest.call("PUT", f"/connector-plugins/{quote(plugin)}/config/validate", {"name": name, **config})
    if as_json:
        print_json(answer)
    else:
        wrong = [[e["value"]["name"], error] for e in answer["configs"] for error in e["value"]["errors"]]
        if wrong:
            print_table(["key", "problem"], wrong)
        else:
            click.echo(f"{name}: valid")
        for key, near in _unknown(rest, plugin, {"name": name, **config}).items():
            click.echo(f"nobody knows the key {key}" + (f"; is {near} meant?" if near else ""), err=True)
    if answer["error_count"]:
        raise click.exceptions.Exit(1)


def _unknown(rest: Rest, plugin: str, config: Mapping[str, Any]) -> dict[str, str | None]:
    """Keys that no plugin reads; none if the worker is Apache Kafka's, which does not report them."""
    try:
        nearest: dict[str, str | None] = rest.call(
            "PUT", f"/tidegate/v1/connector-plugins/{quote(plugin)}/config/unknown-keys", config
        )
    except TidegateError:
        return {}
    return nearest
