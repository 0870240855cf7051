"""The commands ``tidegate backup`` and ``tidegate restore``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tidegate.cli.configuration.commands import runs
from tidegate.cli.configuration.connector_part import Connectors
from tidegate.cli.configuration.event_parts import event_parts
from tidegate.cli.configuration.log_parts import Acls, Quotas
from tidegate.cli.configuration.parts import Document, Part
from tidegate.cli.configuration.schema_part import Subjects
from tidegate.cli.connectors.offsets import ask_until_stopped
from tidegate.cli.connectors.reach import rest_of
from tidegate.cli.credentials import registry_client
from tidegate.cli.events_client import client_of
from tidegate.cli.kafka.client import client_config, kafka_options
from tidegate.cli.options import json_option, print_json, print_table
from tidegate.cli.progress import progress_of
from tidegate.clients.rest import Rest
from tidegate.clients.topics import is_internal
from tidegate.clients.worker import path_of, states_of
from tidegate.kit.errors import TidegateError, UsageError
from tidegate.kit.texts import counted

if TYPE_CHECKING:
    from broker.client import ClientConfig
    from broker.client.blocking import Admin
    from tidegate.backup.manifest import Point
    from tidegate.backup.restoring import Restored
    from tidegate.backup.store import BackupStore

__all__ = ["Restoring", "Services", "backup", "restore", "take"]

F = TypeVar("F", bound=Callable[..., Any])
_DERIVED: Final = ("__chn", "ChangeEvents")
"""The ends of names of channels' topics: the events service fills them from the events."""


def _where(function: F) -> F:
    """The options that both commands share."""
    for option in (
        click.option("--topic", "topics", multiple=True, metavar="GLOB", help="Only topics with such a name."),
        click.option("--registry", metavar="URL", help="The registry, if it is not the platform's."),
        click.option("--connect", metavar="URL", help="The Connect worker, if it is not the platform's."),
    ):
        function = option(function)
    return kafka_options(function)


class Services:
    """The services to talk to. With another Kafka than the platform's, others than the Kafka only where an address is given."""

    def __init__(self, stack: ExitStack, where: dict[str, Any]) -> None:
        data, registry, connect = where["data"], where.pop("registry"), where.pop("connect")
        of_platform = where["bootstrap_servers"] is None and where["command_config"] is None
        self.config: ClientConfig = client_config(**where)
        self._stack, self._data, self._registry, self._of_platform = stack, data, registry, of_platform
        self.rest: Rest | None = None
        if connect or (of_platform and runs("connect", data)):
            self.rest = rest_of(data, connect)

    def parts(self) -> Iterator[Part]:
        """The parts of ``tidegate export``, without topics, in the order in which they are restored."""
        if self._registry or (self._of_platform and runs("registry", self._data)):
            yield Subjects(self._stack.enter_context(registry_client(self._data, self._registry)))
        if self._of_platform and runs("events", self._data):
            yield from event_parts(client_of(self._data, None, None, None, None))
        yield Acls(self.config)
        yield Quotas(self.config)

    def admin(self) -> Admin:
        from broker.client.blocking import Admin

        return self._stack.enter_context(Admin(self.config))


def _told(text: str) -> None:
    click.echo(text, err=True)


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
    from tidegate.backup.store import BackupStore

    store = BackupStore(target)
    with ExitStack() as stack:
        point, written = take(Services(stack, where), store, topics, full=full)
        point.store(store)
    told = _summary(point) | {"written": written, "target": target}
    if as_json:
        print_json(told)
    else:
        click.echo(
            f"backup {point.id}: {counted(told['topics'], 'topic')}, {told['records']:,} records ({written:,} new), "
            f"{counted(told['groups'], 'group')}, {counted(told['connectors'], 'connector')}"
        )


