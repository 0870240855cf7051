"""``tidegate scram``: SCRAM passwords that lie in a Kafka's metadata."""

from __future__ import annotations

from typing import Any

import click

from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.options import done, done_option, json_option, print_json, print_table
from tidegate.clients.topics import with_admin

__all__ = ["scram"]

_MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")


@click.group()
def scram() -> None:
    """List, set and delete SCRAM passwords in a Kafka's metadata. A platform's users are `tidegate users`."""


def _mechanism_option(function: Any) -> Any:
    return click.option(
        "--mechanism", "mechanisms", multiple=True, type=click.Choice(_MECHANISMS), help="By default both."
    )(function)


@scram.command("list")
@kafka_options
@json_option
def list_scram(as_json: bool, **where: Any) -> None:
    """List the users who have such passwords."""
    described = with_admin(client_config(**where), lambda admin: admin.describe_scram())
    rows = [
        {"user": user, "mechanism": mechanism, "iterations": iterations}
        for user, mechanisms in sorted(described.items())
        for mechanism, iterations in sorted(mechanisms.items())
    ]
    if as_json:
        print_json(rows)
    else:
        print_table(["user", "mechanism", "iterations"], [list(row.values()) for row in rows])


@scram.command("set")
@click.argument("user")
@_mechanism_option
@click.password_option(envvar="TIDEGATE_NEW_PASSWORD", show_envvar=True, help="Asked for unless given.")
@kafka_options
@done_option
def set_scram(user: str, mechanisms: tuple[str, ...], password: str, **where: Any) -> None:
    """Set a user's password. Only its salted form is sent.

    Example: tidegate scram set billing
    """
    with_admin(client_config(**where), lambda admin: admin.set_scram(user, password, mechanisms or _MECHANISMS))
    chosen = mechanisms or _MECHANISMS
    done(f"{user} has a password for {' and '.join(chosen)}", user=user, action="set", mechanisms=chosen)


@scram.command()
@click.argument("user")
@_mechanism_option
@kafka_options
@done_option
def delete(user: str, mechanisms: tuple[str, ...], **where: Any) -> None:
    """Delete a user's password."""

    async def change(admin: Any) -> tuple[str, ...]:
        there = (await admin.describe_scram()).get(user, {})
        chosen = mechanisms or tuple(sorted(there)) or _MECHANISMS
        await admin.delete_scram(user, chosen)
        return chosen

    chosen = with_admin(client_config(**where), change)
    done(f"{user} has no password for {' or '.join(chosen)} any more", user=user, action="deleted", mechanisms=chosen)
