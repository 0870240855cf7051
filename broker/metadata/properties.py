"""``meta.properties``: the owner of a data directory. Kafka's keys (version 1), and the number of our own format."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from broker.errors import KafkaStorageError
from broker.log.checkpoints import uuid_from_text, uuid_text
from broker.log.files import storage_errors, write_atomically

__all__ = ["FORMAT", "MetaProperties", "load_or_create"]

FORMAT: Final = 1
"""The format written by this release. A directory with a higher number comes from a later release and is refused."""

_FILE: Final = "meta.properties"
_FORMAT_KEY: Final = "tidegate.format"


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """``cluster_id`` and ``directory_id`` are UUIDs; on the wire the cluster's is text, which clients see."""

    cluster_id: str
    node_id: int
    directory_id: uuid.UUID


def load_or_create(directory: Path, node_id: int, cluster_id: str | None = None) -> MetaProperties:
    """Read the file of a data directory, or create it for a new directory, in ``cluster_id`` or a new cluster.

    Raises KafkaStorageError if the directory belongs to another node, another cluster or a later release, or the file
    is damaged.
    """
    path = directory / _FILE
    with storage_errors(f"read or write {path}"):
        if path.exists():
            properties = _checked(path, node_id)
            if cluster_id not in (None, properties.cluster_id):
                raise KafkaStorageError(f"{directory} belongs to cluster {properties.cluster_id}, not to {cluster_id}")
            return properties
        made = MetaProperties(cluster_id or uuid_text(_random_uuid()), node_id, _random_uuid())
        lines = [
            "#",
            f"cluster.id={made.cluster_id}",
            f"directory.id={uuid_text(made.directory_id)}",
            f"node.id={node_id}",
            f"{_FORMAT_KEY}={FORMAT}",
            "version=1",
        ]
        write_atomically(path, "".join(f"{line}\n" for line in lines).encode())
        return made


def _checked(path: Path, node_id: int) -> MetaProperties:
    lines = (line.strip() for line in path.read_text().splitlines())
    fields = dict(line.partition("=")[::2] for line in lines if line and not line.startswith("#"))
    try:
        found_format = int(fields.get(_FORMAT_KEY, "1"))
        properties = MetaProperties(
            fields["cluster.id"], int(fields["node.id"]), uuid_from_text(fields["directory.id"])
        )
        version = fields["version"]
    except (KeyError, ValueError) as error:
        raise KafkaStorageError(f"{path} is damaged: {error}") from error
    if version != "1":
        raise KafkaStorageError(f"{path} has version={version}; version=1 can be read")
    if found_format > FORMAT:
        raise KafkaStorageError(
            f"{path.parent} has format {found_format}, written by a later release of Tidegate; this one reads up to {FORMAT}"
        )
    if properties.node_id != node_id:
        raise KafkaStorageError(f"{path.parent} belongs to node {properties.node_id}, but node.id is {node_id}")
    return properties


def _random_uuid() -> uuid.UUID:
    """Its text does not begin with a dash: Kafka avoids that, because tools would parse it as an option."""
    while True:
        made = uuid.uuid4()
        if not uuid_text(made).startswith("-"):
            return made
