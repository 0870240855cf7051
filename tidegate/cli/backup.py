"""The commands ``tidegate backup`` and ``tidegate restore``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tidegate.cli.configuration import runs
from tidegate.cli.connectors.reach import rest_of
from tidegate.cli.credentials import registry_client
from tidegate.cli.events_client import client_of
from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.options import echo_error, json_option, print_json, print_table
from tidegate.cli.progress import progress_of
from tidegate.kit.errors import UsageError
from tidegate.kit.texts import counted

if TYPE_CHECKING:
    from tidegate.backup.manifest import Point
    from tidegate.backup.services import Services

__all__ = ["backup", "restore", "services_of"]

F = TypeVar("F", bound=Callable[..., Any])


def _where(function: F) -> F:
    """The options that both commands share."""
    for option in (
        click.option("--topic", "topics", multiple=True, metavar="GLOB", help="Only topics with such a name."),
        click.option("--registry", metavar="URL", help="The registry, if it is not the platform's."),
        click.option("--connect", metavar="URL", help="The Connect worker, if it is not the platform's."),
    ):
        function = option(function)
    return kafka_options(function)


@contextmanager
def services_of(
    data: Path, registry: str | None = None, connect: str | None = None, *, parts: bool = True, **kafka: Any
) -> Iterator[Services]:
    """The services of a platform. With another Kafka than the platform's, others than the Kafka only where an address is
    given; without ``parts`` no registry and no events service.
    """
    from broker.client.blocking import Admin
    from tidegate.backup.services import Services

    of_platform = not kafka.get("bootstrap_servers") and kafka.get("command_config") is None
    config = client_config(data, **{"bootstrap_servers": None, "properties": (), "command_config": None, **kafka})

    def has(service: str, address: str | None = None) -> bool:
        return bool(address) or (of_platform and runs(service, data))

    with ExitStack() as stack:
        yield Services(
            config,
            stack.enter_context(Admin(config)),
            registry=stack.enter_context(registry_client(data, registry))
            if parts and has("registry", registry)
            else None,
            events=client_of(data, None, None, None, None) if parts and has("events") else None,
            worker=rest_of(data, connect) if has("connect", connect) else None,
        )


@click.command()
@click.argument("target")
@click.option("--full", is_flag=True, help="Write all records again, and not only those since the last backup.")
@_where
@json_option
def backup(target: str, full: bool, topics: tuple[str, ...], as_json: bool, **where: Any) -> None:
    """Write records, positions of groups and connectors, schemas, events, access control entries, quotas and connectors
    to TARGET: a folder, or s3://bucket/prefix.

    Later backups to the same TARGET add what is new. A backup that was interrupted goes on. Connectors' secrets are
    written as the worker stores them; passwords of users are not, as no Kafka tells them.

    Example: tidegate backup s3://backups/shop
    """
    from tidegate.backup.platform_backup import take
    from tidegate.backup.store import BackupStore

    store = BackupStore(target)
    with services_of(**where) as services:
        point, written = take(services, store, topics, full=full, progress_of=progress_of, tell=echo_error)
        point.store(store)
    told = _summary(point) | {"written": written, "target": target}
    if as_json:
        print_json(told)
    else:
        click.echo(
            f"backup {point.id}: {counted(told['topics'], 'topic')}, {told['records']:,} records ({written:,} new), "
            f"{counted(told['groups'], 'group')}, {counted(told['connectors'], 'connector')}"
        )


def _summary(point: Point) -> dict[str, Any]:
    return {
        "id": point.id,
        "cluster_id": point.cluster_id,
        "topics": len(point.topics),
        "records": sum(file.records for _, _, file in point.files()),
        "bytes": sum(file.bytes for _, _, file in point.files()),
        "groups": len(point.groups) + len(point.share_groups),
        "connectors": len(point.configuration.get("connectors", {})),
    }


@click.command()
@click.argument("source")
@click.option("--list", "lists", is_flag=True, help="List the backups in SOURCE.")
@click.option("--point", "point_id", metavar="ID", help="The backup to restore; the newest unless given.")
@click.option("--execute", is_flag=True, help="Do it; without it the command only shows what it would do.")
@click.option("--resume", is_flag=True, help="Go on with a restore that was interrupted.")
@click.option("--start-connectors", is_flag=True, help="Start the connectors that ran; without it they are stopped.")
@click.option("--replication-factor", default=-1, show_default="the broker's", help="Replicas of topics that are made.")
@click.option("--no-compare", is_flag=True, help="Do not read the records again to compare them.")
@_where
@json_option
def restore(
    source: str,
    lists: bool,
    point_id: str | None,
    execute: bool,
    resume: bool,
    start_connectors: bool,
    replication_factor: int,
    no_compare: bool,
    topics: tuple[str, ...],
    as_json: bool,
    **where: Any,
) -> None:
    """Restore a backup into this platform, or into another Kafka: topics, schemas with their ids, events, records,
    positions of groups, access control entries, quotas, connectors with their offsets.

    Records get new offsets, and the positions of groups are moved with them. Topics must be empty or not there. At the
    end all records are read again and compared. Exit status 1 if anything differs or could not be restored.

    Example: tidegate restore s3://backups/shop --execute
    """
    from tidegate.backup.manifest import points, read_point
    from tidegate.backup.platform_backup import is_meant
    from tidegate.backup.platform_restore import PlatformRestore
    from tidegate.backup.store import BackupStore

    store = BackupStore(source)
    if lists:
        listed = [_summary(read_point(store, known)) for known in points(store)]
        if as_json:
            print_json(listed)
        else:
            columns = ["id", "topics", "records", "bytes", "groups", "connectors"]
            print_table(columns, [[told[column] for column in columns] for told in listed])
        return
    point = read_point(store, point_id)
    point.topics = {name: topic for name, topic in point.topics.items() if is_meant(name, topics)}
    if topics and not point.topics:
        raise UsageError(f"backup {point.id} has no topic with a name like {', '.join(topics)}")
    with services_of(parts=not topics, **where) as services:
        told = PlatformRestore(store, point, services, whole=not topics, progress_of=progress_of).run(
            resume=resume,
            replication_factor=replication_factor,
            compares=not no_compare,
            starts=start_connectors,
            execute=execute,
        )
    if as_json:
        print_json(told)
    else:
        print_table(["what", "change"], told["changes"])
        for problem in told["problems"]:
            click.echo(problem, err=True)
        click.echo(_ending(told))
    if told["problems"]:
        raise click.exceptions.Exit(1)


def _ending(told: dict[str, Any]) -> str:
    if not told["executed"]:
        return "nothing is changed: --execute does it"
    compared = ", compared with the backup" if told["compared"] and not told["differing"] else ""
    return f"restored backup {told['id']}: {told['written']:,} records written{compared}"
