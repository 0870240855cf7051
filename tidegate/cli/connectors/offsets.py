"""``tidegate connectors offsets``: reads and changes how far a connector has come (KIP-875)."""

from __future__ import annotations

import contextlib
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from tidegate.cli.connectors.group import connectors
from tidegate.cli.connectors.reach import connect_options, connector_argument, rest_of
from tidegate.cli.options import json_option, print_json, print_table
from tidegate.clients.rest import Rest
from tidegate.clients.worker import change_offsets, path_of
from tidegate.kit.errors import TidegateError, UsageError

__all__ = ["compact"]

F = TypeVar("F", bound=Callable[..., Any])

_LONGEST_WAIT_S: Final = 60.0
_PAUSE_S: Final = 0.2
_SINK_POSITION: Final = re.compile(r"(?P<topic>[^:=]+):(?P<partition>[0-9]+)=(?P<offset>[0-9]+|none)")


@connectors.group()
def offsets() -> None:
    """Show and change how far a connector has come: positions of a source, committed offsets of a sink.

    Example: tidegate connectors offsets get orders
    """


def _change_options(function: F) -> F:
    """``--stop`` and ``--execute``."""
    function = click.option(
        "--execute", is_flag=True, help="Do it; without it the command only shows what it would do."
    )(function)
    return click.option(
        "--stop", is_flag=True, help="Stop the connector for the change, and start it again if it was running."
    )(function)


@offsets.command()
@connector_argument()
@connect_options
@json_option
def get(name: str, data: Path, connect: str | None, as_json: bool) -> None:
    """Show the offsets that a connector has committed. The JSON is what `offsets set` takes.

    Example: tidegate connectors offsets get orders --json > offsets.json
    """
    answer = rest_of(data, connect).call("GET", path_of(name, "/offsets"))
    if as_json:
        print_json(answer)
        return
    if not answer["offsets"]:
        click.echo(f"{name} has committed no offsets")
        return
    print_table(["partition", "offset"], [[compact(o["partition"]), compact(o["offset"])] for o in answer["offsets"]])


@offsets.command("set")
@connector_argument()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option(
    "--at",
    "positions",
    multiple=True,
    metavar="TOPIC:PARTITION=OFFSET",
    help="An offset of a sink; none forgets it. Instead of FILE.",
)
@_change_options
@connect_options
@json_option
def set_(
    name: str,
    file: Path | None,
    positions: tuple[str, ...],
    stop: bool,
    execute: bool,
    data: Path,
    connect: str | None,
    as_json: bool,
) -> None:
    """Set offsets of a connector that is stopped, from a JSON FILE as `offsets get --json` prints it (- is standard
    input). An offset of null forgets a partition; partitions that are not named stay as they are.

    Example: tidegate connectors offsets set orders --at orders:0=1200 --stop --execute
    """
    if (file is None) == (not positions):
        raise click.UsageError("give FILE or --at TOPIC:PARTITION=OFFSET, one of them")
    changes = _read(file) if file is not None else [_position(text) for text in positions]
    rest = rest_of(data, connect)
    if positions and rest.call("GET", path_of(name))["type"] == "source":
        raise UsageError(
            f"{name} is a source, and --at gives offsets of sinks: change what `tidegate connectors offsets get {name} --json` "
            "prints, and give it as FILE"
        )
    _change(rest, name, changes, stop=stop, execute=execute, as_json=as_json)


@offsets.command()
@connector_argument()
@_change_options
@connect_options
@json_option
def reset(name: str, stop: bool, execute: bool, data: Path, connect: str | None, as_json: bool) -> None:
    """Forget all offsets of a connector that is stopped: a source reads again from the beginning, a sink from where
    its consumer starts without offsets (auto.offset.reset).

    Example: tidegate connectors offsets reset orders --stop --execute
    """
    _change(rest_of(data, connect), name, None, stop=stop, execute=execute, as_json=as_json)


def compact(value: Any) -> str:
    """A partition or an offset in one line."""
    if isinstance(value, dict):
        return " ".join(f"{key}={compact(inner)}" for key, inner in value.items())
    return value if isinstance(value, str) else "-" if value is None else json.dumps(value)


def _read(file: Path) -> list[dict[str, Any]]:
    try:
        document = json.loads(sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{file} is not JSON: {error}") from error
    entries = document.get("offsets") if isinstance(document, dict) else document
    if not isinstance(entries, list) or not all(isinstance(e, dict) and "partition" in e for e in entries):
        raise UsageError(
            f'{file} holds no offsets: give {{"offsets": [{{"partition": {{...}}, "offset": {{...}}}}]}}, as `offsets get '
            "--json` prints them"
        )
    return [{"partition": entry["partition"], "offset": entry.get("offset")} for entry in entries]


def _position(text: str) -> dict[str, Any]:
    matched = _SINK_POSITION.fullmatch(text)
    if matched is None:
        raise click.UsageError(f"--at {text!r}: give TOPIC:PARTITION=OFFSET, such as orders:0=1200, or orders:0=none")
    partition = {"kafka_topic": matched["topic"], "kafka_partition": int(matched["partition"])}
    offset = None if matched["offset"] == "none" else {"kafka_offset": int(matched["offset"])}
    return {"partition": partition, "offset": offset}


def _change(
    rest: Rest, name: str, changes: Sequence[Mapping[str, Any]] | None, *, stop: bool, execute: bool, as_json: bool
) -> None:
    """Show or make the changes; None forgets everything."""
    state = rest.call("GET", path_of(name, "/status"))["connector"]["state"]
    known = rest.call("GET", path_of(name, "/offsets"))["offsets"]
    now = {json.dumps(o["partition"], sort_keys=True): o["offset"] for o in known}
    asked = changes if changes is not None else [{"partition": o["partition"], "offset": None} for o in known]
    listed = [
        {
            "partition": change["partition"],
            "from": now.get(json.dumps(change["partition"], sort_keys=True)),
            "to": change["offset"],
        }
        for change in asked
    ]
    rows = [[compact(c["partition"]), compact(c["from"]), compact(c["to"])] for c in listed]
    if not as_json:
        print_table(["partition", "offset", "new offset"], rows)
    must_stop = state != "STOPPED"
    if execute:
        if must_stop and not stop:
            raise UsageError(
                f"{name} is {state}: its offsets change only while it is stopped. --stop stops it for the change and starts "
                f"it again; `tidegate connectors stop {name}` stops it until you resume it"
            )
        with _stopped(rest, name, state) if must_stop else contextlib.nullcontext():
            said = change_offsets(rest, name, changes)
        click.echo(said, err=True)
    if as_json:
        print_json({"name": name, "state": state, "changes": listed, "executed": execute})
    elif not execute:
        hint = f" ({name} is {state}: it needs --stop too)" if must_stop and not stop else ""
        click.echo(f"nothing is changed: --execute does it{hint}")


@contextlib.contextmanager
def _stopped(rest: Rest, name: str, state: str) -> Iterator[None]:
    """Stop the connector. It runs, or is paused, again afterwards, also if the change fails."""
    rest.call("PUT", path_of(name, "/stop"))
    try:
        deadline = time.monotonic() + _LONGEST_WAIT_S
        while (status := rest.call("GET", path_of(name, "/status")))["connector"]["state"] != "STOPPED" or status[
            "tasks"
        ]:
            if time.monotonic() > deadline:
                raise TidegateError(f"{name} has not stopped within {_LONGEST_WAIT_S:.0f} s")
            time.sleep(_PAUSE_S)
        yield
    finally:
        rest.call("PUT", path_of(name, "/pause" if state == "PAUSED" else "/resume"))
