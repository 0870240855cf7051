"""``tidegate topics``: the everyday operations on any Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tidegate.cli.kafka.client import client_config, kafka_options, key_values
from tidegate.cli.options import done, done_option, json_option, print_json, print_table
from tidegate.clients.topics import is_internal, with_admin

if TYPE_CHECKING:
    from broker.client import Admin

__all__ = ["topics"]


@click.group()
def topics() -> None:
    """List, describe, create, alter and delete topics."""


@topics.command("list")
@kafka_options
@json_option
@click.option("--internal", is_flag=True, help="Show internal topics too.")
def list_topics(as_json: bool, internal: bool, **where: Any) -> None:
    """List topics with their partitions and how many offsets they hold.

    Topics of Kafka, the registry, Connect and the events service are left out without --internal.
    """

    from broker.client import TopicPartition

    async def ask(admin: Admin) -> list[dict[str, Any]]:
        names = sorted(name for name in await admin.list_topics(internal=internal) if internal or not is_internal(name))
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

    topic_description = with_admin(client_config(**where), ask, topics=[name])
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
@done_option
def create(name: str, partitions: int, replication_factor: int, configs: tuple[str, ...], **where: Any) -> None:
    """Create a topic."""
    from broker.client import NewTopic

    topic = NewTopic(name, partitions, replication_factor, key_values(configs, "--config"))
    with_admin(client_config(**where), lambda admin: admin.create_topics([topic]))
    done(
        f"topic {name} is created, with {partitions} partition{'s'[: partitions != 1]}",
        topic=name,
        action="created",
        partitions=partitions,
    )


@topics.command()
@click.argument("name")
@click.option("--config", "configs", multiple=True, metavar="KEY=VALUE", help="Set a topic setting.")
@click.option("--delete-config", "deleted", multiple=True, metavar="KEY", help="Remove a topic setting.")
@click.option("--partitions", type=int, help="Grow to this number of partitions.")
@kafka_options
@done_option
def alter(name: str, configs: tuple[str, ...], deleted: tuple[str, ...], partitions: int | None, **where: Any) -> None:
    """Change a topic's settings or number of partitions. The broker's default applies to a setting that is removed.

    Example: tidegate topics alter clicks --config retention.ms=86400000 --delete-config max.message.bytes
    """

    changes: dict[str, str | None] = {**key_values(configs, "--config"), **dict.fromkeys(deleted)}
    if not changes and partitions is None:
        raise click.UsageError("nothing to change: give --config, --delete-config or --partitions")
    if empty := [key for key, value in changes.items() if value == ""]:
        raise click.UsageError(
            f"--config {empty[0]}= has no value: give one, or --delete-config {empty[0]} to remove the setting"
        )

    async def change(admin: Admin) -> None:
        if changes:
            await admin.alter_configs(name, changes)
        if partitions is not None:
            await admin.create_partitions(name, partitions)

    with_admin(client_config(**where), change, topics=[name])
    changed = [
        *configs,
        *(f"the default of {key}" for key in deleted),
        *([f"{partitions} partitions"] if partitions is not None else []),
    ]
    done(f"topic {name} has {', '.join(changed)}", topic=name, action="altered", changed=changed)


@topics.command()
@click.argument("names", nargs=-1, required=True)
@kafka_options
@done_option
def delete(names: tuple[str, ...], **where: Any) -> None:
    """Delete topics with all their records. If one of them does not exist, none is deleted."""

    async def change(admin: Admin) -> None:
        await admin.describe_topics(names)
        await admin.delete_topics(names)

    with_admin(client_config(**where), change, topics=names)
    for name in names:
        done(f"topic {name} is deleted", topic=name, action="deleted")
