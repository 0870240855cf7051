"""``tidegate groups``: consumer groups of any Kafka."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.kafka.positions import POSITION
from tidegate.cli.options import done, done_option, json_option, print_json, print_table
from tidegate.clients.topics import with_admin
from tidegate.kit.config import nearest_name
from tidegate.kit.errors import UsageError
from tidegate.kit.texts import counted
from tidegate.records.group_offsets import group_lags, moved_group
from tidegate.records.positions import Position

if TYPE_CHECKING:
    from broker.client import Admin, TopicPartition

__all__ = ["groups"]


@click.group()
def groups() -> None:
    """List, describe, reset and delete consumer groups; their offsets and their lag."""


@groups.command("list")
@kafka_options
@json_option
def list_groups(as_json: bool, **where: Any) -> None:
    """List groups with their state, members and total lag."""

    async def ask(admin: Admin) -> list[dict[str, Any]]:
        rows = []
        for listing in sorted(await admin.list_groups(), key=lambda g: g.group_id):
            description = await admin.describe_group(listing.group_id)
            lags = await group_lags(admin, description)
            rows.append(
                {
                    "group": listing.group_id,
                    "state": description.state,
                    "type": listing.type or listing.protocol_type,
                    "members": len(description.members),
                    "lag": sum(row["lag"] for row in lags),
                }
            )
        return rows

    rows = with_admin(client_config(**where), ask)
    if as_json:
        print_json(rows)
    else:
        print_table(["group", "state", "type", "members", "lag"], [list(row.values()) for row in rows])


@groups.command("describe")
@click.argument("group")
@kafka_options
@json_option
def describe_group(group: str, as_json: bool, **where: Any) -> None:
    """Show a group's members, committed offsets and lag by partition.

    A partition without a committed offset counts whole.
    """

    async def ask(admin: Admin) -> dict[str, Any]:
        description = await admin.describe_group(group)
        if description.state == "Dead":  # Kafka's answer for an unknown group
            raise await _no_group(admin, group)
        members = [{"member": m.member_id, "client": m.client_id, "host": m.client_host} for m in description.members]
        return {
            "group": group,
            "state": description.state,
            "type": description.type,
            "members": members,
            "offsets": await group_lags(admin, description),
        }

    group_description = with_admin(client_config(**where), ask)
    if as_json:
        print_json(group_description)
        return
    click.echo(
        f"group {group}  {group_description['type']}  {group_description['state']}  "
        + counted(len(group_description["members"]), "member")
    )
    print_table(
        ["topic", "partition", "committed", "end", "lag"], [list(row.values()) for row in group_description["offsets"]]
    )


@groups.command("delete")
@click.argument("names", nargs=-1, required=True)
@kafka_options
@done_option
def delete_groups(names: tuple[str, ...], **where: Any) -> None:
    """Delete groups with their committed offsets. If one of them does not exist, none is deleted."""

    async def change(admin: Admin) -> None:
        known = {listing.group_id for listing in await admin.list_groups()}
        if missing := next((name for name in names if name not in known), None):
            raise await _no_group(admin, missing)
        await admin.delete_groups(names)

    with_admin(client_config(**where), change)
    for name in names:
        done(f"group {name} is deleted", group=name, action="deleted")


@groups.command("reset")
@click.argument("group")
@click.option(
    "--to",
    "position",
    type=POSITION,
    required=True,
    help="The new position: beginning, end, an offset (42), so many records before the end (-100), an age (-2h) or a time (2026-11-25T10:00).",
)
@click.option(
    "--topic",
    "topics",
    multiple=True,
    metavar="TOPIC[:PARTITION]",
    help="Only this topic, or partition; without it all of which the group has offsets.",
)
@click.option("--execute", is_flag=True, help="Do it; without it the command only shows what it would do.")
@kafka_options
@json_option
def reset_group(
    group: str, position: Position, topics: tuple[str, ...], execute: bool, as_json: bool, **where: Any
) -> None:
    """Move the offsets of a group without members, so that it reads again or skips.

    Like kafka-consumer-groups --reset-offsets. Example: tidegate groups reset billing --to -2h --execute
    """

    async def ask(admin: Admin) -> list[dict[str, Any]]:
        named = await _named_partitions(admin, topics) if topics else None
        moves = await moved_group(admin, group, position, named, execute=execute)
        return [
            {
                "topic": m.partition.topic,
                "partition": m.partition.partition,
                "from": m.committed,
                "to": m.to,
                "lag": m.lag,
            }
            for m in moves
        ]

    named = [topic for topic, _ in map(_topic_and_partition, topics)]
    rows = with_admin(client_config(**where), ask, topics=named)
    if as_json:
        print_json({"group": group, "executed": execute, "offsets": rows})
        return
    print_table(["topic", "partition", "from", "to", "lag"], [list(row.values()) for row in rows])
    click.echo(f"group {group} is reset" if execute else "nothing is changed: --execute does it")


async def _named_partitions(admin: Admin, texts: Sequence[str]) -> list[TopicPartition]:
    """The partitions of TOPIC or TOPIC:PARTITION. Raises UsageError, UnknownTopicOrPartition."""
    from broker.client import TopicPartition

    named = [_topic_and_partition(text) for text in texts]
    described = await admin.describe_topics(sorted({topic for topic, _ in named}))
    partitions: set[TopicPartition] = set()
    for topic, number in named:
        there = {p.partition for p in described[topic].partitions}
        if number and not (number.isdigit() and int(number) in there):
            raise UsageError(f"--topic {topic}:{number}: topic {topic} has the partitions 0 to {max(there)}")
        partitions |= {TopicPartition(topic, p) for p in ([int(number)] if number else there)}
    return sorted(partitions)


async def _no_group(admin: Admin, group: str) -> UsageError:
    near = nearest_name(group, [listing.group_id for listing in await admin.list_groups()])
    hint = f"did you mean {near}?" if near else "`tidegate groups list` shows those there are"
    return UsageError(f"there is no group {group}; {hint}")


def _topic_and_partition(text: str) -> tuple[str, str]:
    """Of TOPIC or TOPIC:PARTITION; the partition is empty without one."""
    topic, _, number = text.rpartition(":")
    return (topic, number) if topic else (number, "")
