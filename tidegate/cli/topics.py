"""``tidegate topics`` and ``tidegate groups``: the everyday operations on any Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tidegate.cli.kafka import client_config, kafka_options, key_values, with_admin
from tidegate.cli.options import json_option, print_json, print_table
from tidegate.kit.errors import UsageError

if TYPE_CHECKING:
    from broker.client import Admin, GroupDescription

__all__ = ["groups", "topics"]


@click.group()
def topics() -> None:
    """List, describe, create, alter and delete topics."""


@topics.command("list")
@kafka_options
@json_option
@click.option("--internal", is_flag=True, help="Show internal topics too.")
def list_topics(as_json: bool, internal: bool, **where: Any) -> None:
    """List topics with their partitions and how many offsets were written."""

    from broker.client import TopicPartition

    async def ask(admin: Admin) -> list[dict[str, Any]]:
        names = sorted(await admin.list_topics(internal=internal))
        described = await admin.describe_topics(names)
        all_partitions = [TopicPartition(name, p.partition) for name in names for p in described[name].partitions]
        starts, ends = await admin.beginning_offsets(all_partitions), await admin.end_offsets(all_partitions)
        rows = []
        for name in names:
            partitions = [partition for partition in ends if partition.topic == name]
            records = sum(ends[partition] - starts[partition] for partition in partitions)
            rows.append({"topic": name, "partitions": len(partitions), "offsets": records})
        return rows

    rows = with_admin(client_config(**where), ask)
    if as_json:
        print_json(rows)
    else:
        print_table(["topic", "partitions", "offsets"], [list(row.values()) for row in rows])


@topics.command()
@click.argument("name")
@kafka_options
@json_option
def describe(name: str, as_json: bool, **where: Any) -> None:
    """Show a topic's partitions with their offsets, and the configuration that is not the default."""

    from broker.client import TopicPartition

    async def ask(admin: Admin) -> dict[str, Any]:
        description = (await admin.describe_topics([name]))[name]
        partitions = [TopicPartition(name, p.partition) for p in description.partitions]
        starts, ends = await admin.beginning_offsets(partitions), await admin.end_offsets(partitions)
        configs = await admin.describe_configs(name)
        return {
            "topic": name,
            "id": str(description.topic_id),
            "partitions": [
                {
                    "partition": p.partition,
                    "leader": p.leader,
                    "isr": list(p.isr),
                    "start": starts[key],
                    "end": ends[key],
                }
                for p in description.partitions
                for key in [next(k for k in ends if k.partition == p.partition)]
            ],
            "configs": {e.name: e.value for e in configs.values() if e.source == "DYNAMIC_TOPIC_CONFIG"},
        }

    topic_description = with_admin(client_config(**where), ask)
    if as_json:
        print_json(topic_description)
        return
    click.echo(f"topic {topic_description['topic']}  id {topic_description['id']}")
    for key, value in topic_description["configs"].items():
        click.echo(f"  {key}={value}")
    rows = [
        [p["partition"], p["leader"], ",".join(map(str, p["isr"])), p["start"], p["end"]]
        for p in topic_description["partitions"]
    ]
    print_table(["partition", "leader", "isr", "start", "end"], rows)


@topics.command()
@click.argument("name")
@click.option("--partitions", default=1, show_default=True, help="Number of partitions.")
@click.option("--replication-factor", default=1, show_default=True, help="Number of replicas.")
@click.option(
    "--config", "configs", multiple=True, metavar="KEY=VALUE", help="A topic setting, such as cleanup.policy=compact."
)
@kafka_options
def create(name: str, partitions: int, replication_factor: int, configs: tuple[str, ...], **where: Any) -> None:
    """Create a topic."""
    from broker.client import NewTopic

    topic = NewTopic(name, partitions, replication_factor, key_values(configs, "--config"))
    with_admin(client_config(**where), lambda admin: admin.create_topics([topic]))


@topics.command()
@click.argument("name")
@click.option(
    "--config", "configs", multiple=True, metavar="KEY=VALUE", help="Set a topic setting; KEY= takes it back."
)
@click.option("--partitions", type=int, help="Grow to this number of partitions.")
@kafka_options
def alter(name: str, configs: tuple[str, ...], partitions: int | None, **where: Any) -> None:
    """Change a topic's settings or number of partitions."""

    async def change(admin: Admin) -> None:
        if configs:
            changes = key_values(configs, "--config")
            await admin.alter_configs(name, {key: value or None for key, value in changes.items()})
        if partitions is not None:
            await admin.create_partitions(name, partitions)

    with_admin(client_config(**where), change)


@topics.command()
@click.argument("names", nargs=-1, required=True)
@kafka_options
def delete(names: tuple[str, ...], **where: Any) -> None:
    """Delete topics with all their records."""
    with_admin(client_config(**where), lambda admin: admin.delete_topics(names))


@click.group()
def groups() -> None:
    """List and describe consumer groups, their offsets and their lag."""


@groups.command("list")
@kafka_options
@json_option
def list_groups(as_json: bool, **where: Any) -> None:
    """List groups with their state, members and total lag."""

    async def ask(admin: Admin) -> list[dict[str, Any]]:
        rows = []
        for listing in sorted(await admin.list_groups(), key=lambda g: g.group_id):
            description = await admin.describe_group(listing.group_id)
            lags = await _lags(admin, description)
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
            raise UsageError(f"there is no group {group}; `tidegate groups list` shows those there are")
        members = [{"member": m.member_id, "client": m.client_id, "host": m.client_host} for m in description.members]
        return {
            "group": group,
            "state": description.state,
            "type": description.type,
            "members": members,
            "offsets": await _lags(admin, description),
        }

    group_description = with_admin(client_config(**where), ask)
    if as_json:
        print_json(group_description)
        return
    click.echo(
        f"group {group}  {group_description['type']}  {group_description['state']}  {len(group_description['members'])} members"
    )
    print_table(
        ["topic", "partition", "committed", "end", "lag"], [list(row.values()) for row in group_description["offsets"]]
    )


@groups.command("delete")
@click.argument("names", nargs=-1, required=True)
@kafka_options
def delete_groups(names: tuple[str, ...], **where: Any) -> None:
    """Delete groups with their committed offsets."""
    with_admin(client_config(**where), lambda admin: admin.delete_groups(names))


async def _lags(admin: Admin, group: GroupDescription) -> list[dict[str, Any]]:
    """By partition that the group has committed offsets of or that is assigned to a member.

    Without a committed offset everything in the partition counts as lag: nothing of it is known to be done.
    """
    committed = await admin.group_offsets(group.group_id)
    there = set(await admin.list_topics(internal=True))
    assigned = {partition for member in group.members for partition in member.partitions}
    partitions = sorted(partition for partition in committed.keys() | assigned if partition.topic in there)
    ends, beginnings = await admin.end_offsets(partitions), await admin.beginning_offsets(partitions)
    return [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "committed": committed.get(partition),
            "end": ends[partition],
            "lag": max(0, ends[partition] - max(committed.get(partition, 0), beginnings[partition])),
        }
        for partition in partitions
        if partition in ends
    ]
