"""Connectors over Kafka Connect's REST API, ours or the original's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import click

from tidegate.cli.connectors.files import read_connector
from tidegate.cli.connectors.group import connectors
from tidegate.cli.credentials import connect_credentials
from tidegate.cli.options import address_of, data_option, json_option, print_json, print_table
from tidegate.cli.rest import Rest
from tidegate.kit.errors import TidegateError, UsageError

__all__ = ["connect_options"]

F = TypeVar("F", bound=Callable[..., Any])


def connect_options(function: F) -> F:
    """``--connect`` and ``--data``."""
    return data_option(click.option("--connect", metavar="URL", help="The Connect worker to talk to.")(function))


def _rest(data: Path, connect: str | None) -> Rest:
    return Rest(address_of("connect", data, connect), "Connect worker", connect_credentials(data, connect))


def _path(name: str, rest: str = "") -> str:
    return f"/connectors/{quote(name, safe='')}{rest}"


@connectors.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@connect_options
def apply(files: tuple[Path, ...], data: Path, connect: str | None) -> None:
    """Create or update connectors from JSON or properties files."""
    rest = _rest(data, connect)
    for path in files:
        name, config = read_connector(path)
        there = name in rest.call("GET", "/connectors")
        rest.call("PUT", _path(name, "/config"), {**config, "name": name})
        click.echo(f"{name} {'updated' if there else 'created'}")


@connectors.command("list")
@connect_options
@json_option
def list_connectors(data: Path, connect: str | None, as_json: bool) -> None:
    """List connectors with their states."""
    answer = _rest(data, connect).call("GET", "/connectors", expand="status")
    if as_json:
        print_json(answer)
        return
    rows = []
    for name, entry in sorted(answer.items()):
        status = entry["status"]
        tasks = [task["state"] for task in status["tasks"]]
        summary = ", ".join(f"{tasks.count(state)} {state}" for state in sorted(set(tasks)))
        rows.append([name, status["type"], status["connector"]["state"], summary])
    print_table(["connector", "type", "state", "tasks"], rows)


@connectors.command()
@click.argument("name")
@connect_options
@json_option
def status(name: str, data: Path, connect: str | None, as_json: bool) -> None:
    """Show the state of a connector and its tasks, with the reason of a failure."""
    rest = _rest(data, connect)
    answer = rest.call("GET", _path(name, "/status"))
    if as_json:
        print_json(answer)
        return
    rows = [["connector", answer["connector"]["state"], answer["connector"]["worker_id"]]]
    rows += [[f"task {task['id']}", task["state"], task["worker_id"]] for task in answer["tasks"]]
    print_table([name, "state", "worker"], rows)
    for part in (answer["connector"], *answer["tasks"]):
        if part.get("trace"):
            click.echo(f"\n{part['trace'].strip()}")


def _acting(verb: str, method: str, path: str, words: str, **query: Any) -> None:
    @connectors.command(verb, help=words)
    @click.argument("names", nargs=-1, required=True)
    @connect_options
    def act(names: tuple[str, ...], data: Path, connect: str | None) -> None:
        rest = _rest(data, connect)
        for name in names:
            rest.call(method, _path(name, path), **query)


_acting("pause", "PUT", "/pause", "Pause connectors: tasks stay and do nothing.")
_acting("resume", "PUT", "/resume", "Resume connectors that are paused or stopped.")
_acting("stop", "PUT", "/stop", "Stop connectors: their tasks end, their offsets stay.")
_acting("restart", "POST", "/restart", "Restart connectors with all their tasks.", includeTasks="true")
_acting("delete", "DELETE", "", "Delete connectors; topics and offsets stay.")


@connectors.command()
@click.argument("file", type=click.Path(path_type=Path))
@connect_options
@json_option
def validate(file: Path, data: Path, connect: str | None, as_json: bool) -> None:
    """Say what is wrong with a connector file, as the worker sees it; exit status 1 if anything is."""
    name, config = read_connector(file)
    plugin = str(config.get("connector.class", "")).rpartition(".")[2]
    if not plugin:
        raise UsageError(f"{file} has no connector.class")
    rest = _rest(data, connect)
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


@connectors.command()
@connect_options
@json_option
def plugins(data: Path, connect: str | None, as_json: bool) -> None:
    """List the plugins that the worker can run."""
    plugins_ = _rest(data, connect).call("GET", "/connector-plugins", connectorsOnly="false")
    if as_json:
        print_json(plugins_)
    else:
        print_table(["class", "type", "version"], [[p["class"], p["type"], p.get("version")] for p in plugins_])
