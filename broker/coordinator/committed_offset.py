"""The position of a group in a partition, as the group coordinator keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

__all__ = ["CommittedOffset", "TopicPartition"]

TopicPartition = tuple[str, int]
"""A topic's name and the number of one of its partitions."""


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """The next offset to read, as a group wrote it down. ``leader_epoch`` is -1 where the client gave none.

    ``commit_timestamp_ms`` is set by the coordinator. ``expire_timestamp_ms`` is given by clients of OffsetCommit v2-v4
    only, -1 otherwise: the broker's retention decides then.
    """

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    topic_id: UUID | None = None
    commit_timestamp_ms: int = -1
    expire_timestamp_ms: int = -1
