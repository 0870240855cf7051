"""Restores a backup to a platform: configuration, records, positions of groups, connectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tidegate.backup.restoring import (
    check_target,
    compare_records,
    make_topics,
    records_in,
    restore_groups,
    restore_records,
    settle_topics,
)
from tidegate.backup.taking import READING
from tidegate.clients.worker import change_offsets, path_of, states_of
from tidegate.kit.errors import TidegateError
from tidegate.kit.texts import counted

if TYPE_CHECKING:
    from broker.client.blocking import Admin
    from tidegate.backup.manifest import Point, Topic
    from tidegate.backup.restoring import Restored
    from tidegate.backup.services import ProgressOf, Services
    from tidegate.backup.store import BackupStore
    from tidegate.clients.rest import Rest
    from tidegate.configuration.parts import Document, Part

__all__ = ["PlatformRestore", "start_connector"]

_FILES_BY_OFFSET: Final = frozenset(
    [
        "AzureBlobStorageSink",
        "CloudS3Sink",
        "GcsSink",
        "Hdfs3Sink",
        "HdfsSink",
        "LocalSink",
        "S3Sink",
        "S3_SINK",
        "SftpSink",
    ]
)
"""Sinks whose files are named by the offsets of their records, by class without package and ``Connector``."""


class PlatformRestore:
    """One run that restores a point to a platform. ``whole`` is false where only some topics are asked for: their records and positions.

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
        progress_of: ProgressOf,
        goes_on: bool = False,
        replaces: bool = False,
    ) -> None:
        self._store, self._point, self._services, self._whole = store, point, services, whole
        self._goes_on, self._replaces, self._progress_of = goes_on, replaces, progress_of
        self._changes: list[list[str]] = []
        self._problems: list[str] = []
        self._differing = 0
        """Files whose records are not in the target."""
        self._bound: set[str] = set()
        """Connectors that can't go on in the target."""
        self.sink_offsets: dict[str, list[dict[str, Any]]] = {}
        """The new offsets of sinks whose records have got others, as the REST API takes them. A sink that keeps its offsets in
        its target gets them there, right before it starts."""

    def check(self, *, resume: bool) -> None:
        """Raises UsageError where the topics of the target can't take the backup."""
        check_target(self._services.admin, self._point, resume=resume)

    def run(
        self, *, resume: bool, replication_factor: int, compares: bool, starts: bool, execute: bool
    ) -> dict[str, Any]:
        """Restore with ``execute``, else only tell what would change. The result is the JSON of ``tidegate restore``."""
        point, admin = self._point, self._services.admin
        if admin.cluster_id() == point.cluster_id and not execute:
            self._changes.append(["cluster", "this is the cluster that the backup is of"])
        hint = "" if resume else "; --resume goes on with a restore that was interrupted"
        where = check_target(admin, point, resume=resume, hint=hint)
        self._find_bound()
        records = records_in(self._store, point)
        self._changes.append(
            ["topics", f"fill {counted(len(point.topics), 'topic')} with {counted(records, 'record')}"]
        )
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
            self._find_sink_offsets(offsets)
        for part in parts:
            if part not in before:
                self._configure(part, execute=execute)
        if self._whole and not self._goes_on:
            self._connectors(starts=starts and len(self._problems) == len(self._bound), execute=execute)
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
            "differing": self._differing,
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

        config = self._services.config
        with self._progress_of("writing") as progress:
            written = restore_records(config, self._store, self._point, where, progress)
        if compares:
            with self._progress_of("comparing") as progress, BatchConsumer(config.with_properties(READING)) as consumer:
                differing = compare_records(consumer, self._store, self._point, where, progress)
            self._differing += len(differing)
            self._problems += differing
        return written

    def _groups(
        self, admin: Admin, where: dict[tuple[str, int], Restored], names: Sequence[str]
    ) -> dict[str, dict[str, int]]:
        offsets, problems = restore_groups(admin, self._store, self._point, where, names)
        self._problems += problems
        return offsets

    def _find_bound(self) -> None:
        """Before anything is changed: a move is refused while the connectors still run here, and topics keep all that was copied."""
        rest, documents = self._services.worker, self._point.configuration.get("connectors", {})
        if rest is None or not self._whole:
            return
        left_alone = set() if self._replaces else states_of(rest).keys()
        for name, document in documents.items():
            if name not in left_alone and (reason := _bound_reason(name, document["config"], self._point)):
                self._bound.add(name)
                self._problems.append(f"connectors {name}: {reason}")

    def _find_sink_offsets(self, groups: Mapping[str, Mapping[str, int]]) -> None:
        for name, document in self._point.configuration.get("connectors", {}).items():
            offsets = groups.get(_group_of(name, document["config"]), {})
            partitions = [partition.rpartition("-") for partition in offsets]
            if any(
                topic in self._point.topics and not _keeps_offsets(self._point.topics[topic])
                for topic, _, _ in partitions
            ):
                self.sink_offsets[name] = [
                    {
                        "partition": {"kafka_topic": topic, "kafka_partition": int(number)},
                        "offset": {"kafka_offset": offset},
                    }
                    for (topic, _, number), offset in zip(partitions, offsets.values(), strict=True)
                ]

    def _connectors(self, *, starts: bool, execute: bool) -> None:
        rest, documents = self._services.worker, self._point.configuration.get("connectors", {})
        if rest is None:
            if documents:
                self._problems.append(
                    f"{counted(len(documents), 'connector')} of the backup: there is no Connect worker"
                )
            return
        existing = states_of(rest)
        for name, document in documents.items():
            if name in self._bound:
                continue
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
                    change_offsets(rest, name, offsets)
                if ending == "RUNNING":
                    start_connector(rest, name, self.sink_offsets.get(name))
            except TidegateError as error:
                self._problems.append(f"connectors {name}: {error}")


