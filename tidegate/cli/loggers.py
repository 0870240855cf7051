"""``tidegate loggers``: levels of loggers while a Connect worker or a broker runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import click

from tidegate.cli.connectors.reach import rest_of
from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.options import json_option, print_json, print_table
from tidegate.clients.rest import NotThere, Rest
from tidegate.clients.topics import with_admin
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import TidegateError

__all__ = ["loggers"]

F = TypeVar("F", bound=Callable[..., Any])

_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL", "OFF")


@click.group()
def loggers() -> None:
    """List and set levels of loggers of a Connect worker, or with --broker of a broker, until it ends.

    Example: tidegate loggers list connect.task
    """


def _where(function: F) -> F:
    """``--connect``, or ``--broker`` with the options of Kafka clients."""
    function = click.option(
        "--broker",
        "node",
        type=click.IntRange(min=0),
        metavar="ID",
        help="Of this broker instead of the Connect worker.",
    )(function)
    return kafka_options(click.option("--connect", metavar="URL", help="The Connect worker to talk to.")(function))


@loggers.command("list")
@click.argument("prefix", default="")
@_where
@json_option
def list_loggers(prefix: str, node: int | None, connect: str | None, as_json: bool, data: Path, **where: Any) -> None:
    """List loggers with their levels; with PREFIX those whose names begin so.

    Example: tidegate loggers list broker.log --broker 1
    """
    levels = (
        _of_broker(node, data, where)
        if node is not None
        else {name: entry["level"] for name, entry in _worker(data, connect).call("GET", "/admin/loggers").items()}
    )
    shown = {name: level for name, level in sorted(levels.items()) if name.startswith(prefix)}
    if prefix and not shown:
        raise TidegateError(f"no logger's name begins with {prefix}{_meant(prefix, levels)}")
    if as_json:
        print_json(shown)
    else:
        print_table(["logger", "level"], list(shown.items()))


@loggers.command("set")
@click.argument("logger")
@click.argument("level", type=click.Choice(_LEVELS, case_sensitive=False))
@click.option("--cluster", is_flag=True, help="On all Connect workers of the cluster.")
@_where
@json_option
def set_level(
    logger: str,
    level: str,
    cluster: bool,
    node: int | None,
    connect: str | None,
    as_json: bool,
    data: Path,
    **where: Any,
) -> None:
    """Set the level of LOGGER, and on a Connect worker of all below it; root is all of them.

    Example: tidegate loggers set connect.task DEBUG
    """
    if node is not None and (cluster or level.upper() == "OFF"):
        raise click.UsageError("a broker has neither --cluster nor OFF: FATAL is its quietest level")
    changed = (
        _set_on_broker(node, logger, level.upper(), data, where)
        if node is not None
        else _set_on_worker(_worker(data, connect), logger, level.upper(), cluster=cluster)
    )
    if as_json:
        print_json({"logger": logger, "level": level.upper(), "changed": changed})
        return
    count = "" if changed is None else f" ({len(changed)} {'logger' if len(changed) == 1 else 'loggers'} changed)"
    click.echo(f"{logger} is {level.upper()}{count}")


def _meant(name: str, known: Iterable[str]) -> str:
    """The nearest logger, or the beginning of several."""
    beginnings = {logger.rsplit(".", depth)[0] for logger in known for depth in range(logger.count(".") + 1)}
    near = nearest_name(name, beginnings)
    return f"; did you mean {near}?" if near else ""


def _worker(data: Path, connect: str | None) -> Rest:
    return rest_of(data, connect)


def _set_on_worker(rest: Rest, logger: str, level: str, *, cluster: bool) -> list[str] | None:
    """The loggers that have another level now; None for a cluster, which does not tell.

    A worker takes any name, as Kafka Connect does: one that it does not know is a warning.
    """
    scope = {"scope": "cluster"} if cluster else {}
    try:
        known = rest.call("GET", "/admin/loggers")
        if not any(name == logger or name.startswith(f"{logger}.") for name in known):
            click.echo(f"the worker has no logger {logger} so far{_meant(logger, known)}", err=True)
        changed: list[str] | None = rest.call(
            "PUT", f"/admin/loggers/{quote(logger, safe='')}", {"level": level}, **scope
        )
    except NotThere as error:
        raise TidegateError(
            f"{error}; a worker whose admin.listeners are apart answers at their address: give it with --connect"
        ) from error
    return changed


def _of_broker(node: int, data: Path, where: dict[str, Any]) -> dict[str, str | None]:
    config = client_config(data, **where)
    entries = with_admin(config, lambda admin: admin.describe_configs(str(node), resource="broker-logger"))
    return {name: entry.value for name, entry in entries.items()}


def _set_on_broker(node: int, logger: str, level: str, data: Path, where: dict[str, Any]) -> list[str]:
    known = _of_broker(node, data, where)
    if logger not in known:
        raise TidegateError(
            f"broker {node} has no logger {logger}{_meant(logger, known)} (`tidegate loggers list --broker {node}` lists all)"
        )
    config = client_config(data, **where)
    with_admin(config, lambda admin: admin.alter_configs(str(node), {logger: level}, resource="broker-logger"))
    return [] if known[logger] == level else [logger]
