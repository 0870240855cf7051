"""Topics as groups see them: names, ids, numbers of partitions, and the hash that detects changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

__all__ = ["GroupTopic", "TopicCatalog", "group_hash", "topic_hash"]


@dataclass(frozen=True, slots=True)
class GroupTopic:
    """A topic. ``racks`` are those of its replicas, equal for all partitions because there is one broker."""

    id: UUID
    name: str
    partitions: int
    racks: tuple[str, ...] = ()


class TopicCatalog(Protocol):
    """All topics in their current state."""

    @property
    def version(self) -> int:
        """Increases with every change of the metadata."""
        ...

    @property
    def created_version(self) -> int:
        """The version in which the newest topic was created."""
        ...

    def by_name(self, name: str) -> GroupTopic | None: ...

    def by_id(self, topic_id: UUID) -> GroupTopic | None: ...

    def names(self) -> Iterable[str]: ...


_HASH_FORMAT = b"\0"


def topic_hash(topic: GroupTopic) -> int:
    """XXH3-64 over a topic's id, name, partitions and racks, fed as hash4j feeds it: Kafka's ``computeTopicHash``.

    Integers are little-endian; a string is its UTF-16 units and then their number. The result is a signed int64.
    """
    import xxhash

    number = topic.id.int
    data = bytearray(_HASH_FORMAT)
    data += (number >> 64).to_bytes(8, "little") + (number & (1 << 64) - 1).to_bytes(8, "little")
    data += _string(topic.name) + topic.partitions.to_bytes(4, "little")
    racks = b"".join(len(rack).to_bytes(4, "little") + _string(rack) for rack in sorted(topic.racks))
    for partition in range(topic.partitions):
        data += partition.to_bytes(4, "little") + racks
    return _signed(xxhash.xxh3_64_intdigest(bytes(data)))


def group_hash(hashes: Iterable[tuple[str, int]]) -> int:
    """The hash of all topics a group subscribes to, from their (name, hash), in the order of names; 0 for none."""
    ordered = sorted(hashes)
    if not ordered:
        return 0
    import xxhash

    data = b"".join(value.to_bytes(8, "little", signed=True) for _, value in ordered)
    return _signed(xxhash.xxh3_64_intdigest(data))


def _string(text: str) -> bytes:
    units = text.encode("utf-16-le", "surrogatepass")
    return units + (len(units) // 2).to_bytes(4, "little")


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value