def start_connector(rest: Rest, name: str, sink_offsets: Sequence[Mapping[str, Any]] | None) -> None:
    """Start a stopped connector that was restored, at its new offsets if it is a sink whose records have got others."""
    if sink_offsets:
        change_offsets(rest, name, sink_offsets)
    rest.call("PUT", path_of(name, "/resume"))


def _bound_reason(name: str, config: Mapping[str, Any], point: Point) -> str:
    """Why a connector can't go on in another cluster: it keeps offsets, or addresses, where no worker sees them. Empty for one
    that can.
    """
    if "spark.pipeline.spec" in config:
        return (
            "its project names the brokers itself, and keeps offsets. Delete it here, and create it there once the project's "
            "options name the new platform"
        )
    topics = (
        [topic.strip() for topic in str(config.get("topics", "")).split(",")] if config.get("topics") else point.topics
    )
    renumbered = [topic for topic in topics if topic in point.topics and not _keeps_offsets(point.topics[topic])]
    if config.get("spark.checkpoint.path") and renumbered:
        return (
            f"its spark.checkpoint.path has offsets of {', '.join(renumbered)}, whose records get other offsets. Delete it here, "
            "and create it there with a new spark.checkpoint.path"
        )
    written = {position["topic"] for position in point.groups.get(_group_of(name, config), ())}
    class_name = str(config.get("connector.class", "")).rpartition(".")[2].removesuffix("Connector")
    if class_name in _FILES_BY_OFFSET and (renamed := [topic for topic in renumbered if topic in written]):
        return (
            f"its files have offsets of {', '.join(renamed)} in their names, whose records get other offsets: new files would "
            "replace older ones. Delete it here, and create it there with another folder, such as another topics.dir"
        )
    return ""


def _group_of(name: str, config: Mapping[str, Any]) -> str:
    """The consumer group of a sink."""
    return str(config.get("consumer.override.group.id") or f"connect-{name}")


def _keeps_offsets(topic: Topic) -> bool:
    """Whether records that are written anew from offset 0 on get the offsets that they had: none is missing before or between them."""
    return all(
        partition.start == 0 and all(file.records == file.next_offset - file.first_offset for file in partition.files)
        for partition in topic.partitions
    )
