"""Options and helpers shared by the command families: the location of the platform, and printing of results."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from tidegate.components import FACES
from tidegate.kit.errors import UsageError
from tidegate.state import State, read_state

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from tidegate.cli.contexts import Context

__all__ = [
    "address_of",
    "as_json",
    "context_in_use",
    "data_option",
    "done",
    "done_option",
    "echo_error",
    "folder_option",
    "json_option",
    "print_json",
    "print_table",
    "running_state",
    "table_of",
]

F = TypeVar("F", bound=Callable[..., Any])

DEFAULT_DATA = "tidegate-data"
CONTEXT = "tidegate.context"
"""The key of ``--context`` in click's context."""
_USED = "tidegate.context.used"
_DONE = "tidegate.done"
"""The key in click's context of what a command has done, for its JSON."""


def data_option(function: F) -> F:
    """``--data DIR``: the folder of the platform. Without it, the current context applies."""
    return _folder(function, _by_context)


def folder_option(function: F) -> F:
    """``--data DIR`` for commands that start, stop or secure a platform.

    A context applies only if the command line names it.
    """
    return _folder(function, _by_named_context)


def _by_context(ctx: click.Context, parameter: click.Parameter, value: Path) -> Path:
    from tidegate.cli.contexts import read_contexts

    said = ctx.meta.get(CONTEXT)
    if ctx.get_parameter_source(parameter.name or "") not in (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP):
        if said:
            raise click.UsageError("give --context or --data (TIDEGATE_DATA), not both")
        return value
    known = read_contexts()
    name = said or known.current
    if not name:
        return value
    context = known.named(name)
    if context.data:
        return Path(context.data)
    ctx.meta[_USED] = (name, context)
    return value


def _by_named_context(ctx: click.Context, parameter: click.Parameter, value: Path) -> Path:
    if not ctx.meta.get(CONTEXT):
        return value
    folder = _by_context(ctx, parameter, value)
    if context_in_use() is not None:
        raise click.UsageError(
            f"the context {ctx.meta[CONTEXT]} is of a platform elsewhere: this command needs its folder"
        )
    return folder


def context_in_use() -> tuple[str, Context] | None:
    """The context, with its name, that locates the platform; None if a folder does."""
    ctx = click.get_current_context(silent=True)
    return None if ctx is None else ctx.meta.get(_USED)


def _folder(function: F, callback: Callable[[click.Context, click.Parameter, Path], Path]) -> F:
    return click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        default=DEFAULT_DATA,
        envvar="TIDEGATE_DATA",
        show_default=True,
        show_envvar=True,
        callback=callback,
        help="The folder of the platform's data.",
    )(function)


def json_option(function: F) -> F:
    """``--json``: for scripts."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for scripts.")(function)


def address_of(face: str, data: Path, address: str | None = None, *, needed: bool = True) -> str:
    """The address of a service: ``address``, else that of the current context, else of the platform running on
    ``data``, else the default if no folder was named or nothing has to be there (``needed``).

    HTTP services have the form ``http://host:port``. Raises UsageError.
    """
    if address:
        if FACES[face].is_http and not re.match(r"https?://", address):
            raise UsageError(f"{address!r} is not the address of {face}: give http://HOST:PORT or https://HOST:PORT")
        return address
    if (used := context_in_use()) is not None:
        name, context = used
        kind = "pubsub" if face == "pubsub-plain" else face
        if kind not in context.addresses:
            raise UsageError(
                f"the context {name} has no address of {kind}: `tidegate use {name} --{kind} ...` gives it one"
            )
        return context.addresses[kind]
    state = read_state(data)
    if (state is None or not state.running) and needed and _is_named("data"):
        # Not the default address: whoever runs there is not the platform that the command names.
        raise UsageError(f"no tidegate is up on {data}: start one with `tidegate up --data {data}`, or give an address")
    if state is not None and state.running:
        if face == "broker":
            return state.bootstrap_servers
        if face not in state.addresses:
            raise UsageError(f"the platform on {data} runs without {face}; give its address")
        return state.addresses[face]
    known = FACES[face]
    return f"http://{known.default}" if known.is_http else known.default


def _is_named(parameter: str) -> bool:
    """Whether the command line or the environment gave a parameter."""
    ctx = click.get_current_context(silent=True)
    return ctx is not None and ctx.get_parameter_source(parameter) in (
        ParameterSource.COMMANDLINE,
        ParameterSource.ENVIRONMENT,
    )


def as_json(value: Any, *, indent: int | None = 2) -> str:
    return json.dumps(value, indent=indent, ensure_ascii=False, default=str)


def done_option(function: F) -> F:
    """``--json`` for a command that changes something: it prints a list of what was passed to ``done``."""

    @functools.wraps(function)
    def run(*arguments: Any, as_json: bool, **named: Any) -> Any:
        ctx = click.get_current_context()
        told: list[dict[str, Any]] | None = [] if as_json else None
        ctx.meta[_DONE] = told
        result = function(*arguments, **named)
        if told is not None:
            print_json(told)
        return result

    return json_option(run)  # type: ignore[return-value]


def done(text: str, **facts: Any) -> None:
    """Tell what a command has done: a line for people, or facts for its JSON."""
    told: list[dict[str, Any]] | None = click.get_current_context().meta.get(_DONE)
    if told is None:
        click.echo(text)
    else:
        told.append(facts)


def print_json(value: Any) -> None:
    click.echo(as_json(value))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, grouped: bool = True) -> None:
    """Print a table as wide as the terminal, or as its rows if the output is not a terminal; numbers are right-aligned, and ``grouped``
    by thousands."""
    from rich.console import Console

    table = table_of(columns, rows, grouped=grouped)
    console = Console()
    if not console.is_terminal:  # a pipe has no width: truncated text could not be searched for
        console = Console(width=max(1, console.measure(table, options=console.options.update(max_width=1000)).maximum))
    console.print(table)


def table_of(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, grouped: bool = True) -> Table:
    """A table for rich; a cell may be a ``rich.text.Text``."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(header_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for number, name in enumerate(columns):
        values = [row[number] for row in rows if row[number] is not None]
        numeric = bool(values) and all(_is_number(value) for value in values)
        table.add_column(escape(name), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(value, "," if grouped else "") for value in row))
    return table


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or getattr(value, "justify", None) == "right"


def _cell(value: Any, separator: str) -> str | Text:
    from rich.markup import escape
    from rich.text import Text

    if isinstance(value, Text):
        return value
    if value is None:
        return "-"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:{separator}}"
    if isinstance(value, float):
        return f"{value:{separator}.15g}"
    return escape(str(value))


def echo_error(text: str) -> None:
    click.echo(text, err=True)


def running_state(data: Path) -> State:
    """The state of the platform that runs on ``data``. Raises UsageError if none runs."""
    state = read_state(data)
    if state is None or not state.running:
        raise UsageError(f"no tidegate is up on {data}: start one with `tidegate up --data {data}`")
    return state
