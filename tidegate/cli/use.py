"""``tidegate use``: creates, lists, selects and removes contexts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from tidegate.cli.contexts import ADDRESSES, Context, read_contexts
from tidegate.cli.options import json_option, print_json, print_table
from tidegate.kit.config import Password
from tidegate.kit.errors import UsageError

__all__ = ["use"]


@click.command()
@click.argument("context", required=False)
@click.option("--broker", "--bootstrap-servers", "broker", metavar="LIST", help="The Kafka protocol's address.")
@click.option("--registry", metavar="URL", help="The registry's address.")
@click.option("--connect", metavar="URL", help="The Connect worker's address.")
@click.option("--events", metavar="URL", help="The events service's address.")
@click.option("--pubsub", metavar="H:P", help="The Pub/Sub API's address, with TLS where there is a --ca.")
@click.option("--ca", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="The authority to trust.")
@click.option("--user", help="Who asks; the password is asked for.")
@click.option("--password", envvar="TIDEGATE_NEW_PASSWORD", show_envvar=True, help="The user's password.")
@click.option(
    "--data",
    type=click.Path(file_okay=False, path_type=Path),
    help="Instead of all these, the data folder of a platform on this machine.",
)
@click.option("--none", "stop", is_flag=True, help="Use no context any more.")
@click.option("--remove", is_flag=True, help="Forget the context.")
@json_option
def use(
    context: str | None,
    ca: Path | None,
    user: str | None,
    password: str | None,
    data: Path | None,
    stop: bool,
    remove: bool,
    as_json: bool,
    **addresses: str | None,
) -> None:
    """Have commands talk to the platform of CONTEXT, from any folder. With addresses or --data the context is made or changed first.

    Without CONTEXT, list them. `tidegate --context NAME COMMAND` uses one for a single command.
    """
    known = read_contexts()
    named = {face: address for face in ADDRESSES if (address := addresses[face])}
    changes = bool(named or ca or user or data)
    if context is None:
        if changes or remove:
            raise click.UsageError("give the name of the context first")
        if stop:
            replace(known, current="").write()
            click.echo("no context is in use")
            return
        _list(known.by_name, known.current, as_json=as_json)
        return
    if remove:
        known.without(context).write()
        click.echo(f"{context} is forgotten")
        return
    if data is not None and (named or ca or user):
        raise click.UsageError("--data says where everything is: give it alone")
    if changes:
        before = known.by_name.get(context, Context())
        made = Context(data=str(data.absolute())) if data is not None else replace(before, data="")
        if user is not None:
            secret = password or click.prompt("Password", hide_input=True)
            made = replace(made, user=user, password=Password(secret))
        made = replace(made, addresses={**made.addresses, **named}, ca=str(ca.absolute()) if ca else made.ca)
        if not made.data and not made.addresses:
            raise UsageError(f"the context {context} has no address: give --broker, --registry, --connect or --events")
        known = known.having(context, made)
    known.using(context).write()
    click.echo(f"commands go to {context}: {_where(known.named(context))}")


def _list(contexts: Mapping[str, Context], current: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"current": current, "contexts": {name: context.shown for name, context in contexts.items()}})
        return
    rows = [
        ["*" if name == current else "", name, _where(context), context.user or "-"]
        for name, context in contexts.items()
    ]
    print_table(["", "context", "platform", "user"], rows)


def _where(context: Context) -> str:
    return context.data or ", ".join(f"{face} {address}" for face, address in context.addresses.items())
