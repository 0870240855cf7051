"""``tidegate connectors logs``: the lines of one connector in the log of the worker on this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

import click

from tidegate.cli.connectors.group import connectors
from tidegate.cli.connectors.reach import connector_argument, rest_of
from tidegate.cli.options import context_in_use, data_option, json_option
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import TidegateError, UsageError

__all__: list[str] = []

_LEVELS: Final = ("debug", "info", "warning", "error", "critical")
_SHOWN_APART: Final = frozenset({"time", "level", "connector", "task", "event", "logger", "exception"})
_CHUNK_BYTES: Final = 1 << 20
_PAUSE_S: Final = 0.2
_ANSWER_S: Final = 5.0
"""How long the worker may take to tell its connectors."""


@connectors.command()
@connector_argument()
@click.option("-f", "--follow", is_flag=True, help="Go on with new lines, until Ctrl-C.")
@click.option("--task", type=click.IntRange(min=0), help="Only this task's lines.")
@click.option("-n", "--lines", type=click.IntRange(min=0), default=50, show_default=True, help="How many lines.")
@click.option(
    "--level",
    type=click.Choice(_LEVELS, case_sensitive=False),
    default="debug",
    show_default=True,
    help="Leave out lines below this level.",
)
@data_option
@json_option
def logs(name: str, follow: bool, task: int | None, lines: int, level: str, data: Path, as_json: bool) -> None:
    """Show the last lines that a connector and its tasks wrote to the worker's log.

    The log is a file on the worker's machine, so this needs the data folder of its platform. --json prints the lines as
    they are in it, one JSON object each.

    Example: tidegate connectors logs orders -f --level warning
    """
    if (used := context_in_use()) is not None:
        where = used[1].addresses.get("connect", "another machine")
        raise UsageError(
            f"the log of the worker at {where} is a file on its machine: run this there, with --data and the platform's folder"
        )
    path = data / "logs" / "connect.log"
    lowest = _LEVELS.index(level)

    logged: set[str] = set()

    def of_connector(line: bytes) -> dict[str, Any] | None:
        parsed = _parsed(line)
        if parsed is None:
            return None
        if "connector" in parsed:
            logged.add(str(parsed["connector"]))
        if parsed.get("connector") != name or (task is not None and parsed.get("task") != task):
            return None
        said = str(parsed.get("level", "info"))
        return parsed if said not in _LEVELS or _LEVELS.index(said) >= lowest else None

    try:
        with path.open("rb") as log:
            end = log.seek(0, 2)
            shown = []
            for line in _backwards(log, end) if lines else ():
                if (parsed := of_connector(line)) is not None:
                    shown.append((line, parsed))
                    if len(shown) == lines:
                        break
            for line, parsed in reversed(shown):
                _print(line, parsed, as_json=as_json)
            if not shown and lines:
                _check_name(name, logged, data)
                if not follow:
                    click.echo(f"{path} has no such line of {name}", err=True)
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}. The log is on the machine of the worker, in the data folder of its "
            "platform; --data names the folder"
        ) from error
    if follow:
        for line in _following(path, end):
            if (parsed := of_connector(line)) is not None:
                _print(line, parsed, as_json=as_json)


def _check_name(name: str, logged: Collection[str], data: Path) -> None:
    """Raises UsageError for a name that neither the log nor the worker has, with the nearest."""
    try:
        known = {*logged, *rest_of(data, None, timeout_s=_ANSWER_S).call("GET", "/connectors")}
    except TidegateError:
        known = {*logged}
    if name not in known:
        near = nearest_name(name, known)
        hint = f"; did you mean {near}?" if near else " (`tidegate connectors list` lists all)"
        raise UsageError(f"there is no connector {name}, and no line of one in the log{hint}")


def _parsed(line: bytes) -> dict[str, Any] | None:
    if not line.startswith(b"{"):
        return None  # output of a library or of print: nobody knows whose it is
    try:
        parsed = json.loads(line)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _backwards(log: IO[bytes], end: int) -> Iterator[bytes]:
    """The whole lines of a file up to ``end``, last first."""
    rest = b""
    while end > 0:
        size = min(_CHUNK_BYTES, end)
        end -= size
        log.seek(end)
        head, *lines = (log.read(size) + rest).split(b"\n")
        rest = head
        yield from reversed(lines)
    yield rest


def _following(path: Path, position: int) -> Iterator[bytes]:
    """Lines that are appended from ``position`` on. A file that was replaced or emptied is read from its beginning."""
    rest = b""
    while True:
        try:
            with path.open("rb") as log:
                if log.seek(0, 2) < position:
                    position, rest = 0, b""
                log.seek(position)
                data = log.read(_CHUNK_BYTES)
        except FileNotFoundError:
            data = b""
        position += len(data)
        *lines, rest = (rest + data).split(b"\n")
        yield from lines
        if not data:
            time.sleep(_PAUSE_S)


def _print(line: bytes, parsed: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        click.echo(line)
        return
    where = "-" if parsed.get("task") is None else f"task {parsed['task']}"
    more = " ".join(f"{key}={_value(value)}" for key, value in parsed.items() if key not in _SHOWN_APART)
    level = str(parsed.get("level", "")).upper()
    click.echo(
        f"{parsed.get('time', '')} {level:7} {where}  {parsed.get('event', '')}{' ' if more else ''}{more}"
        f" [{parsed.get('logger', '')}]"
    )
    if parsed.get("exception"):
        click.echo(str(parsed["exception"]))


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
