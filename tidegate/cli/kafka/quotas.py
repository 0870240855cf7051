"""``tidegate quotas``: limits of clients of any Kafka."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import click

from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.options import done, done_option, json_option, print_json, print_table
from tidegate.clients.topics import with_admin
from tidegate.kit.errors import UsageError

__all__ = ["quotas"]

F = TypeVar("F", bound=Callable[..., Any])

_KEYS: Final[Mapping[str, str]] = {
    "produce": "producer_byte_rate",
    "consume": "consumer_byte_rate",
    "request": "request_percentage",
    "topics": "controller_mutation_rate",
    "connections": "connection_creation_rate",
}
"""Kafka's keys by the names of our options (``QuotaConfig``)."""
_DEFAULT: Final = "default"


@click.group()
def quotas() -> None:
    """List, set and remove quotas: how much a user or a client may send and ask for."""


def entity_options(function: F) -> F:
    """``--user``, ``--client-id`` and ``--ip``."""
    for option in (
        click.option("--ip", metavar="ADDRESS", help="An address; default is every one without a quota of its own."),
        click.option("--client-id", metavar="ID", help="A client id; default is every one without a quota of its own."),
        click.option("--user", metavar="NAME", help="A user; default is every one without a quota of its own."),
    ):
        function = option(function)
    return function


def _entity(user: str | None, client_id: str | None, ip: str | None) -> dict[str, str | None]:
    named = {"user": user, "client-id": client_id, "ip": ip}
    entity = {kind: None if name == _DEFAULT else name for kind, name in named.items() if name is not None}
    if not entity or (ip is not None and len(entity) > 1):
        raise click.UsageError("whose quotas are meant? give --user, --client-id or both, or --ip")
    return entity


@quotas.command("list")
@kafka_options
@json_option
def list_quotas(as_json: bool, **where: Any) -> None:
    """List quotas by user, client id or address."""
    rows = [
        {
            **{
                kind: quota.entity.get(kind, "") or _DEFAULT * (kind in quota.entity)
                for kind in ("user", "client-id", "ip")
            },
            "quota": key,
            "value": value,
        }
        for quota in with_admin(client_config(**where), lambda admin: admin.describe_quotas())
        for key, value in sorted(quota.values.items())
    ]
    rows.sort(key=lambda row: tuple(map(str, row.values())))
    if as_json:
        print_json(rows)
    else:
        print_table(["user", "client-id", "ip", "quota", "value"], [list(row.values()) for row in rows])


@quotas.command("set")
@entity_options
@click.option("--produce", type=click.FloatRange(min=0), metavar="BYTES", help="Bytes a second it may produce.")
@click.option("--consume", type=click.FloatRange(min=0), metavar="BYTES", help="Bytes a second it may fetch.")
@click.option("--request", type=click.FloatRange(min=0), metavar="PERCENT", help="Share of a thread it may use.")
@click.option(
    "--topics", type=click.FloatRange(min=0), metavar="N", help="Partitions a second it may create or delete."
)
@click.option("--connections", type=click.FloatRange(min=0), metavar="N", help="Connections a second from an address.")
@kafka_options
@done_option
def set_quotas(
    user: str | None,
    client_id: str | None,
    ip: str | None,
    produce: float | None,
    consume: float | None,
    request: float | None,
    topics: float | None,
    connections: float | None,
    **where: Any,
) -> None:
    """Set quotas, at once; those not given stay.

    Example: tidegate quotas set --user billing --produce 1000000
    """
    given = dict(zip(_KEYS.values(), (produce, consume, request, topics, connections), strict=True))
    _change(_entity(user, client_id, ip), {key: value for key, value in given.items() if value is not None}, where)


@quotas.command()
@entity_options
@click.argument("names", nargs=-1, type=click.Choice(list(_KEYS)), metavar="[QUOTA]...")
@kafka_options
@done_option
def remove(user: str | None, client_id: str | None, ip: str | None, names: tuple[str, ...], **where: Any) -> None:
    """Remove quotas of a user, a client or an address: all, or those that are named (produce, consume, request, topics,
    connections).

    Example: tidegate quotas remove --user billing produce
    """
    entity = _entity(user, client_id, ip)
    described = with_admin(client_config(**where), lambda admin: admin.describe_quotas())
    there = {key for quota in described if quota.entity == entity for key in quota.values}
    keys = {_KEYS[name] for name in names} or there
    if missing := sorted(keys - there) or ([] if keys else ["quota"]):
        raise UsageError(f"{_named(entity)} has no {missing[0]}; `tidegate quotas list` shows those there are")
    _change(entity, dict.fromkeys(sorted(keys)), where)


def _change(entity: Mapping[str, str | None], changes: Mapping[str, float | None], where: Mapping[str, Any]) -> None:
    if not changes:
        raise click.UsageError(f"no quota is named; give {', '.join(f'--{name}' for name in _KEYS)}")
    with_admin(client_config(**where), lambda admin: admin.alter_quotas(entity, changes))
    said = _named(entity)
    for key, value in changes.items():
        text = "removed" if value is None else format(value, ",.15g")
        done(f"{said}: {key} is {text}", entity=dict(entity), quota=key, value=value)


def _named(entity: Mapping[str, str | None]) -> str:
    return ", ".join(f"{kind} {_DEFAULT if name is None else name}" for kind, name in entity.items())
