"""Manifests: the JSON that says what a backup holds. Each point in time has one, written last."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from tidegate.backup.store import BackupStore
from tidegate.kit.errors import TidegateError, UsageError

__all__ = ["FORMAT", "Partition", "Point", "RecordFile", "Topic", "newest", "points", "read_point"]

FORMAT: Final = 1
_POINTS: Final = "points"
_UNFINISHED: Final = "unfinished.json"


@dataclass(frozen=True, slots=True)
class RecordFile:
    """Records of a partition with offsets from ``first_offset`` to before ``next_offset``, which has gaps where the log
    has. ``checksum`` is that of their content (``tidegate.backup.checksum``).
    """

    path: str
    first_offset: int
    next_offset: int
    records: int
    bytes: int
    checksum: str


@dataclass(slots=True)
class Partition:
    """``start`` is the log's first offset at the time of the backup, ``end`` the one after its last record.

    ``files`` together have all records of that range, and may begin before it.
    """

    partition: int
    start: int
    end: int
    files: list[RecordFile] = field(default_factory=list)


@dataclass(slots=True)
class Topic:
    name: str
    topic_id: str
    partitions: list[Partition]
    configs: dict[str, str]


@dataclass(slots=True)
class Point:
    """A backup at one point in time."""

    id: str
    cluster_id: str
    began: str
    ended: str | None = None
    topics: dict[str, Topic] = field(default_factory=dict)
    groups: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Committed offsets: ``topic``, ``partition``, ``offset``, ``note``."""
    share_groups: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Start offsets: ``topic``, ``partition``, ``offset``. What was acknowledged after them is not known."""
    configuration: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The documents of ``tidegate export``, by part and name."""
    connector_offsets: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Of source connectors, as ``GET /connectors/NAME/offsets`` shows them."""
    scram_users: dict[str, dict[str, int]] = field(default_factory=dict)
    """The names of users with SCRAM passwords, by mechanism; no Kafka tells the passwords."""

    def files(self) -> Iterator[tuple[Topic, Partition, RecordFile]]:
        for topic in self.topics.values():
            for partition in topic.partitions:
                for file in partition.files:
                    yield topic, partition, file

    def as_json(self) -> dict[str, Any]:
        return {"format": FORMAT, **asdict(self)}

    def store(self, store: BackupStore) -> None:
        """Write the manifest: from then on the backup exists."""
        store.write_json(f"{_POINTS}/{self.id}.json", self.as_json())
        store.delete(_UNFINISHED)

    def store_unfinished(self, store: BackupStore) -> None:
        """Note the files written so far, so that a backup that is started again does not read their records again."""
        store.write_json(_UNFINISHED, self.as_json())


def points(store: BackupStore) -> list[str]:
    """The ids of the backups, oldest first."""
    return [name.removesuffix(".json") for name in store.names(_POINTS) if name.endswith(".json")]


def read_point(store: BackupStore, point_id: str | None = None) -> Point:
    """A backup by its id, or the newest. Raises UsageError if there is none."""
    known = points(store)
    if not known:
        raise UsageError(f"there is no backup in {store.location}")
    if point_id is not None and point_id not in known:
        raise UsageError(f"{store.location} has no backup {point_id}; there are {', '.join(known)}")
    point = _read(store, f"{_POINTS}/{point_id or known[-1]}.json")
    assert point is not None
    return point


def newest(store: BackupStore) -> list[Point]:
    """The backups that the next one can continue: the unfinished one, if any, then the newest finished one."""
    known = points(store)
    finished = _read(store, f"{_POINTS}/{known[-1]}.json") if known else None
    return [point for point in (_read(store, _UNFINISHED), finished) if point is not None]


def _read(store: BackupStore, name: str) -> Point | None:
    document = store.read_json(name)
    if document is None:
        return None
    try:
        if document["format"] != FORMAT:
            raise TidegateError(
                f"{name} in {store.location} has format {document['format']}; this version reads {FORMAT}"
            )
        topics = {
            topic: Topic(
                topic,
                said["topic_id"],
                [
                    Partition(p["partition"], p["start"], p["end"], [RecordFile(**file) for file in p["files"]])
                    for p in said["partitions"]
                ],
                said["configs"],
            )
            for topic, said in document["topics"].items()
        }
        rest = {key: value for key, value in document.items() if key not in ("format", "topics")}
        return Point(topics=topics, **rest)
    except (KeyError, TypeError) as error:
        raise TidegateError(f"{name} in {store.location} is no manifest of a backup: {error!r}") from error