def take(
    services: Services, store: BackupStore, globs: Sequence[str], *, full: bool, reads: bool = True
) -> tuple[Point, int]:
    """Write the records of topics with such names that ``store`` has not, and read all else that a backup has.

    Returns the point, which is not stored yet, and the number of records written. Without ``reads`` no record is read.
    """
    from tidegate.backup.taking import READING, begin_point, read_groups, take_records

    admin = services.admin()
    names = [n for n in admin.list_topics() if not is_internal(n) and not n.endswith(_DERIVED) and _meant(n, globs)]
    if globs and not names:
        raise UsageError(f"no topic has a name like {', '.join(globs)}")
    point = begin_point(admin)
    # positions first: every record before one of them is then among those that are read below
    if services.rest is not None:
        connectors = Connectors(services.rest)
        point.configuration[connectors.folder] = connectors.read()
        point.connector_offsets = _source_offsets(services.rest)
    point.groups, point.share_groups = read_groups(admin, names, _told)
    for part in services.parts():
        point.configuration[part.folder] = part.read()
    point.scram_users = _scram_users(services.config)
    with progress_of("reading") as progress:
        reading = services.config.with_properties(READING)
        written = take_records(reading, admin, store, point, names, full=full, reads=reads, progress=progress)
    point.ended = datetime.now(UTC).isoformat(timespec="milliseconds")
    return point, written


def _meant(name: str, globs: Sequence[str]) -> bool:
    return not globs or any(fnmatchcase(name, glob) for glob in globs)


def _source_offsets(rest: Rest) -> dict[str, list[dict[str, Any]]]:
    """The offsets of source connectors; those of sinks are the positions of their groups."""
    expanded = rest.call("GET", "/connectors", expand=["info"])
    sources = [name for name, entry in expanded.items() if entry["info"].get("type") == "source"]
    return {name: rest.call("GET", path_of(name, "/offsets"))["offsets"] for name in sources}


