"""The way to a worker: options, its REST API, and names of connectors for the shell's completion."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click
from click.shell_completion import CompletionItem

from tidegate.cli.credentials import connect_credentials
from tidegate.cli.options import DEFAULT_DATA, address_of, data_option
from tidegate.clients.rest import Rest
from tidegate.clients.worker import Worker
from tidegate.kit.errors import TidegateError

__all__ = [
    "connect_options",
    "connector_argument",
    "connector_names",
    "rest_of",
    "worker_url",
]

F = TypeVar("F", bound=Callable[..., Any])

_COMPLETION_S: Final = 2.0


def connect_options(function: F) -> F:
    """``--connect`` and ``--data``."""
    return data_option(click.option("--connect", metavar="URL", help="The Connect worker to talk to.")(function))


def worker_url(data: Path, connect: str | None) -> str:
    return address_of("connect", data, connect)


def rest_of(data: Path, connect: str | None, *, timeout_s: float = 95) -> Rest:
    return Worker(worker_url(data, connect), connect_credentials(data, connect), timeout_s=timeout_s)


def connector_argument(**more: Any) -> Callable[[F], F]:
    """An argument NAME, or NAMES, that the shell completes."""
    return click.argument("names" if more.get("nargs") == -1 else "name", shell_complete=connector_names, **more)


def connector_names(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The connectors of the worker that the command line names so far; none if it does not answer soon."""
    try:
        data = Path(ctx.params.get("data") or DEFAULT_DATA)
        known = rest_of(data, ctx.params.get("connect"), timeout_s=_COMPLETION_S).call("GET", "/connectors")
    except TidegateError:
        return []
    said = set(ctx.params.get("names") or ())
    return [CompletionItem(name) for name in sorted(known) if name.startswith(incomplete) and name not in said]
