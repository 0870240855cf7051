"""The way to a worker: options, its REST API, and names of connectors for the shell's completion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote, unquote

import click
from click.shell_completion import CompletionItem

from tidegate.cli.credentials import connect_credentials
from tidegate.cli.options import DEFAULT_DATA, address_of, data_option
from tidegate.cli.rest import NotThere, Rest
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import TidegateError

__all__ = [
    "connect_options",
    "connector_argument",
    "connector_names",
    "masked_config",
    "path_of",
    "rest_of",
    "statistics_of",
    "worker_url",
]

F = TypeVar("F", bound=Callable[..., Any])

_COMPLETION_S: Final = 2.0
_NAMED_CONNECTOR: Final = re.compile(r"/connectors/([^/]+)")


def connect_options(function: F) -> F:
    """``--connect`` and ``--data``."""
    return data_option(click.option("--connect", metavar="URL", help="The Connect worker to talk to.")(function))


def worker_url(data: Path, connect: str | None) -> str:
    return address_of("connect", data, connect)


def rest_of(data: Path, connect: str | None, *, timeout_s: float = 95) -> Rest:
    return _Worker(worker_url(data, connect), "Connect worker", connect_credentials(data, connect), timeout_s=timeout_s)


class _Worker(Rest):
    """A worker whose answer for a connector that it does not have names the nearest."""

    def call(self, method: str, path: str, body: Any = None, **query: Any) -> Any:
        try:
            return super().call(method, path, body, **query)
        except NotThere as error:
            if (matched := _NAMED_CONNECTOR.search(path)) is None:
                raise
            name, known = unquote(matched[1]), super().call("GET", "/connectors")
            near = None if name in known else nearest_name(name, known)
            if near is None:
                raise
            raise NotThere(f"{error}; did you mean {near}?") from error


def path_of(name: str, rest: str = "") -> str:
    """The path of a connector's resource."""
    return f"/connectors/{quote(name, safe='')}{rest}"


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


def statistics_of(
    rest: Rest,
    data: Path,
    connect: str | None,
    workers: Iterable[str],
    tell: Callable[[str], object] = lambda text: click.echo(text, err=True),
) -> dict[str, Any]:
    """The counts of tasks and the memory of their hosts by connector: of the worker that is asked and of ``workers``.

    Empty if they are Apache Kafka's, which tell this to JMX only.
    """
    try:
        answer = rest.call("GET", "/tidegate/v1/connectors")
    except NotThere:
        return {}
    made = _by_connector(answer)
    scheme = worker_url(data, connect).partition("://")[0]
    for worker_id in sorted({*workers} - {answer["worker_id"]}):
        other = Rest(f"{scheme}://{worker_id}", "Connect worker", connect_credentials(data, connect), timeout_s=10)
        try:
            more = _by_connector(other.call("GET", "/tidegate/v1/connectors"))
        except TidegateError as error:
            tell(f"nothing is known of the tasks on {worker_id}: {error}")
            continue
        for name, tasks in more.items():
            made.setdefault(name, {}).update(tasks)
    return made


def _by_connector(answer: Mapping[str, Any]) -> dict[str, dict[int, dict[str, Any]]]:
    return {name: {task["id"]: task for task in tasks} for name, tasks in answer["connectors"].items()}


def masked_config(rest: Rest, config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration for people: without values of keys that its plugins declare as passwords, or whose names say so.

    Placeholders (``${file:...}``) stay: they are no secrets.
    """
    from tidegate.kit.scrubbing import HIDDEN, masked

    secret = set(_declared_passwords(rest, config))
    shown = {}
    for key, value in sorted(config.items()):
        if not isinstance(value, str) or _is_placeholder(value):
            shown[key] = value
        else:
            shown[key] = HIDDEN if key in secret and value else masked(key, value)
    return shown


def _is_placeholder(value: str) -> bool:
    return re.fullmatch(r"\$\{[^}]+\}", value.strip()) is not None


_PLUGIN_KEY: Final = re.compile(
    r"(?P<prefix>)connector\.class|(?P<converter>(key|value|header)\.converter)|(?P<chain>(transforms|predicates)\.[^.]+)\.type"
)


def _declared_passwords(rest: Rest, config: Mapping[str, Any]) -> Iterable[str]:
    for key, value in config.items():
        matched = _PLUGIN_KEY.fullmatch(key)
        if matched is None or not isinstance(value, str):
            continue
        stem = matched["converter"] or matched["chain"]
        prefix = f"{stem}." if stem else ""
        try:
            keys = rest.call("GET", f"/connector-plugins/{quote(value, safe='')}/config")
        except TidegateError:
            continue  # a class that this worker does not have; names of keys must do
        yield from (prefix + declared["name"] for declared in keys if declared["type"] == "PASSWORD")