def _scram_users(config: ClientConfig) -> dict[str, dict[str, int]]:
    from broker.client.errors import UnsupportedVersion
    from tidegate.cli.kafka.client import with_admin

    try:
        return with_admin(config, lambda admin: admin.describe_scram())
    except UnsupportedVersion:
        return {}


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
    point.topics = {name: topic for name, topic in point.topics.items() if _meant(name, topics)}
    if topics and not point.topics:
        raise UsageError(f"backup {point.id} has no topic with a name like {', '.join(topics)}")
    with ExitStack() as stack:
        restoring = Restoring(store, point, Services(stack, where), whole=not topics)
        told = restoring.run(
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
    compared = ", compared with the backup" if told["compared"] and not told["problems"] else ""
    return f"restored backup {told['id']}: {told['written']:,} records written{compared}"


class Restoring:
    """One run of ``restore``. ``whole`` is false where only some topics are asked for: their records and positions.

    ``goes_on`` is true where a later run writes more records to the same topics: connectors and users wait for the last run,
    and so do the topics' configs, as a topic keeps everything until then. ``replaces`` is true where stopped connectors of the
    target may be those of an earlier attempt: they get the configuration and offsets of the backup, and others of these names
    are a problem.
    """

    def __init__(
        self,
        store: BackupStore,
        point: Point,
        services: Services,
        *,
        whole: bool,
        goes_on: bool = False,
        replaces: bool = False,
    ) -> None:
        self._store, self._point, self._services, self._whole = store, point, services, whole
        self._goes_on, self._replaces = goes_on, replaces
        self._changes: list[list[str]] = []
        self._problems: list[str] = []

    def check(self, *, resume: bool) -> None:
        """Raises UsageError where the topics of the target can't take the backup."""
        from tidegate.backup.restoring import check_target

        check_target(self._services.admin(), self._point, resume=resume)

    def run(
        self, *, resume: bool, replication_factor: int, compares: bool, starts: bool, execute: bool
    ) -> dict[str, Any]:
        from tidegate.backup.restoring import check_target, make_topics, records_in, settle_topics

        point, admin = self._point, self._services.admin()
        if admin.cluster_id() == point.cluster_id and not execute:
            self._changes.append(["cluster", "this is the cluster that the backup is of"])
        where = check_target(admin, point, resume=resume)
        records = records_in(self._store, point)
        self._changes.append(["topics", f"fill {counted(len(point.topics), 'topic')} with {records:,} records"])
        parts = list(self._services.parts()) if self._whole else []
        before = [part for part in parts if part.folder not in ("acls", "quotas")]
        for part in before:
            self._configure(part, execute=execute)
        written = 0
        groups = [
            n
            for n, offsets in (point.groups | point.share_groups).items()
            if any(o["topic"] in point.topics for o in offsets)
        ]
        offsets: dict[str, dict[str, int]] = {}
        if groups:
            self._changes.append(["groups", f"set the positions of {', '.join(groups)}"])
        if execute:
            later = make_topics(admin, point, replication_factor)
            where = check_target(
                admin, point, resume=resume
            )  # topics of events begin where their service has them begin
            written = self._records(where, compares=compares)
            # Until a repeated attempt has succeeded, a topic keeps all that this one has copied.
            if not self._goes_on and not (self._replaces and self._problems):
                settle_topics(admin, later)
            offsets = self._groups(admin, where, groups)
        for part in parts:
            if part not in before:
                self._configure(part, execute=execute)
        if self._whole and not self._goes_on:
            self._connectors(starts=starts and not self._problems, execute=execute)
            if point.scram_users:
                users = ", ".join(sorted(point.scram_users))
                self._changes.append(
                    ["users", f"passwords are not in a backup: `tidegate scram set` gives them to {users}"]
                )
        return {
            "id": point.id,
            "executed": execute,
            "written": written,
            "compared": execute and compares,
            "groups": offsets,
            "changes": self._changes,
            "problems": self._problems,
        }

    def _configure(self, part: Part, *, execute: bool) -> None:
        documents: dict[str, Document] = self._point.configuration.get(part.folder, {})
        existing = part.read() if documents else {}
        chosen = {}
        for name, document in documents.items():
            word = part.difference(document, existing.get(name))
            if word.startswith("cannot"):
                self._problems.append(f"{part.folder} {name}: {word}")
            elif word:
                self._changes.append([f"{part.folder} {name}", word])
                chosen[name] = (document, existing.get(name))
        if execute and chosen:
            part.write(chosen)

    def _records(self, where: dict[tuple[str, int], Restored], *, compares: bool) -> int:
        from broker.client.blocking import BatchConsumer
        from tidegate.backup.restoring import compare_records, restore_records
        from tidegate.backup.taking import READING

        config = self._services.config
        with progress_of("writing") as progress:
            written = restore_records(config, self._store, self._point, where, progress)
        if compares:
            with progress_of("comparing") as progress, BatchConsumer(config.with_properties(READING)) as consumer:
                self._problems += compare_records(consumer, self._store, self._point, where, progress)
        return written

    def _groups(
        self, admin: Admin, where: dict[tuple[str, int], Restored], names: Sequence[str]
    ) -> dict[str, dict[str, int]]:
        from tidegate.backup.restoring import restore_groups

        offsets, problems = restore_groups(admin, self._store, self._point, where, names)
        self._problems += problems
        return offsets

    def _connectors(self, *, starts: bool, execute: bool) -> None:
        rest, documents = self._services.rest, self._point.configuration.get("connectors", {})
        if rest is None:
            if documents:
                self._problems.append(
                    f"{counted(len(documents), 'connector')} of the backup: there is no Connect worker"
                )
            return
        existing = states_of(rest)
        for name, document in documents.items():
            there = existing.get(name)
            if there is not None and not self._replaces:
                self._changes.append([f"connectors {name}", "is there, and is left as it is"])
                continue
            if there not in (None, "STOPPED"):
                self._problems.append(f"connectors {name}: it is {there} there: stop it there, or delete it")
                continue
            state = document.get("initial_state", "RUNNING")
            ending = "RUNNING" if starts and state == "RUNNING" else "STOPPED"
            self._changes.append([f"connectors {name}", f"{'change' if there else 'create'}, {ending.lower()}"])
            if not execute:
                continue
            try:
                if there is None:
                    rest.call("POST", "/connectors", {**document, "initial_state": "STOPPED"})
                else:
                    rest.call("PUT", path_of(name, "/config"), document["config"])
                if offsets := self._point.connector_offsets.get(name):
                    ask_until_stopped(rest, name, offsets)
                if ending == "RUNNING":
                    rest.call("PUT", path_of(name, "/resume"))
            except TidegateError as error:
                self._problems.append(f"connectors {name}: {error}")
