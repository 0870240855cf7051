"""``tidegate records``: deleting the oldest records of a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.kafka.positions import POSITION
from tidegate.cli.options import json_option, print_json, print_table
from tidegate.clients.topics import with_admin
from tidegate.kit.texts import counted
from tidegate.records.positions import Position, chosen_partitions, resolve

if TYPE_CHECKING:
    from broker.client import Admin

__all__ = ["records"]


@click.group()
def records() -> None:
    """Delete the oldest records of a topic."""


@records.command()
@click.argument("topic")
@click.option(
    "--before",
    "position",
    type=POSITION,
    required=True,
    help="The first record to keep: an offset (42), so many records before the end (-100), an age (-7d), a time, or end.",
)
@click.option("--partition", "numbers", multiple=True, type=click.IntRange(min=0), help="Only this partition.")
@click.option("--execute", is_flag=True, help="Do it; without it the command only shows what it would do.")
@kafka_options
@json_option
def delete(
    topic: str, position: Position, numbers: tuple[int, ...], execute: bool, as_json: bool, **where: Any
) -> None:
    """Delete the records of a topic before a position. They cannot be restored.

    Like kafka-delete-records. Example: tidegate records delete clicks --before -7d --execute
    """

    async def ask(admin: Admin) -> list[dict[str, Any]]:
        described = (await admin.describe_topics([topic]))[topic]
        moved = await resolve(admin, position, chosen_partitions(described, numbers), exactly=True)
        if execute:
            await admin.delete_records({p: offset for p, (_, offset, _) in moved.items()})
        return [
            {"partition": p.partition, "first": start, "new first": offset, "end": end, "deleted": offset - start}
            for p, (start, offset, end) in moved.items()
        ]

    rows = with_admin(client_config(**where), ask, topics=[topic])
    if as_json:
        print_json({"topic": topic, "executed": execute, "partitions": rows})
        return
    print_table(list(rows[0]), [list(row.values()) for row in rows])
    count = sum(row["deleted"] for row in rows)
    click.echo(
        f"{counted(count, 'offset')} {'is' if count == 1 else 'are'} deleted"
        if execute
        else "nothing is changed: --execute does it"
    )
